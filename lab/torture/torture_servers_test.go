//go:build servers

package torture

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lullgo/lull"
	hedging "github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/pace"
	"github.com/lullgo/lull/lullhttp"
)

// TestMain is an adapter when a case has started this program as one.
func TestMain(m *testing.M) {
	if how := os.Getenv("LULL_TORTURE_TEST_ADAPTER"); how != "" {
		os.Exit(adapter(how))
	}
	pace.Overlap(48)
	os.Exit(m.Run())
}

// checkGrades runs cases and compares the grades.
func checkGrades(t *testing.T, client Client, cases []Case, want func(name string) Grade) {
	card := must.Have(Run(t.Context(), client, Options{Cases: cases}))
	check.Equal(t, len(card.Results), len(cases), "results")
	for _, r := range card.Results {
		if strings.HasPrefix(r.Why, tooBusy) {
			t.Logf("%s: %s: %s", client.Name(), r.Case, r.Why)
			continue
		}
		if w := want(r.Case); w != "" && r.Grade != w {
			t.Errorf("%s: %s: %s (%s), want %s\n%s", client.Name(), r.Case, r.Grade, r.Why, w, timeline(r))
		}
	}
}

func timeline(r Result) string {
	var b strings.Builder
	for i, e := range r.Events {
		if i == 40 {
			b.WriteString("...\n")
			break
		}
		fmt.Fprintf(&b, "%8.3f call %d: %s\n", e.At.Seconds(), e.Call, e.Text)
	}
	return b.String()
}

// The zero policy passes every case that applies to it. These do not. A group is a run of its own: the runs wait beside each other.
func TestLullhttpPasses(t *testing.T) {
	t.Parallel()
	without := map[string]bool{"hint-301": true, "hedge-get": true, "hedge-post": true, "hedge-slow": true, "key-own": true,
		"resume-cut": true, "resume-changed": true, "resume-range": true, // WithResume is an option
		"wait-cap": true} // a new client has two retries in stock, of which neither waits for the longest time
	groups := Groups
	if testing.Short() {
		groups = []string{"statuses", "connections that break", "bodies", "keys", "connections"}
	}
	for _, group := range groups {
		t.Run(group, func(t *testing.T) {
			t.Parallel()
			cases := must.Have(Select([]string{group}))
			checkGrades(t, Lull("lullhttp", lull.Policy{}), cases, func(name string) Grade {
				if without[name] {
					return NotApplicable
				}
				return Pass
			})
		})
	}
}

func TestLullhttpHedges(t *testing.T) {
	t.Parallel()
	cases := must.Have(Select([]string{"hedging"}))
	checkGrades(t, Lull("lullhttp", lull.Policy{Hedge: hedging.Config{Attempts: 2}}), cases, func(string) Grade { return Pass })
}

func TestLullhttpResumes(t *testing.T) {
	t.Parallel()
	cases := must.Have(Select([]string{"resume-*"}))
	checkGrades(t, Lull("lullhttp", lull.Policy{}, lullhttp.WithResume()), cases, func(string) Grade { return Pass })
}

// greedy is a client that does all that is wrong and can be done in a few lines: it repeats
// whatever is no 200, five times, at once, reads the bodies of failures never, and
// sends from the second attempt on another body and another key.
type greedy struct{ client *http.Client }

func (g greedy) Do(r *http.Request) (*http.Response, error) {
	for n := 1; ; n++ {
		again := r.Clone(r.Context())
		if r.Body != nil {
			body := "another body"
			if n == 1 {
				b, _ := r.GetBody()
				all, _ := io.ReadAll(b)
				body = string(all)
			}
			again.Body, again.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
			again.GetBody = nil
		}
		if key := r.Header.Get("Idempotency-Key"); key != "" {
			again.Header.Set("Idempotency-Key", key+strconv.Itoa(n))
		}
		resp, err := g.client.Do(again)
		if n == 5 || err == nil && resp.StatusCode == http.StatusOK || r.Context().Err() != nil {
			return resp, err
		}
	}
}

// A client that does what is wrong is found out.
func TestAGreedyClientFails(t *testing.T) {
	t.Parallel()
	want := map[string]Grade{
		"once-post-503": Fail, "once-post-reset": Fail, "once-patch-503": Fail, "once-400": Fail, "once-507": Fail, "once-404": Warn, "once-post-body": Pass,
		"body-put": Fail, "body-post-key": Fail, "body-put-large": Fail,
		"hint-seconds-503": Warn, "hint-seconds-429": NotApplicable, "hint-day": NotApplicable, "hint-zero": Pass,
		"wait-first": Fail, "wait-jitter": Warn, "wait-herd": Warn, "wait-growth": Warn,
		"key-503": Fail, "key-422": Fail, "connection-retries": Warn, "tls-expired": Warn, "volume-outage": Warn, "volume-layers": Warn,
		"status-503": Pass, "status-always": Pass, "deadline-silent": Pass, "once-success": Pass,
	}
	groups := map[string][]string{}
	for name := range want {
		group, _, _ := strings.Cut(name, "-")
		groups[group] = append(groups[group], name)
	}
	if testing.Short() {
		delete(groups, "volume")
	}
	client := HTTP("greedy", func(base *http.Transport) (Doer, error) { return greedy{&http.Client{Transport: base}}, nil })
	for group, names := range groups {
		t.Run(group, func(t *testing.T) {
			t.Parallel()
			cases := must.Have(Select(names))
			checkGrades(t, client, cases, func(name string) Grade { return want[name] })
		})
	}
}

