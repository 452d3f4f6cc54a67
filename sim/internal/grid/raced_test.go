//go:build race

package grid

func init() { raced = true }
