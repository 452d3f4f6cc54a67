package lull_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/throttle"
)

// An attempt that timed out is repeated only if one that began later was answered.
func TestTimeoutsAreRepeatedIfLaterOnesAreAnswered(t *testing.T) {
	timeout := lull.Verdict{Kind: lull.KindTransient, Code: engine.CodeTimeout}
	notFound, strange := lull.Verdict{Kind: lull.KindPermanent, Code: "404"}, lull.Verdict{}
	const second = time.Second
	for _, c := range []struct {
		name    string
		rule    engine.TimeoutRetries
		other   time.Duration // when another call began; 0: there was none
		answer  lull.Verdict  // to it
		verdict lull.Verdict
		again   bool
	}{
		{"nobody else", engine.TimeoutsWhenAnswered, 0, lull.Verdict{Kind: lull.KindSuccess}, timeout, false},
		{"who came long before was answered", engine.TimeoutsWhenAnswered, 7900 * ms, lull.Verdict{Kind: lull.KindSuccess}, timeout, false},
		{"who came just before was answered", engine.TimeoutsWhenAnswered, 8100 * ms, lull.Verdict{Kind: lull.KindSuccess}, timeout, true},
		{"who came in the same moment was answered", engine.TimeoutsWhenAnswered, 10 * second, lull.Verdict{Kind: lull.KindSuccess}, timeout, true},
		{"who came later was answered", engine.TimeoutsWhenAnswered, 11 * second, lull.Verdict{Kind: lull.KindSuccess}, timeout, true},
		{"who came later got a refusal, which is an answer", engine.TimeoutsWhenAnswered, 11 * second, notFound, timeout, true},
		{"who came later got an error that nothing is known of", engine.TimeoutsWhenAnswered, 11 * second, strange, timeout, false},
		{"who came later timed out as well", engine.TimeoutsWhenAnswered, 11 * second, timeout, timeout, false},
		{"another failure needs no sign of life", engine.TimeoutsWhenAnswered, 0, lull.Verdict{Kind: lull.KindSuccess}, lull.Verdict{Kind: lull.KindTransient, Code: "503"}, true},
		{"it never got there", engine.TimeoutsWhenAnswered, 0, lull.Verdict{Kind: lull.KindSuccess}, lull.Verdict{Kind: lull.KindTransient, Code: engine.CodeTimeout, NeverSent: true}, true},
		{"always", lull.TimeoutsAlways, 0, lull.Verdict{Kind: lull.KindSuccess}, timeout, true},
		{"never", lull.TimeoutsNever, 11 * second, lull.Verdict{Kind: lull.KindSuccess}, timeout, false},
	} {
		d := newDependency(t, lull.Policy{Timeouts: c.rule})
		for i := range 1000 { // which earn it
			other := begun(t, d, time.Duration(i)*time.Millisecond)
			other.Next(time.Duration(i+1)*time.Millisecond, lull.Verdict{Kind: lull.KindSuccess}, nil)
		}
		slow := begun(t, d, 10*second)
		if c.other > 0 {
			other := begun(t, d, c.other)
			other.Next(12*second, c.answer, nil)
			other.Abandon(12 * second)
		}
		step := slow.Next(20*second, c.verdict, nil)
		if step.Done == c.again || step.Done && step.Reason != engine.Unanswered {
			t.Errorf("%s: %+v, want another attempt: %v", c.name, step, c.again)
		}
	}
}

func begun(t *testing.T, d *lull.Dependency, now time.Duration) engine.Call {
	t.Helper()
	c, step := d.State().Start(now, engine.Spec{})
	if step.Done || c.Attempt(now, nil).Done {
		t.Fatal("refused")
	}
	return c
}

