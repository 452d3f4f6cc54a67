package lullotel

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/throttle"
)

func TestEveryReasonHasItsOutcome(t *testing.T) {
	for _, c := range []struct {
		reason   lull.Reason
		attempts int
		want     string
	}{
		{engine.Success, 1, "success_first"}, {engine.Success, 2, "success_retry"}, {engine.Panicked, 1, "failed_terminal"},
		{engine.Permanent, 1, "failed_terminal"}, {engine.Overloaded, 1, "failed_terminal"},
		{engine.NotIdempotent, 1, "failed_terminal"}, {engine.NotReplayable, 1, "failed_terminal"},
		{engine.HintTooLong, 1, "failed_terminal"}, {engine.Unanswered, 1, "failed_terminal"}, {engine.RetriedAbove, 1, "failed_terminal"},
		{engine.AttemptsExhausted, 3, "failed_exhausted"}, {engine.BudgetExhausted, 2, "failed_budget"},
		{engine.Deadline, 0, "failed_deadline"}, {engine.Deadline, 2, "failed_deadline"},
		{engine.CircuitOpen, 0, "failed_breaker"}, {engine.Limited, 0, "failed_limited"}, {engine.Throttled, 1, "failed_limited"},
		{engine.TooManyWaiting, 1, "failed_limited"},
		{engine.Canceled, 1, "canceled"}, {lull.Reason(200), 1, "failed_terminal"},
	} {
		r := newRig(t)
		r.Observe(t.Context(), lull.Event{Kind: event.CallEnded, Dependency: "d", Operation: "o", Reason: c.reason, Attempt: c.attempts, EndedAttempt: c.attempts, Elapsed: time.Millisecond})
		all := r.collect(t)
		for o := range outcomes {
			want := 0.0
			if o.String() == c.want {
				want = 1
			}
			all.want(t, want, "retry.calls", "dependency", "d", "operation", "o", "outcome", o.String())
			all.want(t, want, "retry.call.duration", "outcome", o.String())
		}
		all.want(t, float64(c.attempts), "retry.attempts")
		// All series of an operation are there from its first call on.
		all.wantSeries(t, int(outcomes), "retry.calls")
		all.wantSeries(t, 2, "retry.attempts")
		all.wantSeries(t, 1, "retry.budget.denied")
		all.wantSeries(t, 3, "retry.server_hints")
		if n := all.value("retry.call.failures"); (n == 1) == (c.reason == engine.Success) {
			t.Errorf("%v: %v failures", c.reason, n)
		}
	}
}

// The metrics match what the operations have seen, for random operations under policies that end
// calls in all ways, with attempts one after the other or side by side, whether the calls were
// started here or not. An attempt that loses is only counted as made.
func TestMetricsAreWhatOperationsSaw(t *testing.T) {
	retried := steady()
	retried.Budget.Unlimited = false
	retried.Breaker.Off = false
	retried.Deadline, retried.AttemptTimeout = 200*time.Millisecond, 60*time.Millisecond
	retried.HintLimit = 50 * time.Millisecond
	hedged := steady()
	hedged.Budget.Unlimited = false // it ends calls whose last attempt has failed
	hedged.Attempts = 1
	hedged.Hedge = hedge.Config{Attempts: 3, Delay: 10 * time.Millisecond, Share: -1}
	for _, wrapped := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			saw(t, retried, wrapped, SuccessFirst, SuccessRetry, FailedTerminal, FailedBudget, FailedDeadline, FailedBreaker, Canceled)
		})
		synctest.Test(t, func(t *testing.T) { saw(t, hedged, wrapped, SuccessFirst, SuccessRetry, FailedTerminal, FailedBudget) })
	}
}

