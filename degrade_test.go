package lull_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// When recommendations are down, the page shows what sells best.
func ExampleDoOr() {
	d, _ := lull.NewDependency("recommendations", lull.Policy{Backoff: backoff.Schedule{Base: time.Millisecond}})
	bestSellers := []string{"tea", "soap"}
	recommend := func(failure error) {
		list, err := lull.DoOr(context.Background(), d, func(context.Context) ([]string, error) {
			return nil, failure
		}, func(_ context.Context, e *lull.Error) ([]string, error) {
			fmt.Println("degraded:", e.Reason)
			return bestSellers, nil
		})
		fmt.Println(list, errors.Is(err, failure))
	}
	recommend(lull.Transient(errors.New("connection reset")))
	recommend(lull.Permanent(errors.New("no such user"))) // an answer, if not a nice one
	// Output:
	// degraded: attempts_exhausted
	// [tea soap] false
	// [] true
}

// degrading has for every reason whether a degraded answer is right.
var degrading = map[lull.Reason]bool{
	engine.Success:           false,
	engine.Permanent:         false, // the answer is an error
	engine.Overloaded:        true,
	engine.NotIdempotent:     false, // nobody knows what was done
	engine.NotReplayable:     false,
	engine.AttemptsExhausted: true,
	engine.CircuitOpen:       true,
	engine.HintTooLong:       true,
	engine.Deadline:          true,
	engine.BudgetExhausted:   true,
	engine.Limited:           true,
	engine.Canceled:          false, // nobody waits for it
	engine.Unanswered:        true,
	engine.Throttled:         true,
	engine.TooManyWaiting:    true,
	engine.TooManyLate:       false, // no call ends so
	engine.TooManyHedges:     false,
	engine.RetriedAbove:      true,
	engine.Panicked:          false, // the panic passes on
	engine.Crashed:           false, // messages
	engine.Resumed:           false,
	engine.Expired:           false,
	engine.TooLarge:          false,
}

// Every reason has a row, in the test and in the comment of engine.Result.Degrades.
func TestEveryReasonDegradesOrDoesNot(t *testing.T) {
	source := string(must.Have(os.ReadFile("engine/result.go")))
	_, list, _ := strings.Cut(source, "//\tit does:")
	does, never, ok := strings.Cut(list, "//\tnever:")
	never, _, _ = strings.Cut(never, "\n//\n")
	for r := range lull.Reason(engine.Reasons) {
		want, known := degrading[r]
		if !known {
			t.Errorf("%v has no row: is a degraded answer right after it?", r)
		}
		row := never
		if want {
			row = does
		}
		if !ok || !slices.Contains(strings.Fields(row), r.String()) {
			t.Errorf("the comment of engine.Result.Degrades does not have %v in its row", r)
		}
		check.Equal(t, engine.Result{Reason: r}.Degrades(), want, "%v degrades", r)
		check.Equal(t, (&lull.Error{Reason: r}).Degrades(), want, "an error for %v degrades", r)
		check.Equal(t, engine.Result{Reason: r, OutcomeUnknown: true}.Degrades(), false, "%v of an unknown outcome degrades", r)
		check.Equal(t, (&lull.Error{Reason: r, OutcomeUnknown: true}).Degrades(), false, "an error for %v of an unknown outcome degrades", r)
	}
	check.Equal(t, (*lull.Error)(nil).Degrades(), false, "no error degrades")
}

// ends collects how calls ended, and their fallbacks.
type ends []lull.Event

func (n *ends) Observe(_ context.Context, e lull.Event) {
	if e.Kind == event.CallEnded || e.Kind == event.FallbackEnded {
		*n = append(*n, e)
	}
}

