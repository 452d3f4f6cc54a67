//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/internal/must"
	"golang.org/x/sys/unix"
)

// onTerminal runs the program with a terminal as its output, and returns what it wrote there.
func onTerminal(t *testing.T, variables map[string]string, args ...string) string {
	t.Helper()
	master := must.Have(os.OpenFile("/dev/ptmx", os.O_RDWR, 0))
	defer master.Close()
	fd := int(master.Fd())
	number := must.Have(unix.IoctlGetInt(fd, unix.TIOCGPTN))
	must.Succeed(unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	slave := must.Have(os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0))
	must.Succeed(unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 70}))
	text := make(chan string)
	go func() {
		all, _ := io.ReadAll(master) // it ends with an error when nobody has the terminal open
		text <- string(all)
	}()
	program(cli.Env{Context: t.Context(), Stdout: slave, Stderr: slave, Getenv: func(name string) string { return variables[name] }}, args)
	slave.Close()
	return strings.ReplaceAll(<-text, "\r\n", "\n")
}

// On a terminal there are colours, unless the user does not want them. Without them the text is
// what a file gets.
func TestColours(t *testing.T) {
	t.Chdir(t.TempDir())
	must.Succeed(os.WriteFile("retry.yaml", []byte("dependencies:\n  api: {attempts: 6}\n"), 0o644))
	for args, want := range map[string]string{
		"lint --help":                    "\n\x1b[1mFlags:\x1b[0m\n",
		"lint retry.yaml":                ": \x1b[1m\x1b[33mwarning\x1b[0m: ",
		"lint --bogus":                   "\x1b[1m\x1b[31mlull:\x1b[0m unknown flag",
		"convert retry.yaml --to grpc":   ": \x1b[1m\x1b[31mlost\x1b[0m: ",
		"convert retry.yaml --to=nobody": "\x1b[1m\x1b[31mlull:\x1b[0m --to is",
	} {
		if got := onTerminal(t, nil, strings.Fields(args)...); !strings.Contains(got, want) {
			t.Errorf("lull %s: want %q in\n%q", args, want, got)
		}
		for _, variables := range []map[string]string{{"NO_COLOR": "1"}, {"TERM": "dumb"}} {
			if got := onTerminal(t, variables, strings.Fields(args)...); strings.Contains(got, "\x1b") || len(got) < 50 {
				t.Errorf("lull %s, %v: %q", args, variables, got)
			}
		}
		if got := onTerminal(t, map[string]string{"NO_COLOR": ""}, strings.Fields(args)...); !strings.Contains(got, want) {
			t.Errorf("lull %s: an empty NO_COLOR is no wish:\n%q", args, got)
		}
	}
	for line := range strings.Lines(onTerminal(t, nil, "help", "lint")) {
		if strings.HasPrefix(line, "      --") && len(line) > 71 {
			t.Errorf("wider than the terminal: %q", line)
		}
	}
}
