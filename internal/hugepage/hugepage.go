// Package hugepage asks the system to back large pieces of memory with large
// pages. A program that reads gigabytes in random order spends most of the time on
// finding the address of each page of 4 KiB. With pages of 2 MiB that table fits the
// caches. It is advice: a system that does not support it ignores it.
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