// Rule 3, in the engine: a hint is obeyed with jitter upward only; one longer
// than the policy's limit ends the call with the hint in the error.
func TestRule03HintsAreObeyedOrEndTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDependency(t, lull.Policy{Attempts: 2, Budget: plenty, Deadline: time.Hour, HintLimit: 10 * time.Second})
		ask := func(v lull.Verdict, luck uint64) engine.Step {
			c, _ := d.State().Start(0, engine.Spec{})
			c.Attempt(0, nil)
			defer c.Abandon(0)
			return c.Next(0, v, func() uint64 { return luck })
		}
		for _, hint := range []time.Duration{time.Millisecond, time.Second, 10 * time.Second} {
			v := lull.Verdict{Kind: lull.KindRateLimited, After: hint}
			soonest, latest := ask(v, 0), ask(v, 1<<64-1)
			if soonest.Done || soonest.Wait != hint {
				t.Errorf("hint %v: the shortest wait is %v", hint, soonest.Wait)
			}
			if latest.Wait <= hint+hint/4 {
				t.Errorf("hint %v: the longest wait is %v; clients that were told the same come back together", hint, latest.Wait)
			}
		}
		v := lull.Verdict{Kind: lull.KindRateLimited, After: 10*time.Second + 1}
		if step := ask(v, 0); !step.Done || step.Reason != engine.HintTooLong {
			t.Errorf("a hint beyond the limit: %+v", step)
		}
		err := lull.Run(t.Context(), d, func(context.Context) error { return lull.RetryAfter(errBlip, time.Minute) })
		if e := new(lull.Error); !asError(err, &e) || e.Verdict.After != time.Minute {
			t.Errorf("the hint is not in the error: %v", err)
		}
	})
}

// The jitter of a hint ends before the deadline, to the nanosecond, if the hint itself does.
func TestTheSpreadOfAHintEndsBeforeTheDeadline(t *testing.T) {
	const hint = 10 * time.Second
	for left, want := range map[time.Duration]time.Duration{
		hint - 1:         -1, // cannot be waited for
		hint:             -1,
		hint + 1:         hint,
		hint + 2:         hint + 1,
		12 * time.Second: 12*time.Second - 1,
		time.Minute:      15 * time.Second, // half as long again is all
	} {
		d := newDependency(t, lull.Policy{Budget: plenty, Deadline: left, AttemptTimeout: left, HintLimit: hint})
		c := begun(t, d, 0)
		step := c.Next(0, lull.Verdict{Kind: lull.KindRateLimited, Code: "429", After: hint}, func() uint64 { return math.MaxUint64 })
		switch {
		case want < 0 && (!step.Done || step.Reason != engine.Deadline):
			t.Errorf("%v left: %+v, want the end of the call", left, step)
		case want >= 0 && (step.Done || step.Wait != want):
			t.Errorf("%v left: waits %v (%+v), want %v", left, step.Wait, step, want)
		}
	}
}

// A process whose calls succeed far apart remembers nothing. One whose calls are closer
// together than its budget's QuietGap earns more than the stock.
func TestSuccessesAreRememberedIfTheyEarn(t *testing.T) {
	template := newDependency(t, lull.Policy{Backoff: backoff.Schedule{Kind: backoff.Constant}})
	quiet := budget.Config{}.QuietGap()
	for _, c := range []struct {
		gap  time.Duration
		want bool
	}{{10 * quiet, false}, {quiet, false}, {quiet - time.Millisecond, true}, {quiet / 10, true}} {
		fleet, next := template.Fleet(2), 0 // AllocsPerRun makes a run that it does not count
		var d *engine.State
		const calls = 100
		var now time.Duration
		var call engine.Call
		run := func() {
			d, now, next = &fleet[next], time.Hour, next+1
			for range calls {
				d.StartIn(&call, now, &engine.Spec{})
				call.Attempt(now, nil)
				call.Next(now, lull.Verdict{Kind: lull.KindSuccess}, nil)
				now += c.gap
			}
		}
		if allocs := testing.AllocsPerRun(1, run); allocs > 0 && !c.want {
			t.Errorf("calls %v apart: %v allocations, want none", c.gap, allocs)
		}
		if balance := d.Budget().Balance(now); (balance > budget.DefaultStock) != c.want {
			t.Errorf("calls %v apart: a balance of %v, want more than the stock: %v", c.gap, balance, c.want)
		}
	}
}

// An Error with an expired deadline is context.DeadlineExceeded; one whose caller went away is the cause.
func TestAnErrorIsWhatEndedTheContext(t *testing.T) {
	late := &lull.Error{Reason: engine.Deadline, Last: errBlip}
	if !errors.Is(late, context.DeadlineExceeded) || errors.Is(late, context.Canceled) || !errors.Is(late, errBlip) {
		t.Error("errors.Is does not see an expired deadline")
	}
	gone := &lull.Error{Reason: engine.Canceled, Last: errBlip, Cause: context.Canceled}
	if !errors.Is(gone, context.Canceled) || errors.Is(gone, context.DeadlineExceeded) || errors.Is(gone, lull.ErrDeadline) || !errors.Is(gone, errBlip) {
		t.Error("errors.Is does not see that the caller went away")
	}
}

