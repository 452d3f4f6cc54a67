package queuetest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
)

// CommandLine has the arguments with which lull reaches the queues at a Target's address.
type CommandLine struct {
	Broker  string   // the URL
	Refused string   // likewise, of a broker that is not there
	Dead    string   // the queue of dead letters
	To      string   // the queue
	Env     []string // NAME=value, besides those of this process
	// Mistaken are invalid targets, each with a part of the program's error.
	Mistaken map[string]string
	// Held is how long the letters of a killed process stay out. Zero: until its connection ends.
	Held time.Duration
	// Killed is the URL for processes that are ended half-way, such as a proxy that shortens leases. Empty: Broker.
	Killed string
}

// Command has lull inspect and redrive the dead letters of a real broker, ended half-way by an interrupt and by SIGKILL, and run again
// until all is done.
func Command(t *testing.T, target Target, of func(address string) CommandLine) {
	if raced && os.Getenv(allVariable) == "" {
		t.Skip("not with the race detector, unless " + allVariable + " is set: the program is another process")
	}
	program := Program(t)
	b := newTester(t, target.withDefaults(), target.withDefaults().Orders[0])
	line := of(b.address)
	lull := func(args ...string) *exec.Cmd {
		c := exec.CommandContext(b.ctx, program, args...)
		c.Env = append(os.Environ(), line.Env...)
		return c
	}
	const n = 40
	all := b.makeLetters(n)
	b.checkMistakes(lull, line)
	b.checkInspect(lull, line, n)

	redrive := func(broker string) *exec.Cmd { // two seconds in all
		return lull("queue", "redrive", broker, line.Dead, "--to", line.To, "--quiet", "--json", "--rate", "20")
	}
	killed := cmp.Or(line.Killed, line.Broker)
	seen := map[string]int{}
	b.equal("the exit code after an interrupt", b.interruptRedrive(redrive(killed), os.Interrupt, 5, seen), 1)
	b.interruptRedrive(redrive(killed), os.Kill, 10, seen)
	moved := 0
	for back, left := time.Now().Add(line.Held), n; left > 0; {
		all := time.Now().After(back) // all letters can be read
		out, code, stderr := b.run(redrive(line.Broker))
		if code != 0 {
			b.Fatalf("redrive: exit code %d, %s", code, stderr)
		}
		var r struct{ Moved int }
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			b.Fatalf("redrive printed %s: %v", out, err)
		}
		moved += r.Moved
		time.Sleep(time.Until(back)) // until then, no letters would not mean that none are left
		if left = len(b.letters(false)); left > 0 && all && r.Moved == 0 {
			b.Fatalf("a redrive left %d letters", left)
		}
	}
	if moved < 1 || moved >= n {
		b.Errorf("%d of %d letters were moved after the interruptions: this test tells nothing", moved, n)
	}
	b.drainInto(seen, n)
	twice := 0
	for _, body := range all {
		switch {
		case seen[body] == 0:
			b.Errorf("%s is lost", body)
		case seen[body] > 1:
			twice++
		}
	}
	if b.can.Deduplicates && twice > 0 || len(seen) != n {
		b.Errorf("%d messages of %d letters, %d of them more than once", len(seen), n, twice)
	}
	b.Logf("%d letters moved, interrupted twice: %d messages came more than once", n, twice)
}

var built struct {
	once   sync.Once
	folder string
	err    error
}

// Program builds lull, and lull-queue beside it, once for the tests of a process, and returns the path of lull. Main removes both.
func Program(t testing.TB) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("interrupts cannot be sent here, and lull cannot start another program in its place")
	}
	built.once.Do(func() {
		if built.folder, built.err = os.MkdirTemp("", "queuetest"); built.err != nil {
			return
		}
		out, err := exec.Command("go", "build", "-pgo=off", "-buildvcs=false", "-ldflags=-s -w", "-o", built.folder,
			"github.com/lullgo/lull/cmd/lull", "github.com/lullgo/lull/cmd/lull/lull-queue").CombinedOutput()
		if err != nil {
			built.err = fmt.Errorf("go build: %w\n%s", err, out)
		}
	})
	if built.err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(built.err)
		}
		t.Skipf("the program cannot be built here, outside of its workspace: %v", built.err)
	}
	return filepath.Join(built.folder, "lull")
}

