//go:build race

package throttle

// A flight is one goroutine, in which the race detector finds nothing in twenty times
// the time. The short ones run all the same.
const raced = true
