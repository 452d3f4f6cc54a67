package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/lull-queue/internal/brokers"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/queue"
)

// lullQueue runs lull queue, and returns what it printed.
func lullQueue(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	env := cli.Env{Context: ctx, Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" }}
	code = program(env, args)
	return code, out.String(), errs.String()
}

// A memoryBroker has two queues in memory: "dead" and "orders".
type memoryBroker struct {
	dead, orders *queue.MemoryBroker
	unsendable   string // a body that orders never takes
	cut          error  // why the dead letters cannot be read to the end. Nil: they can
}

func (m *memoryBroker) Letters(_ context.Context, name string) (queue.DeadLetters, error) {
	if name != "dead" {
		return nil, brokers.ErrNoQueue
	}
	if m.cut != nil {
		return queue.Scan(&cutOff{MemoryBroker: m.dead, err: m.cut}, queue.ScanConfig{})
	}
	return queue.Scan(m.dead, queue.ScanConfig{})
}

// cutOff is a queue whose first answer is its last.
type cutOff struct {
	*queue.MemoryBroker
	err error
	n   int
}

func (c *cutOff) Receive(ctx context.Context, w queue.Want) ([]*queue.Delivery, error) {
	if c.n++; c.n == 1 {
		return c.MemoryBroker.Receive(ctx, w)
	}
	time.Sleep(2500 * time.Millisecond)
	return nil, c.err
}

func (m *memoryBroker) Sender(_ context.Context, name string) (queue.Sender, error) {
	if name != "orders" {
		return nil, brokers.ErrNoQueue
	}
	return m, nil
}

func (m *memoryBroker) Send(ctx context.Context, o queue.Outgoing) error {
	if m.unsendable != "" && string(o.Body) == m.unsendable {
		return lull.Permanent(errors.New("too large"))
	}
	return m.orders.Send(ctx, o)
}

func (m *memoryBroker) Close() error { return nil }

// die makes a dead letter.
func (m *memoryBroker) die(t *testing.T, body string, e queue.Envelope) {
	t.Helper()
	must.Succeed(m.dead.Send(t.Context(), queue.Outgoing{Body: []byte(body), Headers: queue.LetterHeaders(queue.Headers{"kind": "order"}, &e)}))
}

// withLetters runs f with a broker at test://broker that has n letters, in virtual time.
func withLetters(t *testing.T, n int, f func(t *testing.T, m *memoryBroker)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := &memoryBroker{}
		for _, q := range []**queue.MemoryBroker{&m.dead, &m.orders} {
			var err error
			if *q, err = queue.NewMemoryBroker(queue.MemoryBrokerConfig{}); err != nil {
				t.Fatal(err)
			}
		}
		brokers.Kinds["test"] = func(context.Context, *url.URL) (brokers.Broker, error) { return m, nil }
		defer delete(brokers.Kinds, "test")
		now := time.Now()
		for i := range n {
			e := queue.Envelope{Reason: "attempts_exhausted", Code: "503", Errors: []string{"no answer"}, Attempts: 10, Source: "orders",
				OriginalID: fmt.Sprint("id-", i), LastFailure: now.Add(-time.Duration(i) * time.Hour)}
			if i%3 == 2 {
				e.Reason, e.Code, e.Attempts, e.Errors = "permanent", "", 1, []string{"bad\nbody \x1b[2J"}
			}
			m.die(t, fmt.Sprint("body ", i), e)
		}
		f(t, m)
	})
}

