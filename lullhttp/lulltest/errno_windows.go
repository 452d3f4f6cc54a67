package lulltest

import "syscall"

// Those of Winsock: no call returns the POSIX names that package syscall defines on Windows.
const (
	refused = syscall.Errno(10061)
	reset   = syscall.WSAECONNRESET
)
