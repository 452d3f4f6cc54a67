//go:build unix

package lulltest

import "syscall"

const (
	refused = syscall.ECONNREFUSED
	reset   = syscall.ECONNRESET
)