// The fallback runs after a call that ended for a reason that degrades, and after no other. The events match.
func TestTheFallbackRunsWhenItShould(t *testing.T) {
	blip := lull.Transient(errBlip)
	gone, leave := context.WithCancel(t.Context())
	leave()
	fails := func(err error) func(context.Context) (int, error) {
		return func(context.Context) (int, error) { return 1, err }
	}
	once := lull.Policy{Attempts: 1}
	full := func() *lull.Dependency {
		d := newDependency(t, lull.Policy{Limit: bulkhead.Config{InFlight: 1}})
		d.Limiter().TryAcquire()
		return d
	}
	for name, c := range map[string]struct {
		ctx    context.Context
		policy lull.Policy
		op     func(context.Context) (int, error)
		opts   []lull.CallOption
		reason lull.Reason
		runs   bool
		before func(*lull.Dependency)
	}{
		"success":                                {op: fails(nil)},
		"no more":                                {policy: once, op: fails(blip), reason: engine.AttemptsExhausted, runs: true},
		"the answer":                             {op: fails(lull.Permanent(errBlip)), reason: engine.Permanent},
		"nothing known":                          {op: fails(errBlip), reason: engine.Permanent},
		"the caller left":                        {ctx: gone, op: fails(blip), reason: engine.Canceled},
		"overloaded":                             {op: fails(errOverloaded), reason: engine.Overloaded, runs: true},
		"too long a wait":                        {op: fails(lull.RetryAfter(errBlip, time.Hour)), reason: engine.HintTooLong, runs: true},
		"the circuit":                            {op: fails(nil), reason: engine.CircuitOpen, runs: true, before: func(d *lull.Dependency) { d.Breaker().ForceOpen(d.Now()) }},
		"a write that may have been carried out": {op: fails(blip), opts: []lull.CallOption{lull.NotIdempotent()}, reason: engine.NotIdempotent},
		"such a write, once":                     {op: fails(blip), opts: []lull.CallOption{lull.NotIdempotent(), lull.Once()}, reason: engine.AttemptsExhausted},
		"such a write, overloaded":               {op: fails(errOverloaded), opts: []lull.CallOption{lull.NotIdempotent()}, reason: engine.Overloaded},
		"a write that was not sent":              {policy: once, op: fails(lull.NeverSent(errBlip)), opts: []lull.CallOption{lull.NotIdempotent()}, reason: engine.AttemptsExhausted, runs: true},
		"one step unknown":                       {op: fails(errHalf), reason: engine.Permanent},
		"a call below had no room":               {op: fails(&lull.Error{Reason: engine.Limited}), reason: engine.Permanent, runs: true},
		"a call below was an answer":             {op: fails(&lull.Error{Reason: engine.Permanent}), reason: engine.Permanent},
		"a write below, marked":                  {policy: once, op: fails(lull.Transient(&lull.Error{Reason: engine.NotIdempotent, OutcomeUnknown: true})), reason: engine.AttemptsExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen ends
				d := newDependency(t, c.policy, lull.WithObserver(&seen), lull.WithClassifier(known))
				if c.before != nil {
					c.before(d)
				}
				ctx := c.ctx
				if ctx == nil {
					ctx = t.Context()
				}
				var got *lull.Error
				n, err := lull.DoOr(ctx, d, c.op, func(in context.Context, e *lull.Error) (int, error) {
					check.Equal(t, in, ctx, "the context of the fallback")
					got = e
					time.Sleep(time.Second)
					return 7, nil
				}, append(c.opts, lull.Operation("get"))...)
				if c.runs != (got != nil) || c.runs && (n != 7 || err != nil || got.Reason != c.reason) || !c.runs && c.reason != engine.Success && err == nil {
					t.Fatalf("%v, %v; the fallback got %v", n, err, got)
				}
				first := seen[0]
				if first.Kind != event.CallEnded || first.Reason != c.reason || first.Fallback != c.runs {
					t.Errorf("%+v", first)
				}
				if c.runs {
					last := seen[1]
					if last.Kind != event.FallbackEnded || last.Reason != c.reason || last.Err != nil || last.Operation != "get" || last.Attempt != first.Attempt || last.Elapsed != first.Elapsed+time.Second {
						t.Errorf("%+v", last)
					}
				}
				check.Equal(t, len(seen), map[bool]int{false: 1, true: 2}[c.runs], "events")
			})
		})
	}
	if n, err := lull.DoOr(t.Context(), full(), value, func(context.Context, *lull.Error) (int, error) { return 7, nil }); n != 7 || err != nil {
		t.Errorf("no room: %v, %v", n, err)
	}
	if _, err := lull.DoOr(t.Context(), newDependency(t, once), fails(blip), nil); !errors.Is(err, errBlip) {
		t.Errorf("no fallback: %v", err)
	}
}

