package lullhttp_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/lullhttp"
)

const ms = time.Millisecond

// hedging sends a second request after 10 ms, whatever it costs.
var hedging = lull.Policy{
	Hedge:   hedge.Config{Attempts: 2, Delay: 10 * ms, Share: -1},
	Budget:  budget.Config{Unlimited: true},
	Breaker: breaker.Config{Off: true},
}

// Rule 9: both requests of a hedged PUT with a file for a body carry the whole of it,
// though both are read at the same time.
func TestRule09EachHedgeHasItsOwnBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "body")
		content := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		want := sha256.Sum256(content)

		secondIsHere, firstHasAll, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
		var mu sync.Mutex
		var sums [][sha256.Size]byte
		s, _ := server(t, func(w http.ResponseWriter, r *http.Request) {
			sum := sha256.New()
			first := r.Header.Get(lullhttp.DefaultAttemptHeader) == "" // which may arrive second
			if first {
				io.CopyN(sum, r.Body, int64(len(content)/2))
				<-secondIsHere
			} else {
				close(secondIsHere)
				defer func() { <-firstHasAll; fmt.Fprint(w, "second") }()
			}
			io.Copy(sum, r.Body)
			mu.Lock()
			sums = append(sums, [sha256.Size]byte(sum.Sum(nil)))
			mu.Unlock()
			if first {
				close(firstHasAll)
				<-release
			}
		})
		defer close(release)
		open := func() (io.ReadCloser, error) { return os.Open(file) }
		body, err := open()
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequest("PUT", s.URL, body)
		if err != nil {
			t.Fatal(err)
		}
		req.GetBody, req.ContentLength = open, int64(len(content))
		resp, err := client(t, hedging).Do(req)
		if got := read(t, resp, err); got != "second" {
			t.Errorf("answer %q", got)
		}
		if o := lullhttp.OutcomeOf(resp); o.Attempts != 2 || o.Reason != engine.Success {
			t.Errorf("%+v", o)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(sums) != 2 || sums[0] != want || sums[1] != want {
			t.Errorf("%d bodies arrived, with sums %x; want %x twice", len(sums), sums, want)
		}
	})
}

// slowly answers the requests in turn, each after its delay with its status; no
// sooner than their contexts end if the delay is negative.
type slowly struct {
	mu      sync.Mutex
	answers []answer
	got     []string // method and attempt header
	gone    int      // requests whose client went away first
}

type answer struct {
	after  time.Duration
	status int
}

func (s *slowly) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	n := len(s.got)
	s.got = append(s.got, r.Method+r.Header.Get(lullhttp.DefaultAttemptHeader))
	s.mu.Unlock()
	io.Copy(io.Discard, r.Body)
	a := answer{0, 500}
	if n < len(s.answers) {
		a = s.answers[n]
	}
	select {
	case <-time.After(a.after):
	case <-r.Context().Done():
		s.mu.Lock()
		s.gone++
		s.mu.Unlock()
		return
	}
	w.WriteHeader(a.status)
	fmt.Fprintf(w, "answer %d", n+1)
}

