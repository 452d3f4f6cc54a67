//go:build lab

package sim_test

func init() { long = true }
