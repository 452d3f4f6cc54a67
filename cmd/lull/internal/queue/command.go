// Package queue is the command lull queue. It starts the program lull-queue, which stands
// in a module of its own (cmd/lull/lull-queue): with it the other commands would have to
// download and link the clients of three brokers.
package queue

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
)

const program = "lull-queue"

// Command lists lull queue among the commands. The subcommands are those of lull-queue.
type Command struct {
	Any struct{} `cmd:"" hidden:""`
}

// Arguments returns the arguments of lull-queue, and reports whether those of lull are for
// it: "queue inspect" and "help queue inspect" are.
func Arguments(args []string) ([]string, bool) {
	if len(args) > 0 && args[0] == "help" {
		args = append(args[1:len(args):len(args)], "--help")
	}
	i := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	if i < 0 || args[i] != "queue" {
		return nil, false
	}
	return slices.Concat(args[:i], args[i+1:]), true
}

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
