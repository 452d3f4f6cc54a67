package demo

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// scripted is a base transport that records when it was asked, and answers with the next
// status of a list. It repeats the last one; 0 is no answer.
type scripted struct {
	statuses []int
	start    time.Time
	asked    []time.Duration
}

func (s *scripted) RoundTrip(req *http.Request) (*http.Response, error) {
	s.asked = append(s.asked, time.Since(s.start))
	status := s.statuses[min(len(s.asked), len(s.statuses))-1]
	if status == 0 {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader("text")), Request: req}, nil
}

// callOnce makes one call of a client, in virtual time.
func callOnce(t *testing.T, name string, statuses ...int) (ok bool, took time.Duration, base *scripted) {
	synctest.Test(t, func(t *testing.T) {
		base = &scripted{statuses: statuses, start: time.Now()}
		for _, c := range stormClients {
			if c.name != name {
				continue
			}
			call, err := c.make(tenSeconds(), base, "http://backend.test/")
			if err != nil {
				t.Fatal(err)
			}
			ok = call(t.Context())
			took = time.Since(base.start)
			return
		}
		t.Fatalf("no client is called %q", name)
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
		ok, _, base := callOnce(t, c.name, 503)
		if ok || len(base.asked) != len(c.at) {
			t.Errorf("%s: ok %v, attempts at %v, want %v", c.name, ok, base.asked, c.at)
			continue
		}
		for i := range c.at {
			if base.asked[i] != c.at[i] {
				t.Errorf("%s: attempts at %v, want %v", c.name, base.asked, c.at)
			}
		}
		// Without an answer each attempt takes as long as it may.
		ok, took, base := callOnce(t, c.name, 0)
		want := c.at[len(c.at)-1] + time.Duration(len(c.at))*timeout
		if ok || len(base.asked) != len(c.at) || took != want {
			t.Errorf("%s: no answer: ok %v after %d attempts in %v, want %d in %v", c.name, ok, len(base.asked), took, len(c.at), want)
		}
	}
}

func TestFullJitterStaysBelowItsCeilings(t *testing.T) {
	for range 200 {
		_, _, base := callOnce(t, "full jitter", 500)
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
		if ok, _, base := callOnce(t, c.name, 200); !ok || len(base.asked) != 1 {
			t.Errorf("%s: ok %v after %d attempts, want a success at the first", c.name, ok, len(base.asked))
		}
	}
	for _, name := range []string{"immediate", "fixed interval", "exponential", "full jitter"} {
		if ok, _, base := callOnce(t, name, 503, 200); !ok || len(base.asked) != 2 {
			t.Errorf("%s: ok %v after %d attempts, want a success at the second", name, ok, len(base.asked))
		}
	}
}

func TestEveryClientStopsWhenTold(t *testing.T) {
	for _, c := range stormClients {
		synctest.Test(t, func(t *testing.T) {
			base := &scripted{statuses: []int{0}, start: time.Now()}
			call, err := c.make(tenSeconds(), base, "http://backend.test/")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), 10*ms, errors.New("enough"))
			defer cancel()
			if ok := call(ctx); ok || len(base.asked) != 1 || time.Since(base.start) != 10*ms {
				t.Errorf("%s: ok %v, %d attempts, %v; want one attempt cut short after 10 ms", c.name, ok, len(base.asked), time.Since(base.start))
			}
		})
	}
}
