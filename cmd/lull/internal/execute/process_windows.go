package execute

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// passedOn: consoles send Ctrl-C to every process that is attached to them.
var passedOn = []os.Signal{os.Interrupt, syscall.SIGTERM}

func endsCall(os.Signal) bool { return true }

func setGroup(*exec.Cmd, bool) {}

// send does nothing: the console has sent the command what it sent to lull.
func send(*exec.Cmd, bool, os.Signal) {}

// terminate ends the command. There is no gentler way.
func terminate(c *exec.Cmd, _ bool) { _ = c.Process.Kill() }
func kill(c *exec.Cmd, own bool)    { terminate(c, own) }

func endOf(state *os.ProcessState) attemptError { return attemptError{code: state.ExitCode()} }

func startCode(err error) int {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return exitNotFound
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.Errno(193)): // ERROR_BAD_EXE_FORMAT
		return exitNotExecutable
	}
	return exitOwn
}