// saw makes calls under p. Some of them must have each of the outcomes in must.
func saw(t *testing.T, p lull.Policy, wrapped bool, must ...Outcome) {
	const calls = 3000
	random := rand.New(rand.NewPCG(7, 7))
	r := newRig(t)
	d := dependencyOn(t, r, "d", p, lull.WithRand(rand.New(rand.NewPCG(8, 8)).Uint64))
	hedged := p.Hedge.Attempts > 0
	var mu sync.Mutex // attempts may be side by side
	want := make(map[string]float64)
	var inTimed, inOps, inCalls time.Duration
	for i := range calls {
		ctx, cancel := context.WithCancel(t.Context())
		if !hedged && random.IntN(10) == 0 {
			ctx, cancel = context.WithTimeout(ctx, time.Duration(random.IntN(100))*time.Millisecond)
		}
		if !hedged && random.IntN(10) == 0 {
			time.AfterFunc(time.Duration(random.IntN(50))*time.Millisecond, cancel)
		}
		down := i%300 > 270 // for long enough to open the circuit
		panics := random.IntN(50) == 0
		attempts, winner := 0, 0
		began := time.Now()
		op := func(ctx context.Context) (_ int, err error) {
			from := time.Now()
			mu.Lock()
			defer mu.Unlock()
			attempts++
			number := attempts
			want["attempts"]++
			length := time.Duration(1 + random.IntN(3e7)) // in ns, so that no two end in one moment
			mu.Unlock()
			select {
			case <-time.After(length):
			case <-ctx.Done():
				err = ctx.Err()
			}
			mu.Lock()
			inOps += time.Since(from)
			if hedged && err != nil {
				return 0, err // it has lost
			}
			kind := random.IntN(9)
			switch {
			case err != nil:
			case kind == 0:
				err = errors.New("unknown")
			case kind == 1 && !hedged:
				err = lull.RetryAfter(errDown, time.Duration(random.IntN(80))*time.Millisecond)
			case down, kind < 4:
				err = errDown
			}
			failed := err != nil || panics
			if failed {
				want["failed"]++
			} else {
				winner = number
			}
			if failed || number > 1 {
				want["timed"]++
				if number > 1 {
					want["timed again"]++
				}
				inTimed += time.Since(from)
			}
			if panics {
				panic("oh")
			}
			return 0, err
		}
		var err error
		panicked := func() (panicked bool) {
			defer func() { panicked = recover() != nil }()
			switch {
			case hedged && wrapped:
				_, err = DoHedged(ctx, r.Telemetry, d, op)
			case hedged:
				_, err = lull.DoHedged(ctx, d, op)
			case wrapped:
				_, err = Do(ctx, r.Telemetry, d, op)
			default:
				_, err = lull.Do(ctx, d, op)
			}
			return false
		}()
		inCalls += time.Since(began)
		cancel()
		synctest.Wait() // for those that have lost
		e, failed := errors.AsType[*lull.Error](err)
		outcome := OutcomeOf(&lull.Event{EndedAttempt: winner})
		switch {
		case panicked:
			outcome = FailedTerminal
			want["reason panicked"]++
		case failed:
			outcome = OutcomeOf(&lull.Event{Reason: e.Reason, OutcomeUnknown: e.OutcomeUnknown})
			want["reason "+e.Reason.String()]++
		case winner == 1 && attempts > 1:
			want["first beside others"]++
		}
		want[outcome.String()]++
		if random.IntN(20) == 0 {
			time.Sleep(10 * time.Second) // for the budget
		}
	}
	all := r.collect(t)
	for o := range outcomes {
		all.want(t, want[o.String()], "retry.calls", "outcome", o.String())
	}
	for _, o := range must {
		if want[o.String()] == 0 {
			t.Errorf("no call was %v: the test tests too little", o)
		}
	}
	if want["reason panicked"] == 0 || want["reason hint_too_long"]+want["first beside others"] == 0 {
		t.Error("no call panicked, got a hint, or was won by the first of several attempts: the test tests too little")
	}
	for key, n := range want {
		if reason, ok := strings.CutPrefix(key, "reason "); ok {
			all.want(t, n, "retry.call.failures", "reason", reason)
		}
	}
	all.want(t, want["attempts"], "retry.attempts")
	all.want(t, want["failed"], "retry.attempt.failures")
	all.want(t, want["reason panicked"], "retry.attempt.failures", "error.type", "panic")
	all.want(t, want["timed"], "retry.attempt.duration")
	all.want(t, want["timed again"], "retry.attempt.duration", "resend", "true")
	if hedged {
		all.want(t, want["attempts"]-calls, "retry.hedges", "result", "started")
	} else {
		all.want(t, want["reason budget_exhausted"], "retry.budget.denied")
		all.want(t, want["reason hint_too_long"], "retry.server_hints", "result", "too_long")
	}
	all.wantSum(t, inTimed.Seconds(), "retry.attempt.duration")
	about := func(want time.Duration, labels ...string) {
		if n := all.value("retry.held", labels...); math.Abs(n-want.Seconds()) > 1e-6 {
			t.Errorf("callers were held for %v s %v, want %v", n, labels, want)
		}
	}
	about(inCalls)
	if !hedged { // where attempts are side by side they are less than their sum
		about(inOps, "in", "attempt")
		about(inCalls-inOps, "in", "wait")
	}
	all.wantSum(t, inCalls.Seconds(), "retry.call.duration")
	if n := len(r.spans.GetSpans()); wrapped && n != calls {
		t.Errorf("%d spans of %d calls", n, calls)
	}
}

