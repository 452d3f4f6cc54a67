//go:build !unix

package torture

import (
	"os"
	"os/exec"
)

func alone(*exec.Cmd) {}

// end ends a process.
func end(p *os.Process) { p.Kill() }
