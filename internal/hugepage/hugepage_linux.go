package hugepage

import (
	"syscall"
	"unsafe"
)

const pageSize = 2 << 20

// advise rounds inward to whole large pages. The error is of no interest: a
// kernel without them returns an error.
func advise(b []byte) {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	skip := -start & (pageSize - 1)
	if whole := (uintptr(len(b)) - skip) &^ (pageSize - 1); skip < uintptr(len(b)) && whole > 0 {
		_ = syscall.Madvise(b[skip:skip+whole], syscall.MADV_HUGEPAGE)
	}
}
