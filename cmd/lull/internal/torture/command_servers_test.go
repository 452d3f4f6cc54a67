//go:build servers

package torture

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/clitest"
	"github.com/lullgo/lull/internal/must"
)

func TestCard(t *testing.T) {
	folder := t.TempDir()
	page, junit := filepath.Join(folder, "page.html"), filepath.Join(folder, "junit.xml")
	code, out, errs := run(t, "--client", "net/http,lullhttp", "--case", "bodies,status-503", "--report", page, "--junit", junit, "--all", "--quiet")
	if code != cli.OK || errs != "" {
		t.Errorf("exit code %d, %s", code, errs)
	}
	for _, want := range []string{"net/http go1", "lullhttp ", "bodies                 pass  6 pass", "status-503: 2 attempts, and the call succeeded", "The page is in "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing:\n%s", want, out)
		}
	}
	clitest.Width(t, out, 200) // a folder of the test is in it
	for _, name := range []string{page, junit} {
		if text, err := os.ReadFile(name); err != nil || !strings.Contains(string(text), "body-put-large") {
			t.Errorf("%s: %v, %d bytes", name, err, len(text))
		}
	}
}

// JSON can be kept, and printed again without a run.
func TestFromJSON(t *testing.T) {
	code, out, errs := run(t, "--client", "lullhttp", "--case", "body-put", "--json", "--quiet")
	if code != cli.OK || !json.Valid([]byte(out)) {
		t.Fatalf("exit code %d, printed\n%s%s", code, out, errs)
	}
	kept := clitest.Write(t, filepath.Join(t.TempDir(), "cards.json"), strings.ReplaceAll(out, `"grade": "pass"`, `"grade": "fail"`))
	code, out, errs = run(t, "--from", kept, "--timeline")
	if code != cli.Failed || errs != "lull: 1 case failed\n" || !strings.Contains(out, "attempt 3 arrives: PUT") {
		t.Errorf("exit code %d, printed\n%s%s", code, out, errs)
	}
}

// A run that is interrupted keeps the cards that were finished, and another goes on.
func TestKeep(t *testing.T) {
	folder := t.TempDir()
	kept := filepath.Join(folder, "kept.json")
	ctx, cancel := context.WithCancel(t.Context())
	// The second client never ends. The run is interrupted when the card of the first is there.
	list := clitest.Write(t, filepath.Join(folder, "clients"), "stuck\t1\tsleep 60 {url}\n")
	args := []string{"--client", "net/http", "--adapters", list, "--case", "once-400", "--keep", kept, "--all", "--quiet"}
	go func() {
		for {
			if _, err := os.Stat(kept); err == nil {
				cancel()
				return
			}
			select {
			case <-time.After(time.Millisecond):
			case <-t.Context().Done():
				return
			}
		}
	}()
	code, out, errs := clitest.Run[Command](cli.Env{Context: ctx}, "torture", args...)
	if code != cli.Failed || !strings.Contains(out, "once-400: one attempt") || !strings.Contains(errs, "stuck: context canceled") {
		t.Errorf("exit code %d, printed\n%s%s", code, out, errs)
	}

	// The card of another version of a client, or with fewer cases, is replaced; this one is not.
	text := must.Have(os.ReadFile(kept))
	marked := strings.ReplaceAll(string(text), "one attempt", "kept from before")
	if marked == string(text) {
		t.Fatalf("the verdict is not in\n%s", text)
	}
	again := func(change func(string) string, args ...string) string {
		clitest.Write(t, kept, change(marked))
		code, out, errs := run(t, append([]string{"--client", "net/http", "--keep", kept, "--all", "--quiet"}, args...)...)
		if code != cli.OK || errs != "" {
			t.Errorf("exit code %d, printed\n%s%s", code, out, errs)
		}
		return out
	}
	same := func(s string) string { return s }
	older := func(s string) string { return strings.Replace(s, `"version": "`, `"version": "older than `, 1) }
	if out := again(same, "--case", "once-400"); !strings.Contains(out, "once-400: kept from before") {
		t.Errorf("it was run again:\n%s", out)
	}
	for _, out := range []string{again(older, "--case", "once-400"), again(same, "--case", "once-400,once-404")} {
		if !strings.Contains(out, "once-400: one attempt") {
			t.Errorf("it was not run again:\n%s", out)
		}
	}
	if text, err := os.ReadFile(kept); err != nil || strings.Count(string(text), `"name": "net/http"`) != 1 || !strings.Contains(string(text), "once-404") {
		t.Errorf("%v, kept is\n%s", err, text)
	}
}

