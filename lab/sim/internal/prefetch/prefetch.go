// Package prefetch asks the processor for memory before it is needed. A program that
// works on many small things that lie far apart waits for each of them, some 100 ns.
// It is advice: no value in memory changes.
package prefetch

import "unsafe"

// Lines asks for the line of the cache (64 bytes) at each of the addresses. They
// need not be valid.
func Lines(addresses []unsafe.Pointer) {
	if len(addresses) > 0 {
		lines(&addresses[0], len(addresses))
	}
}
