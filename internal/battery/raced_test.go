//go:build race

package battery

func init() { raced = true }