// The text of a timeout that is final names the policy if that alone is why, else that nobody was
// answered.
func TestWhyATimeoutIsNotRepeated(t *testing.T) {
	for timeouts, want := range map[engine.TimeoutRetries]string{lull.TimeoutsNever: "the policy repeats no timeout", engine.TimeoutsWhenAnswered: "answered no other"} {
		d := newDependency(t, lull.Policy{Timeouts: timeouts})
		err := d.Error("", engine.Result{Attempts: 1, Reason: engine.Unanswered, Verdict: lull.Verdict{Kind: lull.KindTransient, Code: engine.CodeTimeout}}, errBlip)
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %q does not contain %q", timeouts, err, want)
		}
	}
}

// After a rate-limited failure the waits are longer, and never shorter than RateLimitedBase. For
// a schedule without a known growth, or one that begins at once, the default one is used.
func TestRateLimitedWaits(t *testing.T) {
	const base, second = 100 * ms, time.Second
	for _, c := range []struct {
		backoff backoff.Schedule
		base    time.Duration
		want    []time.Duration
	}{
		{backoff.Schedule{}, 0, []time.Duration{second, 2 * second, 4 * second}},
		{backoff.Schedule{Kind: backoff.Ethernet}, 0, []time.Duration{second, 2 * second, 4 * second}},
		{backoff.Schedule{Kind: backoff.Immediate}, 0, []time.Duration{second, 2 * second, 4 * second}},
		{backoff.Schedule{Base: base, Cap: 500 * ms}, 2 * second, []time.Duration{2 * second, 2 * second}},
		{backoff.Schedule{Base: 3 * second}, 2 * second, []time.Duration{3 * second, 6 * second}},
	} {
		d := newDependency(t, lull.Policy{Backoff: c.backoff, RateLimitedBase: c.base})
		for n, want := range c.want {
			check.Equal(t, d.State().Wait(n+1, rateLimited, func() uint64 { return math.MaxUint64 }), want, "%+v: the longest wait %d", c.backoff, n+1)
		}
	}
}

// A slot of IEEE 802.3 is shorter than the shortest duration that has its unit elsewhere.
func TestAnEthernetSlotIsNoForgottenUnit(t *testing.T) {
	p := lull.Policy{Backoff: backoff.Schedule{Kind: backoff.Ethernet, Base: 51200 * time.Nanosecond}}
	check.Equal(t, p.Validate(), nil, "p.Validate()")
	if p.Backoff.Kind = backoff.Exponential; p.Validate() == nil {
		t.Error("a base of 51.2µs is taken for one that was meant")
	}
}

// A call continues after any number of earlier attempts, in this process or in another. A number
// below zero counts as none, and a very large one as all that the policy allows.
func TestResumeAfterAnyNumberOfAttempts(t *testing.T) {
	for made, want := range map[int]lull.Reason{
		math.MinInt: engine.Success, -5: engine.Success, 0: engine.Success, 1: engine.Success,
		2: engine.AttemptsExhausted, 40_000: engine.AttemptsExhausted, 1 << 16: engine.AttemptsExhausted, 1<<16 - 5: engine.AttemptsExhausted, math.MaxInt: engine.AttemptsExhausted,
	} {
		d := newDependency(t, lull.Policy{Attempts: 3, Budget: budget.Config{Unlimited: true}})
		c, step := d.State().Resume(0, engine.Spec{}, made)
		if step.Done {
			t.Fatal(step.Reason)
		}
		c.Attempt(0, middle)
		step = c.Next(0, lull.Verdict{Kind: lull.KindTransient}, middle)
		if got := step.Reason; step.Done != (want != engine.Success) || got != want {
			t.Errorf("after %d attempts: %v, want %v", made, got, want)
		}
	}
}

