package demo

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// answer is the answer to a request, and its time. Status 0 is no answer.
type answer struct {
	status int
	after  time.Duration
}

// answering is a base transport that gives the nth request the nth answer. It records when
// it was asked, and how many requests were cancelled.
type answering struct {
	give  func(n int) answer
	start time.Time

	mu        sync.Mutex
	asked     []time.Duration
	cancelled int
}

func (a *answering) RoundTrip(req *http.Request) (*http.Response, error) {
	a.mu.Lock()
	n := len(a.asked)
	a.asked = append(a.asked, time.Since(a.start))
	a.mu.Unlock()
	is := a.give(n)
	var timer <-chan time.Time
	if is.status != 0 {
		timer = time.After(is.after)
	}
	select {
	case <-timer:
		return &http.Response{StatusCode: is.status, Body: io.NopCloser(strings.NewReader("text")), Request: req}, nil
	case <-req.Context().Done():
		a.mu.Lock()
		a.cancelled++
		a.mu.Unlock()
		return nil, req.Context().Err()
	}
}

// inOrder gives the answers in their order, and repeats the last one.
func inOrder(answers ...answer) func(int) answer {
	return func(n int) answer { return answers[min(n, len(answers)-1)] }
}

// asUsual is an answer after 10 ms, to one request in fifty after 500.
func asUsual(n int) answer {
	if n%50 == 49 {
		return answer{200, 500 * ms}
	}
	return answer{200, 10 * ms}
}

// called makes so many calls of a client in virtual time, with the usual answers, and then one with the
// given answers.
func called(t *testing.T, s setting, name string, calls int, answers ...answer) (ok bool, took time.Duration, base *answering) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		base = &answering{give: asUsual, start: time.Now()}
		i := slices.IndexFunc(s.Clients, func(c client) bool { return c.name == name })
		call := must.Have(s.Clients[i].make(s, base, "http://backend.test/"))
		for range calls {
			if !call(t.Context()) {
				t.Fatal("a call of the warm-up failed")
			}
		}
		synctest.Wait()
		base.give, base.asked, base.start, base.cancelled = inOrder(answers...), nil, time.Now(), 0
		ok = call(t.Context())
		took = time.Since(base.start)
		synctest.Wait()
	})
	return ok, took, base
}

func TestNaiveClientsTryAsTheySay(t *testing.T) {
	const timeout = 500 * ms
	for _, c := range []struct {
		name string
		at   []time.Duration // attempts, if each fails at once
	}{
		{"no retry", []time.Duration{0}},
		{"immediate", []time.Duration{0, 0, 0}},
		{"fixed interval", []time.Duration{0, 100 * ms, 200 * ms}},
		{"exponential", []time.Duration{0, 100 * ms, 300 * ms}},
	} {
		ok, _, base := called(t, tenSeconds(), c.name, 0, answer{status: 503})
		if ok || len(base.asked) != len(c.at) {
			t.Errorf("%s: ok %v, attempts at %v, want %v", c.name, ok, base.asked, c.at)
			continue
		}
		for i := range c.at {
			check.Equal(t, base.asked[i], c.at[i], "%s: attempts at %v", c.name, base.asked)
		}
		// Without an answer each attempt takes as long as it may.
		ok, took, base := called(t, tenSeconds(), c.name, 0, answer{})
		want := c.at[len(c.at)-1] + time.Duration(len(c.at))*timeout
		if ok || len(base.asked) != len(c.at) || took != want {
			t.Errorf("%s: no answer: ok %v after %d attempts in %v, want %d in %v", c.name, ok, len(base.asked), took, len(c.at), want)
		}
	}
}

func TestFullJitterStaysBelowItsCeilings(t *testing.T) {
	for range 200 {
		_, _, base := called(t, tenSeconds(), "full jitter", 0, answer{status: 500})
		if len(base.asked) != 3 {
			t.Fatalf("%d attempts, want 3", len(base.asked))
		}
		first, second := base.asked[1]-base.asked[0], base.asked[2]-base.asked[1]
		if first < 0 || first > 100*ms || second < 0 || second > 200*ms {
			t.Fatalf("waits of %v and %v, want at most 100 and 200 ms", first, second)
		}
	}
}