func TestInspectShowsAndLeaves(t *testing.T) {
	withLetters(t, 4, func(t *testing.T, m *memoryBroker) {
		code, out, errs := lullQueue(t.Context(), "inspect", "test://broker", "dead")
		const want = `DIED                  REASON              CODE  ATTEMPTS  REDRIVES  SOURCE  ID    ERROR
2000-01-01T00:00:00Z  attempts_exhausted  503   10        0         orders  id-0  no answer
1999-12-31T23:00:00Z  attempts_exhausted  503   10        0         orders  id-1  no answer
1999-12-31T22:00:00Z  permanent           -     1         0         orders  id-2  bad\nbody \x1b[2J
1999-12-31T21:00:00Z  attempts_exhausted  503   10        0         orders  id-3  no answer
4 of 4 seen: 1 permanent, 3 attempts_exhausted.
`
		if code != cli.OK || out != want || errs != "" {
			t.Errorf("exit code %d, printed\n%s%s\nwant\n%s", code, out, errs, want)
		}
		if m.dead.Len() != 4 || m.orders.Len() != 0 {
			t.Errorf("%d letters and %d messages are left", m.dead.Len(), m.orders.Len())
		}
		code, out, _ = lullQueue(t.Context(), "inspect", "test://broker", "dead", "--reason=crashed")
		if want := "No dead letters (4 seen).\n"; code != cli.OK || out != want {
			t.Errorf("exit code %d, printed %q, want %q", code, out, want)
		}
	})
}

func TestInspectAsJSON(t *testing.T) {
	withLetters(t, 4, func(t *testing.T, m *memoryBroker) {
		m.die(t, "\xff\x00", queue.Envelope{Reason: "permanent", OriginalID: "id-x"})
		code, out, errs := lullQueue(t.Context(), "inspect", "test://broker", "dead", "--json", "--reason", "permanent")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if code != cli.OK || errs != "" || len(lines) != 2 {
			t.Fatalf("exit code %d, printed\n%s%s", code, out, errs)
		}
		var l letterFields
		must.Succeed(json.Unmarshal([]byte(lines[0]), &l))
		if l.ID != "id-2" || l.Body == nil || *l.Body != "body 2" || l.Headers["kind"] != "order" || l.LastFailure.IsZero() || l.Source != "orders" {
			t.Errorf("%s", lines[0])
		}
		if err := json.Unmarshal([]byte(lines[1]), &l); err != nil || string(l.BodyBase64) != "\xff\x00" {
			t.Errorf("%s: %v", lines[1], err)
		}
	})
}

func TestFilters(t *testing.T) {
	for _, c := range []struct {
		flags []string
		want  string // ids
	}{
		{nil, "0123456"},
		{[]string{"--reason", "permanent"}, "25"},
		{[]string{"--code=503"}, "01346"},
		{[]string{"--source=elsewhere"}, ""},
		{[]string{"--id=id-4"}, "4"},
		{[]string{"--older-than", "150m"}, "3456"},
		{[]string{"--younger-than", "150m"}, "012"},
		{[]string{"--older-than", "0.0625d", "--younger-than", "270m"}, "234"},
		{[]string{"--limit=2"}, "01"},
		{[]string{"--limit=1", "--reason=permanent"}, "2"},
	} {
		withLetters(t, 7, func(t *testing.T, m *memoryBroker) {
			code, out, errs := lullQueue(t.Context(), append([]string{"inspect", "test://broker", "dead", "--json"}, c.flags...)...)
			ids := ""
			for line := range strings.Lines(out) {
				var l letterFields
				must.Succeed(json.Unmarshal([]byte(line), &l))
				ids += strings.TrimPrefix(l.ID, "id-")
			}
			if code != cli.OK || ids != c.want || errs != "" {
				t.Errorf("%v: exit code %d, letters %s, want %s\n%s", c.flags, code, ids, c.want, errs)
			}
		})
	}
}

func TestRedriveMoves(t *testing.T) {
	withLetters(t, 9, func(t *testing.T, m *memoryBroker) {
		began := time.Now()
		code, out, errs := lullQueue(t.Context(), "redrive", "test://broker", "dead", "--to", "orders", "--reason", "attempts_exhausted", "--rate", "2")
		if want := "moved 6 of 6 (9 seen) from dead to orders in 4.5 s\n"; code != cli.OK || out != want {
			t.Errorf("exit code %d, printed %q, want %q\n%s", code, out, want, errs)
		}
		if took := time.Since(began); took < 2500*time.Millisecond {
			t.Errorf("6 letters at two a second took %v", took)
		}
		if m.dead.Len() != 3 || m.orders.Len() != 6 {
			t.Errorf("%d letters and %d messages are left", m.dead.Len(), m.orders.Len())
		}
	})
}

