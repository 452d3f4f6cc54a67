package bench

import (
	"context"
	"math"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cristalhq/hedgedhttp"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// A played is a caller whose attempts do what a test has set. Traffic
// comes before everything else: hedgers that learn know nothing without it.
type played struct {
	bind  func() (call func() error)
	calls sync.WaitGroup

	mu    sync.Mutex
	begun []time.Time // attempts, since it was last cleared
	plan  func(attempt int) (takes time.Duration, fails bool)
}

func play(t *testing.T, c caller) *played {
	t.Helper()
	bind := c.build()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	p := &played{}
	p.bind = func() func() error {
		return bind(ctx, func(ctx context.Context) error {
			p.mu.Lock()
			p.begun = append(p.begun, time.Now())
			takes, fails := p.plan(len(p.begun))
			p.mu.Unlock()
			select {
			case <-time.After(takes):
			case <-ctx.Done():
				return ctx.Err()
			}
			if fails {
				return c.retryable
			}
			return nil
		})
	}
	return p
}

// as clears what is known of attempts, and sets how the next ones go.
func (p *played) as(plan func(attempt int) (takes time.Duration, fails bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun, p.plan = nil, plan
}

// attempts are when those began that have.
func (p *played) attempts() []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.begun
}

// traffic is twenty calls a second for twenty seconds, which take so long, but for
// one in the middle that takes four seconds: hedgers that compare the late with all
// begin to count at the first that is late.
func (p *played) traffic(t *testing.T, takes time.Duration) {
	const calls = 400
	p.as(func(attempt int) (time.Duration, bool) {
		if attempt == calls/2 {
			return 4 * time.Second, false
		}
		return takes, false
	})
	call := p.bind()
	for range calls {
		p.calls.Go(func() {
			check.Equal(t, call(), nil, "a call that takes %v", takes)
		})
		time.Sleep(time.Second / 20)
	}
	p.calls.Wait()
}

const (
	quick    = 10 * time.Millisecond
	tooLong  = 5 * hedgeAfter // shorter than any timeout
	together = 30             // calls, which with a hedge each are below any limit
)

// slowAtFirst is a call whose first attempt is slow.
func slowAtFirst(attempt int) (time.Duration, bool) {
	if attempt == 1 {
		return tooLong, false
	}
	return quick, false
}

// showsHedges: a call whose first attempt is slow is not. Its hedge comes no sooner
// than any call here ever takes, though those before it were quick.
func showsHedges(t *testing.T, c caller) bool {
	p := play(t, c)
	p.traffic(t, quick)
	p.as(slowAtFirst)
	begin := time.Now()
	err := p.bind()()
	took, made := time.Since(begin), len(p.attempts())
	switch {
	case err == nil && took == hedgeAfter+quick && made == 2:
		return true
	case err == nil && took == tooLong && made == 1:
		return false
	}
	t.Fatalf("a slow attempt: %v after %v and %d attempts", err, took, made)
	return false
}

// showsLearnedDelay: where all calls take two seconds, a hedge comes after that.
func showsLearnedDelay(t *testing.T, c caller) bool {
	const usual = 2 * hedgeAfter
	p := play(t, c)
	p.traffic(t, usual)
	p.as(slowAtFirst)
	begin := time.Now()
	must.Succeed(p.bind()())
	made := p.attempts()
	if len(made) < 2 {
		return false
	}
	switch delay := made[1].Sub(begin); {
	case delay >= usual && delay < usual*11/10:
		return true
	case delay != hedgeAfter:
		t.Fatalf("hedged after %v, want %v, or a little more than %v", delay, hedgeAfter, usual)
	}
	return false
}

// showsHedgeBound: when everything is slow, few are hedged.
func showsHedgeBound(t *testing.T, c caller) bool {
	p := play(t, c)
	p.traffic(t, quick)
	p.as(func(int) (time.Duration, bool) { return tooLong, false })
	call := p.bind()
	for range together {
		p.calls.Go(func() { _ = call() })
	}
	p.calls.Wait()
	switch made := len(p.attempts()); {
	case made > together && made <= together*3/2:
		return true
	case made != together && made != 2*together:
		t.Fatalf("%d slow calls made %d attempts", together, made)
	}
	return false
}

// showsFirstSuccess: a hedge that fails at once is not the result.
func showsFirstSuccess(t *testing.T, c caller) bool {
	p := play(t, c)
	p.traffic(t, quick)
	p.as(func(attempt int) (time.Duration, bool) {
		if attempt == 1 {
			return tooLong, false
		}
		return quick, true
	})
	err := p.bind()()
	return len(p.attempts()) == 2 && err == nil
}

// What hedgedhttp claims, by the order of events: it hedges, however many calls are
// late, and a hedge's 503 is the result though the first attempt is still at work.
// Its delay is a number in its configuration.
func TestHedgedHTTPDoesWhatItClaims(t *testing.T) {
	s := hedgedHTTP(time.Millisecond)
	check.Equal(t, s.does, hedges, "claims")
	var firsts, seconds atomic.Int64
	allHedged := make(chan struct{})
	send := s.build(roundTrip(func(req *http.Request) (*http.Response, error) {
		if !hedgedhttp.IsHedgedRequest(req) {
			firsts.Add(1)
			<-req.Context().Done()
			return nil, req.Context().Err()
		}
		if seconds.Add(1) == together {
			close(allHedged)
		}
		<-allHedged
		return answer(req, http.StatusServiceUnavailable), nil
	}))
	var calls sync.WaitGroup
	for range together {
		calls.Go(func() {
			resp, err := send(t.Context(), "GET", target, nil)
			if err != nil {
				t.Error(err)
				return
			}
			check.Equal(t, resp.StatusCode, http.StatusServiceUnavailable, "status")
			_ = resp.Body.Close()
		})
	}
	calls.Wait()
	if firsts.Load() != together || seconds.Load() != together {
		t.Errorf("%d calls made %d first and %d second attempts", together, firsts.Load(), seconds.Load())
	}
}

// Where hedging is measured, nothing is hedged.
func TestNothingIsHedgedWhereItIsMeasured(t *testing.T) {
	for _, c := range slices.Concat(hedgeCallers(), overHTTP(hedgeSenders()), overGRPC(dialers())) {
		synctest.Test(t, func(t *testing.T) {
			const calls = 1000
			made := 0
			call := start(t, c, func(context.Context) error {
				made++
				return nil
			})
			for n := range calls {
				if err := call(); err != nil {
					t.Fatalf("%s, call %d: %v", c.name, n, err)
				}
				time.Sleep(hedgeAfter / 1000) // those that learn have time to
			}
			check.Equal(t, made, calls, "%s: attempts", c.name)
		})
	}
}

// A call that is not hedged, though it might have been, takes one allocation more
// than under a policy that does not hedge, and so at most does any other extra.
func TestExtrasTakeOneAllocation(t *testing.T) { extrasTakeOneAllocation(t, false) }

// served are the groups whose calls go to a server, which allocates when it pleases.
var served = map[string]bool{"GRPCUnary": true, "Adapters": true}

func extrasTakeOneAllocation(t *testing.T, ofServed bool) {
	if raced {
		t.Skip("the race detector changes what is allocated")
	}
	for _, g := range groups() {
		if served[g.name] != ofServed {
			continue
		}
		for _, e := range g.extras {
			limit := 1.0
			switch e.over {
			case "lullhttp":
				// Without timeouts, hedges and endpoints a request is sent as it is. An attempt
				// that can be cancelled by itself, or goes elsewhere, needs a copy of it.
				limit = 3
			case "lullhttp zero policy":
				// One piece of memory for the request and its context is only where nothing is hedged.
				limit = 2
			case "grpc-go":
				// The call's state, and what gRPC needs to report its end.
				limit = 3
			case "grpc-go deadline":
				// And the attempt's own deadline beside the call's.
				limit = 9
			}
			if g.name == "Adapters" {
				// What each takes is asserted where it is.
				limit = 5
			}
			with, without := allocations(t, g, e.subject), allocations(t, g, e.over)
			if with > without+limit {
				t.Errorf("%s: %s takes %v allocations, %s %v", g.name, e.subject, with, e.over, without)
			}
		}
	}
}

// allocations is what a call takes, at the least of five measurements: the servers and connections that it
// goes over now and then allocate for themselves.
func allocations(t *testing.T, g group, name string) float64 {
	seedWiring(t)
	bind := g.subjects[g.index(name)].start(t.Cleanup)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	call := bind(ctx)
	least := math.Inf(1)
	for range 5 {
		least = min(least, testing.AllocsPerRun(200, func() {
			if err := call(); err != nil {
				t.Error(err)
			}
		}))
	}
	return least
}