// A call that is refused at once has no duration. The duration of one that succeeds at once is
// unknown, unless the dependency was made with Options.
func TestWhatHasNoDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p := steady()
		p.Breaker.Off = false
		untimed := must.Have(lull.NewDependency("d", p, lull.WithObserver(r)))
		fine := func(context.Context) error { return nil }
		lull.Run(t.Context(), untimed, fine)
		timed := dependencyOn(t, r, "d", p)
		timed.Breaker().ForceOpen(timed.Now())
		lull.Run(t.Context(), timed, fine)
		all := r.collect(t)
		all.want(t, 2, "retry.calls")
		all.want(t, 0, "retry.call.duration")
		timed.Breaker().ForceClosed(timed.Now())
		lull.Run(t.Context(), timed, fine)
		r.collect(t).want(t, 1, "retry.call.duration", "outcome", "success_first")
	})
}

// The wait for room is part of the call, and not of its attempt.
func TestAttemptsAreTimedFromTheirBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p := steady()
		p.Limit = bulkhead.Config{InFlight: 1, MaxWait: time.Second}
		d := dependencyOn(t, r, "d", p)
		fail := func(context.Context) error {
			time.Sleep(20 * time.Millisecond)
			return lull.Permanent(errDown)
		}
		var both sync.WaitGroup
		both.Go(func() { lull.Run(t.Context(), d, fail) })
		both.Go(func() { lull.Run(t.Context(), d, fail) })
		both.Wait()
		all := r.collect(t)
		all.wantSum(t, .04, "retry.attempt.duration")
		all.wantSum(t, .06, "retry.call.duration")
	})
}

// Names from outside cannot make more series than the limit, however many there are, from however
// many goroutines. No count is lost.
func TestCardinalityIsBounded(t *testing.T) {
	l := Limits{Dependencies: 5, Operations: 4, Codes: 3}
	r := newRig(t, WithLimits(l))
	const workers, each = 8, 2000
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := range each {
				e := lull.Event{Kind: event.CallEnded, Attempt: 1, Dependency: fmt.Sprint("d", i%100), Operation: fmt.Sprint("o", w, i), EndedAttempt: 1, AttemptTook: time.Millisecond, Elapsed: time.Millisecond}
				switch i % 4 {
				case 0:
					e.Operation = strings.Repeat("x", 1000) + fmt.Sprint(i)
				case 1:
					e.Operation = "\xff" + fmt.Sprint(i)
				case 2:
					e.Operation = Other
				}
				r.Observe(t.Context(), e)
				e.Reason, e.Verdict = engine.Permanent, lull.Verdict{Kind: lull.KindPermanent, Code: fmt.Sprint("code", w, i)}
				r.Observe(t.Context(), e)
				e.Kind, e.Delay = event.RetryScheduled, time.Millisecond
				r.Observe(t.Context(), e)
				change := &breaker.Change{From: breaker.CircuitState(i % 7), To: breaker.CircuitState(i % 5), Reason: breaker.ChangeReason(i)}
				r.Observe(t.Context(), lull.Event{Kind: event.CircuitChanged, Dependency: e.Dependency, Circuit: change})
				_, c := r.Start(t.Context(), fmt.Sprint("d", w, i))
				c.End(nil)
			}
		})
	}
	all.Wait()
	got := r.collect(t)
	pairs := (l.Dependencies + 1) * (l.Operations + 1)
	for name, most := range map[string]int{
		"retry.calls": pairs * int(outcomes), "retry.attempts": pairs * 2, "retry.call.duration": pairs * int(outcomes), "retry.attempt.duration": pairs * 2,
		"retry.attempt.failures": (l.Dependencies + 1) * (l.Codes + 1), "retry.delay": l.Dependencies + 1, "retry.budget.denied": l.Dependencies + 1,
		"retry.breaker.transitions": (l.Dependencies + 1) * (maxChanges + 1), "retry.server_hints": (l.Dependencies + 1) * 3,
		"retry.call.failures": (l.Dependencies + 1) * 15,
	} {
		if n := len(points(got[name])); n == 0 || n > most {
			t.Errorf("%s has %d series, want some, at most %d", name, n, most)
		}
	}
	for _, p := range got["retry.calls"].(metricdata.Sum[int64]).DataPoints {
		if v, _ := p.Attributes.Value("operation"); !utf8.ValidString(v.AsString()) || len(v.AsString()) > 128 {
			t.Errorf("label %q", v.AsString())
		}
	}
	got.want(t, 2*workers*each, "retry.calls")
	got.want(t, 2*workers*each, "retry.attempt.failures")
	if n := got.value("retry.calls", "dependency", Other); n == 0 {
		t.Error("nothing is counted under " + Other)
	}
	names := make(map[string]bool)
	for _, s := range r.spans.GetSpans() {
		names[s.Name] = true
	}
	if len(names) > l.Dependencies+1 {
		t.Errorf("%d names of spans", len(names))
	}
}

