//go:build !linux

package proxy

import (
	"syscall"
	"time"
)

func shareAddress(_, _ string, _ syscall.RawConn) error { return nil }
func giveToNext(syscall.RawConn) error                  { return nil }
func monotonic() time.Duration                          { return 0 }
func dropPages()                                        {}
