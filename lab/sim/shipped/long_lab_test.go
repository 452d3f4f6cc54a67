//go:build lab

package shipped

func init() { long = true }
