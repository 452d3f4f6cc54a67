//go:build servers

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/must"
)

// lull queue starts the program lull-queue with the other arguments. Its output and exit code
// are those of lull.
func TestQueueStartsLullQueue(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no scripts to run here")
	}
	lull, folder := programFolder(t), t.TempDir()
	script := "#!/bin/sh\necho \"given: $*\"\necho said >&2\nexit 4\n"
	must.Succeed(os.WriteFile(filepath.Join(folder, "lull-queue"), []byte(script), 0o755))
	for args, want := range map[string]string{
		"queue inspect a queue --limit 1":      "inspect a queue --limit 1",
		"queue redrive a b --to=queue":         "redrive a b --to=queue",
		"worker nats://a --quiet":              "worker nats://a --quiet",
		"simulate x --workers nats://a --json": "simulate x --workers nats://a --json",
		"battery --quick --workers=tls://a":    "battery --quick --workers=tls://a",
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

// What lull exec passes on is no success either, if it could be written in part.
func TestRule24AnOutputOfExecThatIsWrittenInPart(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no echo to run here")
	}
	cannotBeWritten(t, "exec -- echo hello")
}
