//go:build race

package bench

// The race detector changes what is allocated.
func init() { raced = true }
