package bench

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/seed"
)

// Figures of a subject that does not do what its label claims are worth nothing.
// Each feature is proved by a workload that ends differently with and without
// it, and every subject must show exactly the features that it claims. Delays
// pass in the virtual time of a synctest bubble.
func TestSubjectsDoWhatTheyClaim(t *testing.T) {
	if testing.Short() {
		t.Skip("not short: what each subject does is the same every time, and takes seconds to see")
	}
	lists := map[string][]caller{
		"RetrySuccess":    retryCallers(),
		"ComposedSuccess": composedCallers(),
		"ThreeFailures":   failureCallers(),
		"HedgeSuccess":    hedgeCallers(),
		"Metrics":         metricsCallers(),
		"HTTP":            overHTTP(senders()),
		"HedgeHTTP":       overHTTP(hedgeSenders()),
		"GRPC":            overGRPC(dialers()),
	}
	proofs := []struct {
		feature feature
		shown   func(*testing.T, caller) bool
	}{
		{retries, showsRetries},
		{budgeted, showsBudget},
		{breaks, showsBreaker},
		{limited, showsLimit},
		{observed, showsObserver},
		{timed, showsTimeouts},
		{hedges, showsHedges},
		{learned, showsLearnedDelay},
		{bounded, showsHedgeBound},
		{firstSuccess, showsFirstSuccess},
		{throttled, showsThrottle},
		{chooses, showsEndpoints},
	}
	for list, callers := range lists {
		for _, c := range callers {
			t.Run(list+"/"+c.name, func(t *testing.T) {
				seedWiring(t)
				for _, p := range proofs {
					if p.feature&(budgeted|breaks) != 0 && c.does&throttled != 0 {
						// To a dependency that fails a throttle sends less, as these do: they are
						// proved only where there is none.
						continue
					}
					var shown bool
					synctest.Test(t, func(t *testing.T) { shown = p.shown(t, c) })
					check.Equal(t, shown, c.does&p.feature != 0, "%v: shown", p.feature)
				}
			})
		}
	}
}

// seedWiring seeds what subjects draw, for the duration of the test.
func seedWiring(t *testing.T) {
	wiring = []lull.Option{lull.WithRand(seed.Source(t))}
	t.Cleanup(func() { wiring = nil })
}

// start builds the caller and binds it to op.
func start(t *testing.T, c caller, op op) (call func() error) {
	t.Helper()
	bind := c.build()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel) // in the bubble: ends what a library may have left waiting
	return bind(ctx, op)
}

// repeat makes so many calls, all of which must fail, or none.
func repeat(t *testing.T, n int, call func() error, fail bool) {
	t.Helper()
	for range n {
		if err := call(); (err != nil) != fail {
			t.Fatalf("error %v, want one: %v", err, fail)
		}
	}
}

// showsRetries: a call whose first attempt fails succeeds with the second.
func showsRetries(t *testing.T, c caller) bool {
	made, failing := 0, 0
	call := start(t, c, func(context.Context) error {
		made++
		if failing > 0 {
			failing--
			return c.retryable
		}
		return nil
	})
	// Successes first: they earn the budget that some demand for a retry.
	for n := 1; n <= 100; n++ {
		if err := call(); err != nil || made != n {
			t.Fatalf("call %d, which succeeds: error %v, %d attempts in all", n, err, made)
		}
	}
	made, failing = 0, 1
	err := call()
	switch {
	case err == nil && made == 2:
		return true
	case err != nil && made == 1:
		return false
	}
	t.Fatalf("one failure: error %v after %d attempts", err, made)
	return false
}

