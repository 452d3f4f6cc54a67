// Package hugepage asks the system to back large pieces of memory with large
// pages. Whoever walks through gigabytes in no order spends most of the time on
// finding out where each page of 4 KiB is; with pages of 2 MiB that table fits the
// caches. It is advice: where a system takes none, nothing happens.
package hugepage

import "unsafe"

// least is the size from which asking is worth while.
const least = 4 << 20

// Advise asks for large pages behind s. Best before s is first written to.
func Advise[T any](s []T) {
	if size := uintptr(len(s)) * unsafe.Sizeof(*new(T)); size >= least {
		advise(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), size))
	}
}
