//go:build race

package outlier

// The race detector slows single-threaded runs down tenfold and finds nothing in
// them.
func init() { slower = 10 }