// showsBudget: retries are refused, either when one call in three fails for
// good (budgets of volume), or when forty calls retry at once (budgets of
// concurrency). Both keep breakers closed and limits unreached.
func showsBudget(t *testing.T, c caller) bool {
	if !showsRetries(t, c) {
		return false
	}
	const rounds, depth = 400, 40
	made, failing := 0, false
	call := start(t, c, func(context.Context) error {
		made++
		if failing {
			return c.retryable
		}
		return nil
	})
	full := 0 // attempts of a failing call that many successes have paid for
	for n := -101; n < 3*rounds; n++ {
		failing = n == -1 || n >= 0 && n%3 == 2
		if err := call(); (err != nil) != failing {
			t.Fatalf("call %d: error %v, want one: %v", n, err, failing)
		}
		if n == -1 {
			full, made = made-100, 0
		}
	}
	if made < rounds*(2+full) {
		return true
	}

	level, deepest := 0, 0
	var nested func() error
	nested = start(t, c, func() op {
		failed := map[int]bool{}
		return func(context.Context) error {
			if !failed[level] {
				failed[level] = true
				return c.retryable
			}
			if deepest = max(deepest, level+1); level+1 == depth {
				return nil
			}
			level++
			defer func() { level-- }()
			return nested()
		}
	}())
	err := nested()
	if (err == nil) != (deepest == depth) {
		t.Fatalf("nested: error %v at depth %d", err, deepest)
	}
	return deepest < depth
}

// showsBreaker: after many failed calls, the next is not even attempted.
func showsBreaker(t *testing.T, c caller) bool {
	made := 0
	call := start(t, c, func(context.Context) error {
		made++
		time.Sleep(100 * time.Millisecond) // some go by how long nothing has succeeded
		return c.retryable
	})
	repeat(t, 200, call, true)
	made = 0
	repeat(t, 1, call, true)
	return made == 0
}

// showsLimit: of a hundred calls inside one another, only so many get in.
func showsLimit(t *testing.T, c caller) bool {
	const depth = 100
	level := 0
	var call func() error
	call = start(t, c, func(context.Context) error {
		if level++; level < depth {
			_ = call()
		}
		return nil
	})
	repeat(t, 1, call, false)
	if level != depth && level != inFlight {
		t.Fatalf("%d calls in flight: want all %d, or the limit of %d", level, depth, inFlight)
	}
	return level == inFlight
}

// showsObserver: the counter has seen every call.
func showsObserver(t *testing.T, c caller) bool {
	const calls = 10
	call := start(t, c, func(context.Context) error { return nil })
	before := seen.calls.Load()
	repeat(t, calls, call, false)
	switch n := seen.calls.Load() - before; n {
	case 0:
		return false
	case calls:
		return true
	default:
		t.Fatalf("%d of %d calls were observed", n, calls)
		return false
	}
}

// showsTimeouts: the context of an operation that hangs ends.
func showsTimeouts(t *testing.T, c caller) bool {
	const patience = time.Hour
	var stopped atomic.Bool
	begin := time.Now()
	call := start(t, c, func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			if time.Since(begin) < patience { // else it is a hedge whose call has just succeeded
				stopped.Store(true)
			}
			return ctx.Err()
		case <-time.After(patience):
			return nil
		}
	})
	err := call()
	took := time.Since(begin)
	synctest.Wait() // a server stops later than the caller
	if stopped.Load() != (err != nil) || stopped.Load() != (took < patience) {
		t.Fatalf("stopped %v, error %v after %v", stopped.Load(), err, took)
	}
	return stopped.Load()
}

// showsThrottle: attempts are still held back when calls have succeeded again for
// some time, as breakers do not.
func showsThrottle(t *testing.T, c caller) bool {
	recovered := false
	call := start(t, c, func(context.Context) error {
		if recovered {
			return nil
		}
		return lull.RetryAfter(c.retryable, 0)
	})
	repeat(t, 100, call, true)
	recovered = true
	succeeded, heldBack := 0, false
	for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(20 * time.Millisecond) {
		called := time.Now()
		err := call()
		if succeeded >= 20 && (err != nil || time.Since(called) > 0) {
			heldBack = true
		}
		if err == nil {
			succeeded++
		}
	}
	if succeeded < 1000 {
		t.Fatalf("only %d calls succeeded", succeeded)
	}
	return heldBack
}

// showsEndpoints: attempts go to more than one host.
func showsEndpoints(t *testing.T, c caller) bool {
	hosts := map[any]bool{}
	call := start(t, c, func(ctx context.Context) error {
		hosts[ctx.Value(sentTo{})] = true
		return nil
	})
	repeat(t, 100, call, false)
	return len(hosts) > 1
}