func TestDryRunMovesNothing(t *testing.T) {
	withLetters(t, 9, func(t *testing.T, m *memoryBroker) {
		code, out, _ := lullQueue(t.Context(), "redrive", "test://broker", "dead", "--to=orders", "--dry-run", "--json")
		var r struct {
			Matched, Moved, Seen int
			Dry                  bool `json:"dry_run"`
		}
		if err := json.Unmarshal([]byte(out), &r); err != nil || code != cli.OK || r.Matched != 9 || r.Moved != 9 || !r.Dry {
			t.Errorf("exit code %d, %v, printed %s", code, err, out)
		}
		if m.dead.Len() != 9 || m.orders.Len() != 0 {
			t.Errorf("%d letters and %d messages are left", m.dead.Len(), m.orders.Len())
		}
	})
}

func TestALetterThatCannotBeMoved(t *testing.T) {
	withLetters(t, 3, func(t *testing.T, m *memoryBroker) {
		m.unsendable = "body 1"
		code, out, errs := lullQueue(t.Context(), "redrive", "test://broker", "dead", "--to=orders", "--rate=max")
		if code != cli.Failed || !strings.Contains(out, "moved 2 of 3 (3 seen), 1 failed") ||
			!strings.Contains(errs, "lull: id-1 stays a dead letter: ") || !strings.Contains(errs, "1 of 3 letters could not be moved") {
			t.Errorf("exit code %d, printed\n%s%s", code, out, errs)
		}
		if m.dead.Len() != 1 || m.orders.Len() != 2 {
			t.Errorf("%d letters and %d messages are left", m.dead.Len(), m.orders.Len())
		}
	})
}

// What could not be read to its end is no success, in what is printed and in the exit code.
func TestRule24AReadingThatIsCutShort(t *testing.T) {
	for _, cut := range []error{lull.Permanent(errors.New("access denied")), lull.RetryAfter(errors.New("slow down"), 0), errors.New("connection reset")} {
		for _, c := range []struct {
			args []string
			want string
		}{
			{[]string{"inspect", "test://broker", "dead"}, "Cut short, there may be more: 10 of 10 seen.\n"},
			{[]string{"inspect", "test://broker", "dead", "--reason=crashed"}, "Cut short, there may be more: 0 of 10 seen.\n"},
			{[]string{"redrive", "test://broker", "dead", "--to=orders", "--rate=max"}, ", incomplete\n"},
			{[]string{"redrive", "test://broker", "dead", "--to=orders", "--rate=max", "--dry-run", "--json"}, `"incomplete":true`},
		} {
			withLetters(t, 25, func(t *testing.T, m *memoryBroker) {
				m.cut = cut
				code, out, errs := lullQueue(t.Context(), c.args...)
				if code != cli.Failed || !strings.Contains(out, c.want) || !strings.Contains(errs, cut.Error()) {
					t.Errorf("%v: exit code %d, printed %s%s, want %s and %v", c.args, code, out, errs, c.want, cut)
				}
			})
		}
	}
}