func (b *tester) run(c *exec.Cmd) (stdout string, code int, stderr string) {
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return out.String(), failed.ExitCode(), errs.String()
	}
	if err != nil {
		b.Fatal(err)
	}
	return out.String(), 0, errs.String()
}

// interruptRedrive ends a redrive after that many more messages. It receives them and counts them in seen. It returns the exit code.
func (b *tester) interruptRedrive(c *exec.Cmd, how os.Signal, after int, seen map[string]int) int {
	var errs bytes.Buffer
	c.Stderr = &errs
	must.Succeed(c.Start())
	for range after {
		d := b.receiveOne()
		seen[string(d.Body)]++
		b.ack(d)
	}
	c.Process.Signal(how)
	c.Wait()
	if how == os.Interrupt && !strings.HasPrefix(errs.String(), "lull: interrupted: ") {
		b.Errorf("after an interrupt it says %s", errs.String())
	}
	return c.ProcessState.ExitCode()
}

// checkMistakes: each mistake has one clear line, and an exit code.
func (b *tester) checkMistakes(lull func(...string) *exec.Cmd, line CommandLine) {
	b.Helper()
	type mistake struct {
		args []string
		code int
		want string
	}
	all := []mistake{
		{[]string{"inspect", line.Broker, line.Dead + "-that-is-not-there"}, 4, "there is no such queue"},
		{[]string{"redrive", line.Broker, line.Dead + "-that-is-not-there", "--to", line.To}, 4, "there is no such queue"},
		{[]string{"redrive", line.Broker, line.Dead, "--to", line.To + "-that-is-not-there"}, 4, "there is no such queue"},
		{[]string{"inspect", line.Refused, line.Dead}, 3, "cannot be reached"},
		{[]string{"redrive", line.Refused, line.Dead, "--to", line.To}, 3, "cannot be reached"},
		{[]string{"inspect", line.Broker, line.Dead, "--older-than", "long"}, 2, "--older-than"},
	}
	for to, want := range line.Mistaken {
		all = append(all, mistake{[]string{"redrive", line.Broker, line.Dead, "--to", to}, 4, want})
	}
	for _, c := range all {
		began := time.Now()
		out, code, stderr := b.run(lull(append([]string{"queue"}, c.args...)...))
		if code != c.code || out != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "lull: ") || !strings.Contains(stderr, c.want) {
			b.Errorf("lull queue %q: exit code %d, want %d and one line with %q; it says\n%s%s", c.args, code, c.code, c.want, out, stderr)
		}
		if took := time.Since(began); took > time.Minute {
			b.Errorf("lull queue %q took %v to fail", c.args, took)
		}
	}
	b.equal("letters after mistakes", len(b.letters(false)) > 0, true)
}

// checkInspect compares what lull queue inspect shows with the letters.
func (b *tester) checkInspect(lull func(...string) *exec.Cmd, line CommandLine, n int) {
	b.Helper()
	out, code, stderr := b.run(lull("queue", "inspect", line.Broker, line.Dead, "--json", "--reason", "odd"))
	if code != 0 || stderr != "" {
		b.Fatalf("inspect: exit code %d, %s", code, stderr)
	}
	ids := map[string]bool{}
	for text := range strings.Lines(out) {
		var l struct{ ID, Reason, Body string }
		if err := json.Unmarshal([]byte(text), &l); err != nil || l.Reason != "odd" || !strings.HasPrefix(l.Body, "letter ") {
			b.Errorf("inspect printed %s (%v)", text, err)
		}
		ids[l.ID] = true
	}
	b.equal("letters that inspect shows", len(ids), n/2)
	b.equal("letters after inspect", len(b.eventually(n)), n)
}