// A card of what was not seen is no success: a client that does not start, or dies in the midst of a case, however right it
// would be not to repeat the call. Nor are files that are read in part.
func TestRule24WhatCouldNotBeGraded(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no sh to run here")
	}
	folder := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(folder, name)
		must.Succeed(os.WriteFile(name, []byte(text), 0o700))
		return name
	}
	code, card, errs := run(t, "--client", "net/http", "--case", "once-422", "--json", "--quiet")
	if code != cli.OK {
		t.Fatalf("exit code %d, %s", code, errs)
	}
	dies := file("dies", "#!/bin/sh\necho ready\nread line\necho out of memory >&2\n")
	ends := file("ends", "#!/bin/sh\necho no library >&2\n")
	for _, c := range []struct {
		args       []string
		want, says string // in the card, as an error
	}{
		{[]string{"--", dies}, "once-422: the client ended in the midst of the case: out of memory", "2 cases failed"},
		{[]string{"--", ends}, "0 fail, 2 do not apply", "client: cases were not graded, the first is once-422: the client does not start: it ended before it was ready: no library"},
		{[]string{"--", "sh", "-c", "kill -9 $$", "{url}"}, "once-422: the client died: signal: killed", "2 cases failed"},
		{[]string{"--from", file("two.json", card+card)}, "", "something stands after the cards"},
		{[]string{"--from", file("cut.json", card[:len(card)-3])}, "", "unexpected EOF"},
		{[]string{"--adapters", file("long", strings.Repeat("# a long remark\n", 1<<17)+"curl\t8\tcurl {url}\n")}, "", "has more than 1048576 bytes"},
	} {
		code, out, errs := run(t, append([]string{"--case", "once-422,once-success", "--quiet"}, c.args...)...)
		if code == cli.OK || !strings.Contains(strings.Join(strings.Fields(out), " "), c.want) || !strings.Contains(errs, c.says) {
			t.Errorf("%q: exit code %d, printed\n%s%s\nwant %q and %q", c.args, code, out, errs, c.want, c.says)
		}
	}
}

// Without a client it waits for some, and prints their cards when it is interrupted.
func TestStanding(t *testing.T) {
	var commands struct {
		Torture Command `cmd:""`
	}
	in, out := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() {
		env := cli.Env{Context: ctx, Stdout: out, Stderr: io.Discard, Getenv: func(string) string { return "" }}
		code <- cli.Run(env, &commands, []string{"torture", "--listen", "127.0.0.1:0", "--case", "once-400"})
		out.Close()
	}()
	lines := bufio.NewScanner(in)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "Ctrl-C") {
		if base, ok := strings.CutPrefix(lines.Text(), "What was seen so far:"); ok {
			for range 2 {
				resp := must.Have(http.Get(strings.TrimSpace(base) + "t/once-400/mine"))
				resp.Body.Close()
			}
		}
	}
	cancel()
	var rest strings.Builder
	for lines.Scan() {
		rest.WriteString(lines.Text() + "\n")
	}
	if got := <-code; got != cli.Failed || !strings.Contains(rest.String(), "once-400: 2 attempts") {
		t.Errorf("exit code %d, printed\n%s", got, &rest)
	}
}
