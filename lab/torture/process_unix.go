//go:build unix

package torture

import (
	"os"
	"os/exec"
	"syscall"
)

// alone gives a process a group of its own, so that end also ends what it starts.
func alone(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// end ends a process that alone has prepared, and its group.
func end(p *os.Process) { syscall.Kill(-p.Pid, syscall.SIGKILL) }
