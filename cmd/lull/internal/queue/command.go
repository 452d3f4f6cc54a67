// Package queue starts the program lull-queue, for lull queue, lull worker, and commands whose
// cells are flown by workers (--workers URL). It stands in a module of its own (cmd/lull/lull-queue): with
// it the other commands would have to download and link the clients of three brokers.
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

// Command lists lull queue, or lull worker, among the commands. Those of lull-queue are run.
type Command struct {
	Any struct{} `cmd:"" hidden:""`
}

// Arguments returns the arguments of lull-queue, and reports whether those of lull are for
// it: "queue inspect" and "help queue inspect" are, and "simulate --workers nats://host".
func Arguments(args []string) ([]string, bool) {
	if len(args) > 0 && args[0] == "help" {
		args = append(args[1:len(args):len(args)], "--help")
	}
	i := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	switch {
	case i < 0:
		return nil, false
	case args[i] == "queue":
		return slices.Concat(args[:i], args[i+1:]), true
	case args[i] == "worker":
		return args, true
	case args[i] == "simulate" || args[i] == "battery":
		return args, remote(args)
	}
	return nil, false
}

// remote reports whether --workers has a URL.
func remote(args []string) bool {
	for i, arg := range args {
		value, found := strings.CutPrefix(arg, "--workers=")
		if arg == "--workers" && i+1 < len(args) {
			value, found = args[i+1], true
		}
		if found && strings.Contains(value, "://") {
			return true
		}
	}
	return false
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
