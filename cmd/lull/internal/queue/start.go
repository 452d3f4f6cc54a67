package queue

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
)

const program = "lull-queue"

// Start replaces this process with lull-queue, and returns only if that fails. On Windows,
// where no process can be replaced, it runs lull-queue to its end.
func Start(env cli.Env, args []string) error {
	path, err := find()
	if err != nil {
		return fmt.Errorf("%s is not installed: go install github.com/lullgo/lull/cmd/lull/%[1]s@latest (in a checkout of lull without @latest)", program)
	}
	if err := syscall.Exec(path, append([]string{path}, args...), os.Environ()); !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("%s: %w", path, err)
	}
	c := exec.Command(path, args...) // without the context: an interrupt reaches it as well
	c.Stdin, c.Stdout, c.Stderr = env.Stdin, env.Stdout, env.Stderr
	err = c.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		return cli.Fail(ended.ExitCode(), errors.New("")) // it has printed its error
	}
	return err
}

// find returns the path of lull-queue: beside lull, or in PATH.
func find() (string, error) {
	if self, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), program)); err == nil {
			return path, nil
		}
	}
	return exec.LookPath(program)
}
