// Package prefetch asks the processor for memory before it is needed. Whoever is
// about to work on many small things that lie far apart waits for each of them,
// some 100 ns; asked for a few dozen things ahead, they are there. To read them
// ahead is not the same: a processor that waits for what it reads can only run on
// for so long. It is advice: nothing that can be read changes, and where it is not
// understood, nothing happens.
package prefetch

import "unsafe"

// Lines asks for the line of the cache (64 bytes) at each of the addresses. They
// need not be valid.
func Lines(addresses []unsafe.Pointer) {
	if len(addresses) > 0 {
		lines(&addresses[0], len(addresses))
	}
}