// eager is a client that hedges, and never cancels: what has lost goes on. It also
// says that all has gone well, without a look.
type eager struct{ client *http.Client }

func (e eager) Do(r *http.Request) (*http.Response, error) {
	type end struct {
		resp *http.Response
		err  error
	}
	ends := make(chan end, 2)
	send := func() {
		again := r.Clone(context.WithoutCancel(r.Context()))
		if r.GetBody != nil {
			again.Body, _ = r.GetBody()
		}
		resp, err := e.client.Do(again)
		ends <- end{resp, err}
	}
	go send()
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case first := <-ends:
		return e.pretty(first.resp, first.err)
	case <-timer.C:
		go send()
	}
	first := <-ends
	return e.pretty(first.resp, first.err)
}

func (eager) pretty(resp *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	resp.Body.Close()
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func TestAnEagerClientFails(t *testing.T) {
	t.Parallel()
	want := map[string]Grade{
		"hedge-get": Fail, "hedge-post": Fail, "broken-body": Fail, "broken-chunk": Fail, "broken-after-header": Fail,
		"status-always": Fail, "deadline-silent": Fail, "deadline-cancel": Fail, "deadline-hint": NotApplicable,
	}
	if testing.Short() {
		delete(want, "deadline-silent") // a client that never ends is awaited to the limit
		delete(want, "deadline-cancel")
	}
	cases := must.Have(Select(slices.Collect(maps.Keys(want))))
	for i := range cases {
		if cases[i].timeout > 0 {
			cases[i].limit = 4 * cases[i].timeout // it never ends: any limit will do
		}
	}
	client := HTTP("eager", func(base *http.Transport) (Doer, error) { return eager{&http.Client{Transport: base}}, nil })
	checkGrades(t, client, cases, func(name string) Grade { return want[name] })
}

// A run that is interrupted has no half verdicts.
func TestAnInterruptedRun(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cases := must.Have(Select([]string{"statuses"}))
	card, err := Run(ctx, NetHTTP(), Options{Together: 1, Cases: cases, Progress: func(done, _ int, _ Result) {
		if done == 3 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || len(card.Results) != 3 {
		t.Errorf("%d results and %v, want 3 and that it was cancelled", len(card.Results), err)
	}
}

// A case that a busy machine may have spoilt is tried again, but not for ever.
func TestTries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ spoilt, asked, tries int }{{0, 1, 1}, {1, 2, 2}, {9, mostTries, mostTries}} {
		cases := must.Have(Select([]string{"once-400"}))
		asked := 0
		cases[0].maybeBusy = func(s *Seen) bool {
			asked++
			return asked <= c.spoilt
		}
		card := must.Have(Run(t.Context(), NetHTTP(), Options{Cases: cases}))
		r, text := card.Results[0], fmt.Sprintf("try %d:", c.tries)
		if c.tries == mostTries {
			check.Equal(t, strings.HasPrefix(r.Why, tooBusy), (r.Grade == NotApplicable), "%s: %s", r.Grade, r.Why)
		}
		if asked != c.asked || r.Attempts != 1 || strings.HasPrefix(r.Events[0].Text, text) != (c.tries > 1) {
			t.Errorf("%d spoilt: asked %d times, want %d; %d attempts in the last try, and %q is first", c.spoilt, asked, c.asked, r.Attempts, r.Events[0].Text)
		}
	}
}

// adapter is this program as an adapter around an http.Client.
func adapter(how string) int {
	session, err := NetHTTP().Start(context.Background(), Env{CA: must.Have(os.ReadFile(os.Getenv("LULL_TORTURE_CA")))}, true)
	if err != nil {
		return 3
	}
	call := func(method, url, file, timeout, key string) Outcome {
		c := Call{Method: method, URL: url, Timeout: time.Duration(must.Have(strconv.Atoi(timeout))) * time.Millisecond, Key: strings.TrimPrefix(key, "-")}
		if file = strings.TrimPrefix(file, "-"); file != "" {
			c.Body = must.Have(os.ReadFile(file))
		}
		return session.Call(context.Background(), c)
	}
	args := os.Args[1:]
	switch how {
	case "one":
		if o := call(args[0], args[1], args[2], args[3], args[4]); !o.OK {
			fmt.Fprintln(os.Stderr, o.Text)
			return 1
		}
		return 0
	case "flood":
		for {
			call(args[0], args[1], "", "0", "")
		}
	case "hang":
		select {}
	case "unready":
		fmt.Fprintln(os.Stderr, "no such module")
		return 1
	}
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		f := strings.Split(lines.Text(), "\t")
		go func() {
			text := "%s\tfailed\t0\t%s\n"
			o := call(f[2], f[3], f[4], f[5], f[6])
			if o.OK {
				text = "what a library prints\n%s\tok\t200\t%s\n"
			}
			fmt.Printf(text, f[0], o.Text)
		}()
	}
	if how == "stays" {
		select {}
	}
	return 0
}

// program returns this program as an adapter.
func program(t *testing.T, how string, args ...string) Client {
	self := must.Have(os.Executable())
	env, err := findEnv()
	if err != nil {
		t.Skip(err)
	}
	c := must.Have(Command(how, append([]string{env, "LULL_TORTURE_TEST_ADAPTER=" + how, self}, args...)))
	return c
}

// A program is graded as what is in this process is, whether it makes one call or stays up.
func TestPrograms(t *testing.T) {
	t.Parallel()
	names := []string{"status-503", "status-early-hints", "once-post-503", "broken-body", "body-put", "connection-tls", "deadline-silent", "deadline-cancel", "tls-unknown", "once-success", "key-422", "connection-calls", "wait-first"}
	cases := must.Have(Select(names))
	want := func(name string) Grade {
		switch name {
		case "status-503", "body-put", "wait-first":
			return NotApplicable
		}
		return Pass
	}
	t.Run("stays up", func(t *testing.T) {
		t.Parallel()
		checkGrades(t, program(t, "stay"), cases, want)
	})
	t.Run("one call", func(t *testing.T) {
		t.Parallel()
		checkGrades(t, program(t, "one", "{method}", "{url}", "{body-file}", "{timeout-ms}", "{key}"), cases, func(name string) Grade {
			if name == "connection-calls" {
				return NotApplicable // of processes that share nothing
			}
			return want(name)
		})
	})
}

// What misbehaves is ended and reported, and what is left is graded.
func TestProgramsThatMisbehave(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		how, args, text string
		grade           Grade
		limit           time.Duration
	}{
		{"flood", "{method} {url}", "flooded", Fail, time.Minute},
		{"hang", "{method} {url}", "nothing arrived", NotApplicable, time.Second},
		{"unready", "", "no such module", NotApplicable, time.Minute},
		{"stays", "", "one attempt", Pass, time.Minute},
	} {
		t.Run(c.how, func(t *testing.T) {
			t.Parallel()
			client := program(t, c.how, strings.Fields(c.args)...)
			client.(*command).exit = time.Second // that one never exits: any limit will do
			cases := must.Have(Select([]string{"once-success"}))
			cases[0].limit = c.limit
			g := must.Have(newGrader(client))
			defer g.close()
			g.floodLimit = 10 // and soon
			r := g.runOnce(t.Context(), cases[0])
			if v := r.seen.verdict(traits{}); v.Grade != c.grade || !strings.Contains(v.Why, c.text) {
				t.Errorf("%s (%s), want %s and %q\n%s", v.Grade, v.Why, c.grade, c.text, timeline(r.Result))
			}
			if c.how == "stays" && !strings.Contains(r.Note, "did not exit") {
				t.Errorf("the note is %q", r.Note)
			}
		})
	}
}

