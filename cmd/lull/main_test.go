package main

import (
	"io"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// parse reads demo flags as the program does.
func parse(t *testing.T, args ...string) setting {
	t.Helper()
	var c commands
	parser, err := kong.New(&c, kong.Writers(io.Discard, io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(append([]string{"demo"}, args...)); err != nil {
		t.Fatal(err)
	}
	s, err := c.Demo.setting()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestHelp(t *testing.T) {
	_, want, _ := lullProgram(t.Context(), "--help")
	last := 0
	for _, command := range []string{"\n  demo", "\n  simulate", "\n  lint", "\n  convert", "\n  queue", "\n  version", "\n  help"} {
		at := strings.Index(want, command)
		if at < last {
			t.Errorf("%q is missing or out of order:\n%s", command, want)
		}
		last = at
	}
	for _, args := range [][]string{{}, {"help"}, {"-h"}} {
		if code, got, _ := lullProgram(t.Context(), args...); code != exitOK || got != want {
			t.Errorf("%v: exit code %d, printed\n%s", args, code, got)
		}
	}
	_, want, _ = lullProgram(t.Context(), "demo", "--help")
	if code, got, _ := lullProgram(t.Context(), "help", "demo"); code != exitOK || got != want || !strings.Contains(got, "--outage") {
		t.Errorf("help demo: exit code %d, printed\n%s", code, got)
	}
	if code, got, _ := lullProgram(t.Context(), "help", "simulate"); code != exitOK || !strings.Contains(got, "--report") {
		t.Errorf("help simulate: exit code %d, printed\n%s", code, got)
	}
	for _, name := range append(flagNames(allClients), flagNames(tailClients)...) {
		if !strings.Contains(want, name) {
			t.Errorf("the help of demo does not name client %s", name)
		}
	}
	for line := range strings.Lines(want) {
		if len(line) > 81 {
			t.Errorf("too wide: %s", line)
		}
	}
}

func TestVersion(t *testing.T) {
	if code, got, _ := lullProgram(t.Context(), "version"); code != exitOK || !strings.HasPrefix(got, "lull ") {
		t.Errorf("exit code %d, printed %q", code, got)
	}
}

func TestUnknownCommands(t *testing.T) {
	for _, args := range [][]string{{"dmo"}, {"help", "dmo"}, {"--json"}} {
		code, stdout, stderr := lullProgram(t.Context(), args...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, args[len(args)-1]) || !strings.Contains(stderr, "demo, simulate, lint, convert, queue, version, help") {
			t.Errorf("%v: exit code %d, stdout %q, stderr\n%s", args, code, stdout, stderr)
		}
	}
}
