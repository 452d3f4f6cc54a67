package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
)

// lullProgram runs the program and returns what it printed.
func lullProgram(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	return lullWithInput(ctx, nil, args...)
}

// lullWithInput is lullProgram with standard input.
func lullWithInput(ctx context.Context, stdin io.Reader, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = program(cli.Env{Context: ctx, Stdin: stdin, Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" }}, args)
	return code, out.String(), errs.String()
}

func TestHelp(t *testing.T) {
	_, want, _ := lullProgram(t.Context(), "--help")
	last := 0
	for _, command := range []string{"\n  demo", "\n  simulate", "\n  battery", "\n  lint", "\n  convert", "\n  schema", "\n  exec", "\n  torture", "\n  queue", "\n  version", "\n  help"} {
		at := strings.Index(want, command)
		if at < last {
			t.Errorf("%q is missing or out of order:\n%s", command, want)
		}
		last = at
	}
	for _, args := range [][]string{{}, {"help"}, {"-h"}} {
		if code, got, _ := lullProgram(t.Context(), args...); code != cli.OK || got != want {
			t.Errorf("%v: exit code %d, printed\n%s", args, code, got)
		}
	}
	_, want, _ = lullProgram(t.Context(), "demo", "--help")
	if code, got, _ := lullProgram(t.Context(), "help", "demo"); code != cli.OK || got != want || !strings.Contains(got, "--outage") {
		t.Errorf("help demo: exit code %d, printed\n%s", code, got)
	}
	if code, got, _ := lullProgram(t.Context(), "help", "simulate"); code != cli.OK || !strings.Contains(got, "--report") {
		t.Errorf("help simulate: exit code %d, printed\n%s", code, got)
	}
	for line := range strings.Lines(want) {
		if len(line) > 81 {
			t.Errorf("too wide: %s", line)
		}
	}
}

func TestVersion(t *testing.T) {
	for _, arg := range []string{"version", "--version"} {
		if code, got, _ := lullProgram(t.Context(), arg); code != cli.OK || !strings.HasPrefix(got, "lull ") {
			t.Errorf("%s: exit code %d, printed %q", arg, code, got)
		}
	}
}

func TestUnknownCommands(t *testing.T) {
	for _, args := range [][]string{{"dmo"}, {"help", "dmo"}, {"--json"}} {
		code, stdout, stderr := lullProgram(t.Context(), args...)
		if code != cli.Misused || stdout != "" || !strings.Contains(stderr, args[len(args)-1]) || !strings.Contains(stderr, "demo, simulate, battery, lint, convert, schema, exec, torture, queue, version, help") {
			t.Errorf("%v: exit code %d, stdout %q, stderr\n%s", args, code, stdout, stderr)
		}
	}
}

// silent is a reader that blocks until over is closed.
type silent struct{ asked, over chan struct{} }

func (s silent) Read([]byte) (int, error) {
	close(s.asked)
	<-s.over
	return 0, io.EOF
}

// The first Ctrl-C ends lint and convert, whatever they wait for.
func TestTheFirstInterruptEndsLintAndConvert(t *testing.T) {
	for command, want := range map[string]int{"lint": cli.Misused, "convert": cli.Failed} {
		s := silent{make(chan struct{}), make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-s.asked; cancel() }()
		code, out, errs := lullWithInput(ctx, s, command, "-")
		close(s.over)
		if code != want || out != "" || errs != "lull: interrupted: nothing is written\n" {
			t.Errorf("%s: exit code %d, printed %q and %q", command, code, out, errs)
		}
	}
}

// lull queue starts the program lull-queue with the other arguments. Its output and exit code
// are those of lull.
func TestQueueStartsLullQueue(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no scripts to run here")
	}
	lull, folder := programFolder(t), t.TempDir()
	script := "#!/bin/sh\necho \"given: $*\"\necho said >&2\nexit 4\n"
	if err := os.WriteFile(filepath.Join(folder, "lull-queue"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"queue":                     "",
		"queue inspect a --limit 1": "inspect a --limit 1",
		"queue --help":              "--help",
		"help queue redrive":        "redrive --help",
		"--help queue":              "--help",
	} {
		var out, errs bytes.Buffer
		c := exec.CommandContext(t.Context(), filepath.Join(lull, "lull"), strings.Fields(args)...)
		c.Env, c.Stdout, c.Stderr = append(os.Environ(), "PATH="+folder), &out, &errs
		if err := c.Run(); err == nil || c.ProcessState.ExitCode() != 4 {
			t.Errorf("lull %s: %v, want exit code 4", args, err)
		}
		if got := out.String(); got != "given: "+want+"\n" || errs.String() != "said\n" {
			t.Errorf("lull %s: lull-queue was %s%s", args, got, errs.String())
		}
	}
}

// Without lull-queue the error has the command that installs it.
func TestQueueIsNotInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, args := range [][]string{{"queue", "inspect", "nats://localhost", "DEAD"}, {"help", "queue"}} {
		code, out, errs := lullProgram(t.Context(), args...)
		const want = "lull: lull-queue is not installed: go install github.com/lullgo/lull/cmd/lull/lull-queue@latest (in a checkout of lull without @latest)\n"
		if code != cli.Failed || out != "" || errs != want {
			t.Errorf("%v: exit code %d, printed %q and %q", args, code, out, errs)
		}
	}
}
