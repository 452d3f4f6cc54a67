//go:build race

package simulate

// With the race detector on a simulation takes ten times as long.
func init() { raced = true }
