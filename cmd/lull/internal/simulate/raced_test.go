//go:build race

package simulate

// A simulation takes ten times as long with the race detector.
func init() { raced = true }