func TestHintsHedgesAndChanges(t *testing.T) {
	r := newRig(t)
	on := func(e lull.Event) {
		e.Dependency = "d"
		r.Observe(t.Context(), e)
	}
	on(lull.Event{Kind: event.RetryScheduled, Attempt: 1, EndedAttempt: 1, Delay: time.Second, Verdict: lull.Verdict{Kind: lull.KindRateLimited, After: time.Second, Code: "429"}})
	on(lull.Event{Kind: event.RetryScheduled, Attempt: 1, EndedAttempt: 1, Delay: time.Second, Verdict: lull.Verdict{Kind: lull.KindTransient, Code: "503"}})
	on(lull.Event{Kind: event.CallEnded, Attempt: 1, EndedAttempt: 1, Reason: engine.Overloaded, Verdict: lull.Verdict{Kind: lull.KindOverloaded, Code: "503"}})
	on(lull.Event{Kind: event.CallEnded, Attempt: 1, EndedAttempt: 1, Reason: engine.Permanent, Verdict: lull.Verdict{Kind: lull.KindPermanent}})
	on(lull.Event{Kind: event.HedgeStarted, Attempt: 2})
	on(lull.Event{Kind: event.HedgeRefused, Reason: engine.TooManyLate})
	on(lull.Event{Kind: event.HedgeRefused, Reason: engine.BudgetExhausted})
	on(lull.Event{Kind: event.BudgetExhausted, Reason: engine.BudgetExhausted})
	for range 2 {
		on(lull.Event{Kind: event.CircuitChanged, Circuit: &breaker.Change{To: breaker.Open, Reason: breaker.Consecutive}})
	}
	on(lull.Event{Kind: event.CircuitChanged, Circuit: &breaker.Change{To: breaker.Open, Reason: breaker.FailureRate, MetricsOnly: true}})
	on(lull.Event{Kind: event.CircuitChanged})
	all := r.collect(t)
	all.want(t, 1, "retry.server_hints", "result", "honoured")
	all.want(t, 1, "retry.server_hints", "result", "dont_retry")
	all.want(t, 0, "retry.server_hints", "result", "too_long")
	all.want(t, 2, "retry.delay")
	all.want(t, 1, "retry.hedges", "result", "started")
	all.want(t, 1, "retry.hedges", "result", "refused", "reason", "too_many_late")
	all.want(t, 1, "retry.hedges", "result", "refused", "reason", "budget_exhausted")
	all.want(t, 1, "retry.budget.denied", "dependency", "d")
	all.want(t, 2, "retry.breaker.transitions", "from", "closed", "to", "open", "reason", "consecutive_failures")
	all.want(t, 1, "retry.breaker.transitions", "metrics_only", "true")
	all.want(t, 2, "retry.attempt.failures", "error.type", "503")
	all.want(t, 1, "retry.attempt.failures", "error.type", "429")
	all.want(t, 1, "retry.attempt.failures", "error.type", Other)
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p := steady()
		p.Breaker.Off, p.Budget.Unlimited = false, false
		p.Limit = bulkhead.Config{InFlight: 3}
		p.Throttle.Mode = throttle.Adaptive
		a, b := dependencyOn(t, r, "a", p), dependencyOn(t, r, "b", p)
		reg := must.Have(lull.NewRegistry(steady(), 0, r.Options()...))
		reg.Get("host")
		twin := a.Clone("a") // of two with one name the first is shown
		twin.Breaker().ForceOpen(twin.Now())
		stop := r.Watch(a, b, nil, twin)
		r.WatchAll(reg.All)
		b.Breaker().ForceOpen(b.Now())
		hold, let := make(chan struct{}), make(chan struct{})
		go lull.Run(context.Background(), a, func(context.Context) error { hold <- struct{}{}; <-let; return nil })
		<-hold
		all := r.collect(t)
		close(let)
		all.want(t, 20, "retry.budget.tokens", "dependency", "a")
		all.want(t, 1, "retry.breaker.state", "dependency", "a", "state", "closed")
		all.want(t, 0, "retry.breaker.state", "dependency", "a", "state", "open")
		all.want(t, 1, "retry.breaker.state", "dependency", "b", "state", "open")
		all.want(t, 1, "retry.breaker.state", "dependency", "b")
		all.want(t, 1, "retry.limit.in_flight", "dependency", "a")
		all.want(t, 0, "retry.limit.in_flight", "dependency", "b")
		all.wantSeries(t, 6, "retry.breaker.state")
		all.wantSeries(t, 2, "retry.throttle.refusal")
		stop()
		r.collect(t).wantSeries(t, 0, "retry.budget.tokens")
		must.Succeed(r.Close())
		r.collect(t).wantSeries(t, 0, "retry.calls")
	})
}
