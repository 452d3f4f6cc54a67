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

// afterWarmUp makes so many calls of a client with the usual answers, and then one with the
// given answers.
func afterWarmUp(t *testing.T, name string, calls int, answers ...answer) (ok bool, took time.Duration, base *answering) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := parse(t, "--scenario=tail")
		base = &answering{give: asUsual, start: time.Now()}
		i := slices.IndexFunc(tailClients, func(c client) bool { return c.name == name })
		call, err := tailClients[i].make(s, base, "http://backend.test/")
		if err != nil {
			t.Fatal(err)
		}
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
		ok, took, base := afterWarmUp(t, "naive", 0, c.answers...)
		if ok != c.ok || took != c.took || !slices.Equal(base.asked, c.asked) || base.cancelled != c.cancelled {
			t.Errorf("%s: %v after %v, requests at %v, %d cancelled; want %v after %v, at %v, %d",
				c.what, ok, took, base.asked, base.cancelled, c.ok, c.took, c.asked, c.cancelled)
		}
	}
}

// lull waits for the success, with the answers that mislead the naive hedger.
func TestLullWaitsForTheSuccess(t *testing.T) {
	ok, took, base := afterWarmUp(t, "lull", 1000, answer{200, 500 * ms}, answer{503, 0})
	if !ok || took != 500*ms || len(base.asked) != 2 {
		t.Errorf("a hedge that fails: %v after %v, requests at %v; want a success after 500ms, of two", ok, took, base.asked)
	}
	if len(base.asked) > 1 && (base.asked[1] < 10*ms || base.asked[1] > 11*ms) {
		t.Errorf("where all take 10 ms, it hedges after %v", base.asked[1])
	}
	ok, took, base = afterWarmUp(t, "lull", 1000, answer{200, 500 * ms}, answer{200, 10 * ms})
	if !ok || took > 22*ms || len(base.asked) != 2 || base.cancelled != 1 {
		t.Errorf("a hedge that succeeds: %v after %v, requests at %v, %d cancelled; want a success after about 20ms, of two", ok, took, base.asked, base.cancelled)
	}
	ok, took, base = afterWarmUp(t, "lull", 0, answer{200, 500 * ms})
	if !ok || took != 500*ms || len(base.asked) != 1 {
		t.Errorf("with nothing learned: %v after %v, requests at %v; want one", ok, took, base.asked)
	}
}

func TestNoHedgingMakesOneRequest(t *testing.T) {
	ok, took, base := afterWarmUp(t, "no hedging", 0, answer{200, 500 * ms})
	if !ok || took != 500*ms || len(base.asked) != 1 {
		t.Errorf("%v after %v, requests at %v", ok, took, base.asked)
	}
}

func TestEveryTailClientStopsWhenTold(t *testing.T) {
	for _, c := range tailClients {
		synctest.Test(t, func(t *testing.T) {
			base := &answering{give: inOrder(answer{}), start: time.Now()}
			call, err := c.make(parse(t, "--scenario=tail"), base, "http://backend.test/")
			if err != nil {
				t.Fatal(err)
			}
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
