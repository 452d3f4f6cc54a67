//go:build !unix

package child

import (
	"os"
	"syscall"
)

// OwnGroup does nothing here.
func OwnGroup() *syscall.SysProcAttr { return nil }

// KillGroup kills a program.
func KillGroup(p *os.Process) { p.Kill() }
