//go:build unix

package child

import (
	"os"
	"syscall"
)

// OwnGroup gives a program a process group of its own: it gets no interrupt of the terminal, and KillGroup ends all that it has
// started.
func OwnGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// KillGroup kills a program that was started with OwnGroup, and what it has started.
func KillGroup(p *os.Process) { syscall.Kill(-p.Pid, syscall.SIGKILL) }
