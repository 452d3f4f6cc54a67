//go:build !windows

package execute

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// passedOn are the signals that a command gets. Those of job control act on lull as well.
var passedOn = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGWINCH,
}

func endsCall(s os.Signal) bool {
	return s == syscall.SIGINT || s == syscall.SIGTERM || s == syscall.SIGHUP || s == syscall.SIGQUIT
}

// setGroup gives the command a process group of its own, so that signals reach the processes that it starts too.
func setGroup(c *exec.Cmd, own bool) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: own} }

// send passes a signal on. A command in the terminal's own process group has had those that the keyboard sends.
func send(c *exec.Cmd, own bool, s os.Signal) {
	if !own && (s == syscall.SIGINT || s == syscall.SIGQUIT || s == syscall.SIGWINCH) {
		return
	}
	signalTo(c, own, s.(syscall.Signal))
}

func signalTo(c *exec.Cmd, own bool, s syscall.Signal) {
	if own {
		_ = syscall.Kill(-c.Process.Pid, s)
		return
	}
	_ = c.Process.Signal(s)
}

func terminate(c *exec.Cmd, own bool) { signalTo(c, own, syscall.SIGTERM) }
func kill(c *exec.Cmd, own bool)      { signalTo(c, own, syscall.SIGKILL) }

func endOf(state *os.ProcessState) attemptError {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return attemptError{signal: int(status.Signal()), name: unix.SignalName(status.Signal())}
	}
	return attemptError{code: state.ExitCode()}
}

func startCode(err error) int {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, syscall.ENOENT):
		return exitNotFound
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.ENOEXEC), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR):
		return exitNotExecutable
	}
	return exitOwn
}
