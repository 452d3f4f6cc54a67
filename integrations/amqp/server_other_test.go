//go:build !unix

package lullamqp

import "syscall"

func ownGroup() *syscall.SysProcAttr { return nil }
