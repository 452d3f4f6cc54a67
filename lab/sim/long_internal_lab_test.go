//go:build lab

package sim

func init() { long = true }
