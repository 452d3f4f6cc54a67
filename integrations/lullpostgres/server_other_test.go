//go:build !unix

package lullpostgres

import "syscall"

type sysProcAttr = syscall.SysProcAttr

func unprivileged(string) (*sysProcAttr, error) { return nil, nil }
