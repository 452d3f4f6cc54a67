//go:build !unix

package dbserver

import (
	"os"
	"syscall"
)

const (
	kill = iota
	freeze
	thaw
)

func unprivileged(string, string) (*syscall.SysProcAttr, error) { return nil, nil }

// signal can only kill here.
func signal(pid, what int) {
	if p, err := os.FindProcess(pid); err == nil && what == kill {
		p.Kill()
	}
}