// A policy hedges or retries; one attempt at a time is no hedging.
func TestHedgesOrRetries(t *testing.T) {
	if err := (lull.Policy{Attempts: 2, Hedge: hedge.Config{Attempts: 2}}).Validate(); err == nil || !strings.Contains(err.Error(), "Attempts is 2") {
		t.Errorf("both: %v", err)
	}
	for _, n := range []int{0, 1} {
		check.Equal(t, (lull.Policy{Attempts: n, Hedge: hedge.Config{Attempts: 2}}).WithDefaults().MaxAttempts(), 2, "a hedge of 2 with Attempts of %d: attempts", n)
		check.Equal(t, (lull.Policy{Attempts: 3, Hedge: hedge.Config{Attempts: n}}).WithDefaults().MaxAttempts(), 3, "3 attempts, hedged by %d: attempts", n)
	}
}

// Rule 16: an attempt that was given all of AttemptTimeout is never one that was given too
// little, even if those with almost as much time out.
func TestRule16ThePolicysOwnTimeoutIsNeverTooShort(t *testing.T) {
	d := newDependency(t, lull.Policy{
		Attempts: 1, AttemptTimeout: time.Second, Deadline: time.Minute, Budget: plenty,
		Breaker: breaker.Config{Consecutive: 3, ConsecutiveFor: -1, OpenFor: time.Hour},
	})
	var now time.Duration
	call := func(patience time.Duration, v lull.Verdict) {
		t.Helper()
		c, step := d.State().Start(now, engine.Spec{Deadline: now + patience})
		if step.Done {
			t.Fatalf("refused: %v", step.Reason)
		}
		c.Attempt(now, nil)
		now += min(c.Timeout(now), patience)
		c.Next(now, v, nil)
	}
	hang := lull.Verdict{Kind: lull.KindTransient, Code: engine.CodeTimeout}
	for range 30 { // one that has 999 ms times out, one that has a minute succeeds
		call(999*ms, hang)
		call(time.Minute, lull.Verdict{Kind: lull.KindSuccess})
	}
	for range 10 {
		call(999*ms, hang)
	}
	if s := d.Breaker().State(now); s != breaker.Closed {
		t.Fatalf("callers who wait for less than successes take: the breaker is %v", s)
	}
	for range 3 {
		call(time.Second, hang)
	}
	check.Equal(t, d.Breaker().State(now), breaker.Open, "three attempts had the policy's own timeout: the breaker")
}

// A call that ends and leaves the middle of the list of alarms does not change the alarms behind
// it.
func TestACallThatEndsTakesNoHedgeFromOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDependency(t, hedging(2))
		scripts := make([]*script, 4)
		var calls sync.WaitGroup
		for i := range scripts {
			s := newScript(part{time.Second, nil}, part{ms, nil})
			if i == 1 || i == 2 {
				s = newScript(part{5 * ms, nil}) // before its hedge is due
			}
			scripts[i] = s
			calls.Go(func() {
				if _, err := lull.DoHedged(t.Context(), d, s.play); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(ms)
		}
		calls.Wait()
		for i, s := range scripts {
			want := []time.Duration{0, 10 * ms}
			if i == 1 || i == 2 {
				want = want[:1]
			}
			if begun, _ := s.ended(); !slices.Equal(begun, want) {
				t.Errorf("call %d: attempts began at %v, want %v", i, begun, want)
			}
		}
	})
}

// The throttle counts an attempt that was abandoned under way as sent, and one that was abandoned
// before as unsent.
func TestTheThrottleCountsAbandonedAttempts(t *testing.T) {
	for _, begins := range []bool{true, false} {
		d := newDependency(t, singly(throttle.Cubic), lull.WithRand(middle))
		var now time.Duration
		for range 100 {
			c, _ := d.State().Start(now, engine.Spec{})
			if begins {
				if step := c.Attempt(now, middle); step.Done || step.Wait > 0 {
					t.Fatalf("%+v", step)
				}
			}
			c.Abandon(now)
			now += 100 * ms
		}
		want := 0.0
		if begins {
			want = 10
		}
		if sent := d.Throttle().State(now).Sent; math.Abs(sent-want) > 2 {
			t.Errorf("10 attempts a second were given up, under way: %v; %v were sent, want %v", begins, sent, want)
		}
	}
}

// Without a breaker, an error of an open circuit has no time for which it was open.
func TestNoBreakerIsOpenForNoTime(t *testing.T) {
	d := newDependency(t, lull.Policy{Breaker: breaker.Config{Off: true}})
	var e *lull.Error
	if err := d.Error("get", engine.Result{Reason: engine.CircuitOpen}, nil); !errors.As(err, &e) || e.OpenFor != 0 || e.OpenedBy != nil {
		t.Errorf("%+v", e)
	}
}
