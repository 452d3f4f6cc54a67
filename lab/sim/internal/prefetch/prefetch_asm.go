//go:build amd64 || arm64

package prefetch

import "unsafe"

//go:noescape
func lines(first *unsafe.Pointer, n int)