var errOverloaded, errHalf = errors.New("overloaded"), errors.New("half of it")

// known is a classifier of the two.
func known(err error) lull.Verdict {
	switch {
	case errors.Is(err, errOverloaded):
		return lull.Verdict{Kind: lull.KindOverloaded, Code: "503"}
	case errors.Is(err, errHalf):
		return lull.Verdict{Code: engine.CodeOutcomeUnknown}
	}
	return lull.Classify(err)
}

// If the fallback fails, too, both errors are in the result, and the call's *Error is the first.
func TestTheErrorOfAFallback(t *testing.T) {
	var seen ends
	d := newDependency(t, lull.Policy{Attempts: 1}, lull.WithObserver(&seen))
	fail := func(context.Context) (int, error) { return 1, lull.Transient(errBlip) }
	n, err := lull.DoOr(t.Context(), d, fail, func(context.Context, *lull.Error) (int, error) { return 2, io.ErrNoProgress })
	e, ok := errors.AsType[*lull.Error](err)
	if n != 2 || !errors.Is(err, errBlip) || !errors.Is(err, io.ErrNoProgress) || !errors.Is(err, lull.ErrAttemptsExhausted) || !ok || e.Dependency != d.Name() || !errors.Is(seen[1].Err, io.ErrNoProgress) {
		t.Errorf("%v, %v; %+v", n, err, seen)
	}
	if v := lull.Classify(err); v.Code != engine.CodeRetriedBelow {
		t.Errorf("a call above gets %+v", v)
	}
	// Also if it makes calls, and returns their errors beside what it got.
	_, err = lull.DoOr(t.Context(), d, fail, func(_ context.Context, e *lull.Error) (int, error) {
		return 0, errors.Join(&lull.Error{Dependency: "other"}, e)
	})
	if e, ok := errors.AsType[*lull.Error](err); !ok || e.Dependency != d.Name() {
		t.Errorf("the first error is not the call's: %v", err)
	}
	// A fallback that returns what it got adds nothing.
	_, err = lull.DoOr(t.Context(), d, fail, func(_ context.Context, e *lull.Error) (int, error) { return 0, e })
	if _, same := err.(*lull.Error); !same {
		t.Errorf("%T", err)
	}
}

// A panic of the fallback passes on, and the observers still get the end.
func TestAPanicOfAFallback(t *testing.T) {
	var seen ends
	d := newDependency(t, lull.Policy{Attempts: 1}, lull.WithObserver(&seen))
	defer func() {
		if p := recover(); p != "boom" || len(seen) != 2 || seen[1].Kind != event.FallbackEnded || seen[1].Err == nil {
			t.Errorf("%v; %+v", p, seen)
		}
	}()
	lull.DoOr(t.Context(), d, func(context.Context) (int, error) { return 1, lull.Transient(errBlip) }, func(context.Context, *lull.Error) (int, error) { panic("boom") })
}