func TestEveryClientStopsAtASuccess(t *testing.T) {
	for _, c := range stormClients {
		if ok, _, base := called(t, tenSeconds(), c.name, 0, answer{status: 200}); !ok || len(base.asked) != 1 {
			t.Errorf("%s: ok %v after %d attempts, want a success at the first", c.name, ok, len(base.asked))
		}
	}
	for _, name := range []string{"immediate", "fixed interval", "exponential", "full jitter"} {
		if ok, _, base := called(t, tenSeconds(), name, 0, answer{status: 503}, answer{status: 200}); !ok || len(base.asked) != 2 {
			t.Errorf("%s: ok %v after %d attempts, want a success at the second", name, ok, len(base.asked))
		}
	}
}

func TestNaiveHedgerTakesTheFirstAnswer(t *testing.T) {
	for _, c := range []struct {
		what      string
		answers   []answer
		ok        bool
		took      time.Duration
		asked     []time.Duration
		cancelled int
	}{
		{"quick", []answer{{200, 19 * ms}}, true, 19 * ms, []time.Duration{0}, 0},
		{"late", []answer{{200, 500 * ms}, {200, 10 * ms}}, true, 30 * ms, []time.Duration{0, 20 * ms}, 1},
		{"hedge is late too", []answer{{200, 500 * ms}, {200, 600 * ms}}, true, 500 * ms, []time.Duration{0, 20 * ms}, 1},
		{"fails", []answer{{503, 5 * ms}, {200, 10 * ms}}, false, 5 * ms, []time.Duration{0}, 0},
		{"hedge fails", []answer{{200, 500 * ms}, {503, 0}}, false, 20 * ms, []time.Duration{0, 20 * ms}, 1},
		{"no answers", []answer{{}}, false, 2 * time.Second, []time.Duration{0, 20 * ms}, 2},
	} {
		ok, took, base := called(t, fifteenSeconds(), "naive", 0, c.answers...)
		if ok != c.ok || took != c.took || !slices.Equal(base.asked, c.asked) || base.cancelled != c.cancelled {
			t.Errorf("%s: %v after %v, requests at %v, %d cancelled; want %v after %v, at %v, %d",
				c.what, ok, took, base.asked, base.cancelled, c.ok, c.took, c.asked, c.cancelled)
		}
	}
}

// lull waits for the success, with the answers that mislead the naive hedger.
func TestLullWaitsForTheSuccess(t *testing.T) {
	ok, took, base := called(t, fifteenSeconds(), "lull", 1000, answer{200, 500 * ms}, answer{503, 0})
	if !ok || took != 500*ms || len(base.asked) != 2 {
		t.Errorf("a hedge that fails: %v after %v, requests at %v; want a success after 500ms, of two", ok, took, base.asked)
	}
	if len(base.asked) > 1 && (base.asked[1] < 10*ms || base.asked[1] > 11*ms) {
		t.Errorf("where all take 10 ms, it hedges after %v", base.asked[1])
	}
	ok, took, base = called(t, fifteenSeconds(), "lull", 1000, answer{200, 500 * ms}, answer{200, 10 * ms})
	if !ok || took > 22*ms || len(base.asked) != 2 || base.cancelled != 1 {
		t.Errorf("a hedge that succeeds: %v after %v, requests at %v, %d cancelled; want a success after about 20ms, of two", ok, took, base.asked, base.cancelled)
	}
	ok, took, base = called(t, fifteenSeconds(), "lull", 0, answer{200, 500 * ms})
	if !ok || took != 500*ms || len(base.asked) != 1 {
		t.Errorf("with nothing learned: %v after %v, requests at %v; want one", ok, took, base.asked)
	}
}

func TestNoHedgingMakesOneRequest(t *testing.T) {
	ok, took, base := called(t, fifteenSeconds(), "no hedging", 0, answer{200, 500 * ms})
	if !ok || took != 500*ms || len(base.asked) != 1 {
		t.Errorf("%v after %v, requests at %v", ok, took, base.asked)
	}
}

func TestEveryClientStopsWhenTold(t *testing.T) {
	for _, s := range []setting{tenSeconds(), fifteenSeconds()} {
		for _, c := range s.Clients {
			synctest.Test(t, func(t *testing.T) {
				base := &answering{give: inOrder(answer{}), start: time.Now()}
				call := must.Have(c.make(s, base, "http://backend.test/"))
				ctx, cancel := context.WithTimeout(t.Context(), 50*ms)
				defer cancel()
				ok := call(ctx)
				took := time.Since(base.start)
				synctest.Wait()
				if ok || took != 50*ms || base.cancelled != len(base.asked) {
					t.Errorf("%s: %v after %v, %d requests, %d cancelled; want all cut short after 50ms", c.name, ok, took, len(base.asked), base.cancelled)
				}
			})
		}
	}
}
