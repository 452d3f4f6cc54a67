//go:build lab

package battery

func init() { lab = true }