// The work of a group is as in its description.
func TestWork(t *testing.T) {
	const calls = 8
	for _, c := range failureCallers() {
		synctest.Test(t, func(t *testing.T) {
			work, made := failThrice(c.retryable), 0
			call := start(t, c, func(ctx context.Context) error {
				made++
				return work(ctx)
			})
			begin := time.Now()
			for n := range calls {
				check.Equal(t, call(), nil, "%s, call %d", c.name, n)
			}
			check.Equal(t, made, calls*4, "%s: attempts", c.name)
			check.Equal(t, time.Since(begin), 0, "%s waited between attempts", c.name)
		})
	}
	if err := succeed(errBlip)(t.Context()); err != nil {
		t.Error(err)
	}
}

// overHTTP makes callers of senders: an attempt that fails is a 503. It leaves out hedgedhttp, which keeps channels and timers for ever:
// a bubble may not.
func overHTTP(senders []sender) (callers []caller) {
	for _, s := range senders {
		if s.name == "hedgedhttp" {
			continue
		}
		callers = append(callers, caller{s.name, s.does, errBlip, func() bindOp {
			var attempt op
			send := s.build(roundTrip(func(req *http.Request) (*http.Response, error) {
				err := attempt(context.WithValue(req.Context(), sentTo{}, req.URL.Host))
				switch {
				case err == nil:
					return answer(req, http.StatusOK), nil
				case req.Context().Err() != nil:
					return nil, err
				}
				return answer(req, http.StatusServiceUnavailable), nil
			}))
			return func(ctx context.Context, op op) func() error {
				attempt = op
				return func() error { return send.whole(ctx, "GET", nil) }
			}
		}})
	}
	return callers
}

// sentTo is the key of the host that an attempt goes to.
type sentTo struct{}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// Every attempt carries the whole body.
func TestSendersSendTheWholeBody(t *testing.T) {
	seedWiring(t)
	body := bytes.Repeat([]byte("0123456789abcdef"), 64)
	for _, s := range senders() {
		for _, failures := range []int{0, 1} {
			synctest.Test(t, func(t *testing.T) {
				failing, made := 0, 0
				send := s.build(roundTrip(func(req *http.Request) (*http.Response, error) {
					made++
					var got []byte
					if req.Body != nil {
						var err error
						if got, err = io.ReadAll(req.Body); err != nil {
							t.Errorf("%s: attempt %d: %v", s.name, made, err)
						}
						_ = req.Body.Close()
					}
					if req.Method == "PUT" && !bytes.Equal(got, body) {
						t.Errorf("%s: attempt %d came with %d of %d bytes", s.name, made, len(got), len(body))
					}
					if made <= failing {
						return answer(req, http.StatusServiceUnavailable), nil
					}
					return answer(req, http.StatusOK), nil
				}))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				request := func(method string, body []byte) int {
					resp, err := send(ctx, method, target, body)
					if err != nil {
						t.Fatalf("%s: %v", s.name, err)
					}
					_ = resp.Body.Close()
					return resp.StatusCode
				}
				for range 100 { // they earn the budget for a retry
					request("GET", nil)
				}
				made, failing = 0, failures
				status, want := request("PUT", body), http.StatusOK
				if failures > 0 && s.does&retries == 0 {
					want = http.StatusServiceUnavailable
				}
				check.Equal(t, status, want, "%s: status with %d failure(s)", s.name, failures)
			})
		}
	}
}

func TestGroupsAreWellFormed(t *testing.T) {
	for _, g := range groups() {
		names := map[string]int{}
		for _, s := range g.subjects {
			names[s.name]++
		}
		for name, n := range names {
			if n > 1 {
				t.Errorf("%s has %d subjects called %q", g.name, n, name)
			}
		}
		for _, e := range g.extras {
			if names[e.subject] != 1 || names[e.over] != 1 {
				t.Errorf("%s has no %q, or no %q", g.name, e.subject, e.over)
			}
		}
	}
}
