//go:build !unix

package rabbitmq

import "syscall"

func ownGroup() *syscall.SysProcAttr { return nil }