// Clients of other cases, which had the port before, are no part of a case; and nobody else on
// this machine is given the port at which nobody listens.
func TestPortsAreNotShared(t *testing.T) {
	t.Parallel()
	a := newAuthority()
	cases := must.Have(Select([]string{"once-400", "broken-refused"}))
	for _, c := range cases {
		l := newLog(mostAttempts, func() {})
		s := must.Have(openSite(c, a, l))
		defer s.close()
		s.run = "mine"
		if c.door == doorClosed {
			address := strings.TrimPrefix(s.base, "http://")
			if other, err := net.Listen("tcp", address); err == nil {
				other.Close()
				t.Errorf("another can listen at %s", address)
			}
			if _, err := http.Get(s.base); !errors.Is(err, syscall.ECONNREFUSED) && runtime.GOOS != "windows" {
				t.Errorf("nobody listens, and the error is %v", err)
			}
			continue
		}
		for _, path := range []string{"/t/once-400/other-1/0", "/t/once-404/mine/0", "/"} {
			fetch(s.base + path)
		}
		if seen, _ := l.seen(c); len(seen.Attempts) != 0 {
			t.Errorf("%d attempts of others were counted", len(seen.Attempts))
		}
		fetch(s.url(0, 0))
		if seen, _ := l.seen(c); len(seen.Attempts) != 1 {
			t.Errorf("%d attempts, want 1", len(seen.Attempts))
		}
	}
}