// Fallbacks, good or bad, are no evidence: the dependency's state is that of the same calls without them.
func TestFallbacksAreNoEvidence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type state struct {
			tokens  float64
			circuit breaker.CircuitState
		}
		states := map[string]state{}
		for name, answer := range map[string]func(context.Context, *lull.Error) (int, error){
			"none": nil,
			"good": func(context.Context, *lull.Error) (int, error) { return 7, nil },
			"bad":  func(context.Context, *lull.Error) (int, error) { return 0, lull.Transient(errBlip) },
		} {
			d := newDependency(t, lull.Policy{Attempts: 2, Backoff: backoff.Schedule{Kind: backoff.Constant}, Breaker: breaker.Config{Consecutive: 5, ConsecutiveFor: -1}}, lull.WithRand(middle))
			for range 4 {
				lull.DoOr(t.Context(), d, func(context.Context) (int, error) { return 0, lull.Transient(errBlip) }, answer)
			}
			states[name] = state{d.Budget().Balance(d.Now()), d.Breaker().State(d.Now())}
		}
		check.Equal(t, states["good"], states["none"], "with a good fallback")
		check.Equal(t, states["bad"], states["none"], "with a bad one")
	})
}

// The deadline of the call may be over when the fallback runs. It still has the caller's time.
func TestTheFallbackHasTheCallersTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDependency(t, lull.Policy{Deadline: time.Second})
		hang := func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() }
		alive := func(ctx context.Context, _ *lull.Error) (int, error) { return 7, ctx.Err() }
		if n, err := lull.DoOr(t.Context(), d, hang, alive); n != 7 || err != nil {
			t.Errorf("the policy's deadline: %v, %v", n, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*ms)
		defer cancel()
		if _, err := lull.DoOr(ctx, d, hang, alive); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, lull.ErrDeadline) && !errors.Is(err, lull.ErrUnanswered) {
			t.Errorf("the caller's deadline: %v", err)
		}
	})
}

// What the last attempt returned with its error is closed, since nobody gets it.
func TestTheFallbackReplacesWhatTheCallReturned(t *testing.T) {
	d := newDependency(t, lull.Policy{Attempts: 1})
	body := &closer{}
	out, err := lull.DoOr(t.Context(), d, func(context.Context) (io.ReadCloser, error) { return body, lull.Transient(errBlip) },
		func(context.Context, *lull.Error) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader("old")), nil
		})
	if err != nil || out == nil || !body.closed {
		t.Errorf("%v, %v; closed: %v", out, err, body.closed)
	}
}

type closer struct {
	strings.Reader
	closed bool
}

func (c *closer) Close() error { c.closed = true; return nil }

// A call that succeeds costs no allocation for its fallback.
func TestAFallbackThatDoesNotRunAllocatesNothing(t *testing.T) {
	d := wholeStack(t)
	spare := func(context.Context, *lull.Error) (int, error) { return 7, nil }
	if got := testing.AllocsPerRun(1000, func() { lull.DoOr(context.Background(), d, value, spare, lull.Operation("get")) }); got > 0 {
		t.Errorf("%v allocations", got)
	}
}