// Each mistake has one clear line and an exit code.
func TestQueueMistakes(t *testing.T) {
	brokers.Kinds["test"] = func(context.Context, *url.URL) (brokers.Broker, error) { return &memoryBroker{}, nil }
	brokers.Kinds["down"] = func(context.Context, *url.URL) (brokers.Broker, error) {
		return nil, fmt.Errorf("%w: connection refused", brokers.ErrUnreachable)
	}
	defer delete(brokers.Kinds, "test")
	defer delete(brokers.Kinds, "down")
	for _, c := range []struct {
		args string
		code int
		want []string // all in one line
	}{
		{"inspect test://b dead --older-than 3", cli.Misused, []string{"--older-than", `"3"`, "such as 30m, 12h or 7d"}},
		{"inspect test://b dead --older-than=-3d", cli.Misused, []string{"--older-than", `"-3d"`}},
		{"inspect test://b dead --younger-than NaNd", cli.Misused, []string{"--younger-than", `"NaNd"`}},
		{"inspect test://b dead --older-than=2h --younger-than=1h", cli.Misused, []string{"--younger-than", `"1h"`, "more than --older-than of 2h"}},
		{"inspect test://b dead --limit 0", cli.Misused, []string{"--limit", `"0"`}},
		{"inspect test://b dead --max-redrives x", cli.Misused, []string{"--max-redrives", `"x"`}},
		{"inspect test://b ''", cli.Misused, []string{"QUEUE", `""`, "the name of a queue"}},
		{"inspect ftp://b dead", cli.Misused, []string{"BROKER", `"ftp://b"`, "test://"}},
		{"inspect orders dead", cli.Misused, []string{"BROKER", `"orders"`}},
		{"inspect test:// dead", cli.Misused, []string{"BROKER", "a host"}},
		{"inspect ftp://me:secret@b dead", cli.Misused, []string{"BROKER", `"...@b"`}},
		{"inspect test://b ded", exitNoQueue, []string{"ded: there is no such queue"}},
		{"inspect down://me:secret@b dead", exitUnreachable, []string{"down://...@b: the broker cannot be reached: connection refused"}},
		{"inspect down://secret@b dead", exitUnreachable, []string{"down://...@b: the broker cannot be reached: connection refused"}}, // a token, on NATS
		{"inspect nats://secret@ dead", cli.Misused, []string{"BROKER", "want a host: nats://host"}},
		{"redrive test://b dead", cli.Misused, []string{"--to"}},
		{"redrive test://b dead --to=", cli.Misused, []string{"--to", `""`}},
		{"redrive test://b dead --to=dead", cli.Misused, []string{"--to", `"dead"`, "another queue"}},
		{"redrive test://b dead --to=x --rate=0", cli.Misused, []string{"--rate", `"0"`, "or max"}},
		{"redrive test://b dead --to=x --rate=Inf", cli.Misused, []string{"--rate", `"Inf"`}},
		{"redrive test://b ded --to=orders", exitNoQueue, []string{"ded: there is no such queue"}},
		{"redrive down://b dead --to=orders", exitUnreachable, []string{"cannot be reached"}},
	} {
		args := strings.Fields(c.args)
		for i, arg := range args {
			args[i] = strings.Trim(arg, "'")
		}
		code, out, errs := lullQueue(t.Context(), args...)
		found := false
		for line := range strings.Lines(errs) {
			found = found || strings.HasPrefix(line, "lull: ") && !slices.ContainsFunc(c.want, func(part string) bool { return !strings.Contains(line, part) })
		}
		if code != c.code || !found || out != "" || strings.Contains(errs, "secret") {
			t.Errorf("%s: exit code %d, want %d with one line that has %q; printed\n%s%s", c.args, code, c.code, c.want, out, errs)
		}
	}
	withLetters(t, 1, func(t *testing.T, m *memoryBroker) {
		if code, _, errs := lullQueue(t.Context(), "redrive", "test://b", "dead", "--to=ordrs"); code != exitNoQueue || !strings.Contains(errs, "lull: ordrs: there is no such queue\n") {
			t.Errorf("exit code %d, %s", code, errs)
		}
		check.Equal(t, m.dead.Len(), 1, "letters")
	})
}

// Several mistakes are reported at once.
func TestQueueReportsAllMistakes(t *testing.T) {
	_, _, errs := lullQueue(t.Context(), "redrive", "ftp://b", "dead", "--to=dead", "--rate=x", "--limit=x", "--older-than=x")
	check.Equal(t, strings.Count(errs, "lull: "), 5, "lines:\n%s", errs)
}

// A password can be in the environment, where lists of processes do not show it.
func TestThePasswordMayStandInTheEnvironment(t *testing.T) {
	var got *url.URL
	brokers.Kinds["test"] = func(_ context.Context, u *url.URL) (brokers.Broker, error) {
		got = u
		return nil, errors.New("seen")
	}
	defer delete(brokers.Kinds, "test")
	for typed, want := range map[string]string{"test://me@b": "me:secret", "test://me:typed@b": "me:typed", "test://b": ":secret"} {
		env := cli.Env{Context: t.Context(), Stdout: io.Discard, Stderr: io.Discard, Getenv: func(name string) string {
			return map[string]string{"LULL_BROKER_PASSWORD": "secret"}[name]
		}}
		program(env, []string{"inspect", typed, "dead"})
		if got == nil || got.User.String() != want {
			t.Errorf("%s: the broker is opened with %v, want user %s", typed, got, want)
		}
	}
}