// Rule 9 over HTTP, and rule 4: what is not idempotent is not hedged.
func TestRule09Hedging(t *testing.T) {
	keys := lullhttp.WithIdempotencyKeys(nil)
	for _, c := range []struct {
		name    string
		method  string
		answers []answer
		body    string
		took    time.Duration
		got     []string
		opts    []lullhttp.Option
	}{
		{"in time", "GET", []answer{{9 * ms, 200}}, "answer 1", 9 * ms, []string{"GET"}, nil},
		{"the hedge is quicker", "GET", []answer{{time.Hour, 200}, {5 * ms, 200}}, "answer 2", 15 * ms, []string{"GET", "GET2"}, nil},
		{"a fast 503 does not beat a slow 200", "GET", []answer{{100 * ms, 200}, {ms, 503}}, "answer 1", 100 * ms, []string{"GET", "GET2"}, nil},
		{"nor if it comes first", "GET", []answer{{12 * ms, 503}, {100 * ms, 200}}, "answer 2", 110 * ms, []string{"GET", "GET2"}, nil},
		{"a fast 404 is the answer", "GET", []answer{{time.Hour, 200}, {ms, 404}}, "answer 2", 11 * ms, []string{"GET", "GET2"}, nil},
		{"a 503 before the delay calls the next", "GET", []answer{{5 * ms, 503}, {5 * ms, 200}}, "answer 2", 10 * ms, []string{"GET", "GET2"}, nil},
		{"both fail", "GET", []answer{{15 * ms, 503}, {10 * ms, 502}}, "answer 2", 20 * ms, []string{"GET", "GET2"}, nil},
		{"PUT", "PUT", []answer{{time.Hour, 200}, {5 * ms, 200}}, "answer 2", 15 * ms, []string{"PUT", "PUT2"}, nil},
		{"POST", "POST", []answer{{100 * ms, 200}}, "answer 1", 100 * ms, []string{"POST"}, nil},
		{"POST with a key", "POST", []answer{{100 * ms, 200}}, "answer 1", 100 * ms, []string{"POST"}, []lullhttp.Option{keys}},
		{"PATCH", "PATCH", []answer{{100 * ms, 200}}, "answer 1", 100 * ms, []string{"PATCH"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &slowly{answers: c.answers}
			inBubble(t, hedging, s.ServeHTTP, func(t *testing.T, cl *http.Client, _ *atomic.Int64) {
				req, _ := http.NewRequest(c.method, host, strings.NewReader("a body"))
				start := time.Now()
				resp, err := cl.Do(req)
				took := time.Since(start)
				if got := read(t, resp, err); got != c.body || took != c.took {
					t.Errorf("%q after %v, want %q after %v", got, took, c.body, c.took)
				}
				if !slices.Equal(s.got, c.got) {
					t.Errorf("the server got %q, want %q", s.got, c.got)
				}
			}, c.opts...)
		})
	}
}

// The winner's body can be read after the losers were cancelled, and their bodies
// are closed: in the end every connection is idle or gone.
func TestTheWinnersBodyOutlivesTheOthers(t *testing.T) {
	var n atomic.Int64
	gone := make(chan struct{})
	inBubble(t, hedging, func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 1 {
			<-r.Context().Done()
			close(gone)
			return
		}
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		<-gone
		time.Sleep(50 * time.Second) // longer than any timeout of the policy
		fmt.Fprint(w, "late")
	}, func(t *testing.T, cl *http.Client, _ *atomic.Int64) {
		resp, err := cl.Get(host)
		if got := read(t, resp, err); got != "late" {
			t.Errorf("the body is %q", got)
		}
	})
}

// Two answers at the same moment: one is returned, the other is closed, and no
// connection is lost by it.
func TestALosersResponseIsDrained(t *testing.T) {
	inBubble(t, hedging, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(lullhttp.DefaultAttemptHeader) == "" {
			time.Sleep(20 * ms)
		} else {
			time.Sleep(10 * ms)
		}
		fmt.Fprint(w, "the same")
	}, func(t *testing.T, cl *http.Client, connections *atomic.Int64) {
		for range 20 {
			resp, err := cl.Get(host)
			if got := read(t, resp, err); got != "the same" {
				t.Fatalf("%q", got)
			}
			time.Sleep(time.Second)
		}
		// A loser that is cancelled costs its connection, one that has answered does not.
		if open := connections.Load(); open > 21 {
			t.Errorf("%d connections for 20 calls of two requests", open)
		}
	})
}

func TestACallerWhoGoesAwayEndsAllAttempts(t *testing.T) {
	s := &slowly{answers: []answer{{time.Hour, 200}, {time.Hour, 200}}}
	inBubble(t, hedging, s.ServeHTTP, func(t *testing.T, cl *http.Client, _ *atomic.Int64) {
		cl.Timeout = 50 * ms
		start := time.Now()
		_, err := cl.Get(host)
		if err == nil || time.Since(start) != 50*ms {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		time.Sleep(ms)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.gone != 2 {
			t.Errorf("%d of 2 requests were cancelled", s.gone)
		}
	})
}