// The outcome is unknown if the operation may have been carried out, and must not be repeated.
func TestWhenTheOutcomeIsUnknown(t *testing.T) {
	for _, c := range []struct {
		v             lull.Verdict
		notIdempotent bool
		want          bool
	}{
		{lull.Verdict{Kind: lull.KindTransient, Code: engine.CodeTimeout}, true, true},
		{lull.Verdict{Kind: lull.KindTransient, Code: engine.CodeTimeout}, false, false},
		{lull.Verdict{Kind: lull.KindTransient, NeverSent: true}, true, false},
		{lull.Verdict{Kind: lull.KindRateLimited}, true, true},
		{lull.Verdict{Kind: lull.KindOverloaded}, true, true},
		{lull.Verdict{Kind: engine.KindCanceled}, true, true}, // the caller left in the midst of it
		{lull.Verdict{Kind: engine.KindCallerTransient}, true, true},
		{lull.Verdict{Kind: lull.KindPermanent, Code: "404"}, true, false},
		{lull.Verdict{Kind: lull.KindPermanent, Code: engine.CodeTimeout}, true, true}, // a mark made it permanent
		{lull.Verdict{Kind: lull.KindPermanent, Code: engine.CodeTimeout, NeverSent: true}, true, false},
		{lull.Verdict{Kind: lull.KindPermanent, Code: engine.CodeTimeout}, false, false},
		{lull.Verdict{Kind: lull.KindUnclassified, Code: engine.CodeUnclassified}, true, false},
		{lull.Verdict{Kind: engine.KindCallerSide}, true, false},
		{lull.Verdict{Kind: lull.KindSuccess}, true, false},
		{lull.Verdict{Code: engine.CodeOutcomeUnknown}, false, true},
		{lull.Verdict{Kind: engine.KindCanceled, Code: engine.CodeOutcomeUnknown}, false, true},
	} {
		check.Equal(t, c.v.OutcomeUnknown(c.notIdempotent), c.want, "%+v, not idempotent: %v", c.v, c.notIdempotent)
	}
	var seen ends
	d := newDependency(t, lull.Policy{}, lull.WithObserver(&seen))
	for _, c := range []struct {
		err  error
		want bool
	}{{nil, false}, {lull.Transient(errBlip), true}, {lull.Permanent(errBlip), false}, {lull.RetryAfter(lull.NeverSent(errBlip), time.Hour), false}} {
		seen = nil
		err := lull.Run(t.Context(), d, func(context.Context) error { return c.err }, lull.NotIdempotent())
		e, _ := errors.AsType[*lull.Error](err)
		if seen[0].OutcomeUnknown != c.want || (e != nil && e.OutcomeUnknown) != c.want {
			t.Errorf("%v: %+v; %+v", c.err, seen[0], e)
		}
	}
	seen = nil
	d.Breaker().ForceOpen(d.Now())
	if err := lull.Run(t.Context(), d, succeed, lull.NotIdempotent()); err == nil || seen[0].OutcomeUnknown {
		t.Errorf("a call that was refused: %+v", seen[0])
	}
}

// What a call below may have done, the call above may have done, however deep it is and whatever marks it. No fallback runs.
func TestAnUnknownOutcomeBelow(t *testing.T) {
	blip := lull.Transient(errBlip)
	below := func(err error, opts ...lull.CallOption) error {
		e := lull.Run(t.Context(), newDependency(t, lull.Policy{Attempts: 2, Backoff: backoff.Schedule{Kind: backoff.Immediate}}), func(context.Context) error { return err }, opts...)
		if e == nil {
			t.Fatal("no error")
		}
		return e
	}
	refused := newDependency(t, lull.Policy{})
	refused.Breaker().ForceOpen(refused.Now())
	unknown, known, unsent := below(blip, lull.NotIdempotent()), below(blip), lull.Run(t.Context(), refused, succeed)
	for name, c := range map[string]struct {
		err           error
		notIdempotent bool
		want          bool
	}{
		"a write":                        {unknown, false, true},
		"a write, marked":                {lull.Transient(unknown), false, true},
		"a write, two below":             {below(unknown), false, true},
		"a write, two below, marked":     {lull.Transient(below(unknown)), false, true},
		"a write, marked twice":          {lull.Permanent(below(lull.Transient(unknown))), false, true},
		"a write beside another call":    {lull.Transient(errors.Join(known, unknown)), false, true},
		"a write that was not sent":      {lull.NeverSent(unknown), false, false},
		"what may be repeated":           {known, false, false},
		"what may be repeated below":     {known, true, true}, // but not by this call
		"that, two below":                {below(known), true, true},
		"an answer":                      {below(lull.Permanent(errBlip)), true, false},
		"an answer after a failure":      {lull.Permanent(errBlip), true, false},
		"refused":                        {unsent, true, false},
		"refused, two below":             {below(unsent), true, false},
		"never sent, after what was not": {below(lull.NeverSent(blip)), true, true}, // the first may have been
	} {
		var seen ends
		opts := []lull.CallOption{}
		if c.notIdempotent {
			opts = append(opts, lull.NotIdempotent())
		}
		d := newDependency(t, lull.Policy{Attempts: 1}, lull.WithObserver(&seen))
		ran := false
		_, err := lull.DoOr(t.Context(), d, func(context.Context) (int, error) { return 0, c.err }, func(_ context.Context, e *lull.Error) (int, error) {
			ran = true
			return 0, e
		}, opts...)
		e, ok := err.(*lull.Error)
		if !ok || e.OutcomeUnknown != c.want || seen[0].OutcomeUnknown != c.want || c.want && (ran || seen[0].Fallback || e.Degrades()) {
			t.Errorf("%s: %+v; %+v; the fallback ran: %v", name, e, seen[0], ran)
		}
	}
}

// Nobody knows what an operation did that panicked.
func TestAPanicLeavesTheOutcomeUnknown(t *testing.T) {
	for _, notIdempotent := range []bool{false, true} {
		var seen ends
		d := newDependency(t, lull.Policy{}, lull.WithObserver(&seen))
		func() {
			defer func() { recover() }()
			d.Drive(t.Context(), engine.Spec{NotIdempotent: notIdempotent}, func(context.Context) lull.Verdict { panic("oh") }, nil, nil)
		}()
		check.Equal(t, seen[0].Reason, engine.Panicked, "the reason")
		check.Equal(t, seen[0].OutcomeUnknown, notIdempotent, "an unknown outcome")
	}
}

// A driver of its own announces a fallback with the Spec, plain, hedged or for the rest of an answer, and reports its end.
func TestDriversAnnounceFallbacks(t *testing.T) {
	for name, drive := range map[string]func(*lull.Dependency, engine.Spec) engine.Result{
		"plain": func(d *lull.Dependency, s engine.Spec) engine.Result {
			return d.Drive(t.Context(), s, func(context.Context) lull.Verdict { return lull.Verdict{Kind: lull.KindTransient, Code: "503"} }, nil, nil)
		},
		"hedged": func(d *lull.Dependency, s engine.Spec) engine.Result { return d.DriveHedged(t.Context(), s, failing{}) },
		"the rest": func(d *lull.Dependency, s engine.Spec) engine.Result {
			return d.Continue(t.Context(), s, 1, lull.Verdict{Kind: lull.KindTransient, Code: "cut"}, func(context.Context) lull.Verdict { return lull.Verdict{Kind: lull.KindTransient, Code: "503"} }, nil, nil)
		},
	} {
		var seen ends
		d := newDependency(t, lull.Policy{Attempts: 1}, lull.WithObserver(&seen))
		for _, fallback := range []bool{false, true} {
			r := drive(d, engine.Spec{Operation: "list", Fallback: fallback})
			if last := seen[len(seen)-1]; !r.Degrades() || last.Kind != event.CallEnded || last.Fallback != fallback {
				t.Errorf("%s: %+v, %+v", name, r, last)
			}
			if fallback {
				d.FallbackEnded(t.Context(), "list", r, nil)
			}
		}
		if last := seen[len(seen)-1]; last.Kind != event.FallbackEnded || last.Reason != engine.AttemptsExhausted || last.Operation != "list" {
			t.Errorf("%s: %+v", name, last)
		}
	}
	newDependency(t, lull.Policy{}).FallbackEnded(t.Context(), "list", engine.Result{}, nil) // nobody observes it
}

// failing is a hedgeable operation that fails.
type failing struct{}

func (failing) Attempt(context.Context, int) lull.Verdict {
	return lull.Verdict{Kind: lull.KindTransient, Code: "503"}
}
func (failing) Discard(int, time.Duration) {}
func (failing) Err(int) error              { return errBlip }
