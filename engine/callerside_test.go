package engine_test

import (
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/throttle"
)

var (
	noFiles  = lull.Verdict{Kind: engine.KindCallerTransient, NeverSent: true, Code: "local_resources"}
	noBody   = lull.Verdict{Kind: engine.KindCallerSide, Code: "request_body"}
	slowPool = lull.Verdict{Kind: engine.KindCallerTransient, NeverSent: true, Code: engine.CodeTimeout}
	slowBody = lull.Verdict{Kind: engine.KindCallerTransient, Code: engine.CodeTimeout}
)

// Rule 23: a failure on the caller's side shows nothing of the dependency, and costs nothing: the
// next retry uses its token, or the budget gets it back.
func TestRule23TheCallersSideCostsNothing(t *testing.T) {
	missing := lull.Verdict{Kind: lull.KindPermanent, Code: "404"}
	for _, c := range []struct {
		verdicts []lull.Verdict
		reason   engine.Reason
		spent    float64 // tokens
		fails    bool    // to the breaker
	}{
		{[]lull.Verdict{noFiles, noFiles, noFiles, noFiles}, engine.AttemptsExhausted, 0, false},
		{[]lull.Verdict{slowPool, slowPool, slowPool, slowPool}, engine.AttemptsExhausted, 0, false},
		{[]lull.Verdict{slowBody, slowBody, slowBody, slowBody}, engine.AttemptsExhausted, 0, false},
		{[]lull.Verdict{noBody}, engine.Permanent, 0, false},
		{[]lull.Verdict{noFiles, noFiles, success}, engine.Success, 0, false},
		{[]lull.Verdict{noFiles, transient, transient, transient}, engine.AttemptsExhausted, 2, true},
		{[]lull.Verdict{transient, noFiles, transient, transient}, engine.AttemptsExhausted, 2, true},
		{[]lull.Verdict{transient, noFiles, noFiles, transient}, engine.AttemptsExhausted, 1, true},
		{[]lull.Verdict{transient, noFiles, noFiles, noFiles}, engine.AttemptsExhausted, 0, true},
		{[]lull.Verdict{transient, noBody}, engine.Permanent, 0, false},
		{[]lull.Verdict{transient, transient, noBody}, engine.Permanent, 1, false},
		{[]lull.Verdict{transient, noFiles, missing}, engine.Permanent, 1, false},
		{[]lull.Verdict{transient, noFiles, success}, engine.Success, 0, false},
	} {
		for _, hedged := range []bool{false, true} {
			for name, config := range map[string]budget.Config{"account": {Stock: 10}, "ratio": {Window: time.Minute, Floor: 1}} {
				if name == "ratio" && c.reason == engine.Success {
					continue // it earns, and gives nothing back
				}
				p := lull.Policy{Attempts: 4, Budget: config, Timeouts: lull.TimeoutsNever, Backoff: backoff.Schedule{Base: time.Millisecond, Cap: time.Millisecond},
					Breaker: breaker.Config{Consecutive: 1, ConsecutiveFor: time.Millisecond}, Throttle: throttle.Config{Mode: throttle.Adaptive}}
				if hedged {
					p.Attempts, p.Hedge = 0, hedge.Config{Attempts: 4, Delay: time.Hour}
				}
				d := newDependency(t, p)
				full := d.Budget().Balance(0)
				reason := end(t, d, hedged, c.verdicts)
				if reason != c.reason {
					t.Errorf("hedged %v, %s, %+v: %v, want %v", hedged, name, c.verdicts, reason, c.reason)
				}
				if spent := full - d.Budget().Balance(time.Second); spent != c.spent {
					t.Errorf("hedged %v, %s, %+v: %v tokens are gone, want %v", hedged, name, c.verdicts, spent, c.spent)
				}
				if got := d.Breaker().State(time.Second) != breaker.Closed; got && !c.fails {
					t.Errorf("hedged %v, %s, %+v: the circuit is open", hedged, name, c.verdicts)
				}
			}
		}
	}
}

// end makes a call of which the attempts end with the verdicts, and returns its reason.
func end(t *testing.T, d *lull.Dependency, hedged bool, verdicts []lull.Verdict) engine.Reason {
	t.Helper()
	call, now := begun(t, d, 0), time.Duration(0)
	c := engine.HedgedCall{Call: &call}
	var a engine.HedgedAttempt
	if hedged {
		c.First(now, &a)
	}
	for i, v := range verdicts {
		now += time.Microsecond
		var step engine.Step
		if !hedged {
			if step = call.Next(now, v, nil); !step.Done {
				step, now = again(&call, now, step)
			}
		} else if step = c.Ended(now, &a, v, nil); !step.Done {
			now += step.Wait
			step = c.Hedge(now, &a, nil)
		}
		if step.Done != (i == len(verdicts)-1) {
			t.Fatalf("%+v: after %d attempts %+v", verdicts, i+1, step)
		}
		if step.Done {
			return step.Reason
		}
	}
	return engine.Success
}

// The budget gets the cost of a retry back that panicked, and not that of one that failed before.
func TestRule23APanicCostsNothing(t *testing.T) {
	for _, hedged := range []bool{false, true} {
		p := lull.Policy{Attempts: 4, Budget: budget.Config{Stock: 10}, Breaker: breaker.Config{Off: true}}
		if hedged {
			p.Attempts, p.Hedge = 0, hedge.Config{Attempts: 4, Delay: time.Hour}
		}
		d := newDependency(t, p)
		call, now := begun(t, d, 0), time.Duration(0)
		if hedged {
			c := engine.HedgedCall{Call: &call}
			var a engine.HedgedAttempt
			c.First(now, &a)
			for range 2 {
				now += c.Ended(now, &a, transient, nil).Wait
				if step := c.Hedge(now, &a, nil); step.Done {
					t.Fatal(step)
				}
			}
			c.AttemptPanicked(now, &a)
			call.Abandon(now)
		} else {
			for range 2 {
				_, now = again(&call, now, call.Next(now, transient, nil))
			}
			call.Panicked(now)
			call.Panicked(now)
		}
		if got := d.Budget().Balance(now); got != 9 {
			t.Errorf("hedged %v: %v tokens are left, want 9", hedged, got)
		}
	}
}

// A request that cannot be read twice (UnlessUnsent) is repeated only after an attempt that was
// never sent.
func TestAnUnreadRequestMayBeRepeated(t *testing.T) {
	unsent := lull.Verdict{Kind: lull.KindTransient, NeverSent: true, Code: "connection_refused"}
	for _, c := range []struct {
		spec engine.Spec
		v    lull.Verdict
		want engine.Reason
	}{
		{engine.Spec{NotReplayable: true}, unsent, engine.NotReplayable},
		{engine.Spec{NotReplayable: true, UnlessUnsent: true}, unsent, engine.Success},
		{engine.Spec{NotReplayable: true, UnlessUnsent: true}, transient, engine.NotReplayable},
		{engine.Spec{NotReplayable: true, UnlessUnsent: true, NotIdempotent: true}, unsent, engine.Success},
		{engine.Spec{NotReplayable: true, UnlessUnsent: true, ForRetry: true}, unsent, engine.RetriedAbove},
		{engine.Spec{UnlessUnsent: true}, transient, engine.Success},
	} {
		d := newDependency(t, lull.Policy{Budget: plenty})
		call, step := d.State().Start(0, c.spec)
		if step.Done || call.Attempt(0, nil).Done {
			t.Fatal(step)
		}
		if step := call.Next(0, c.v, nil); step.Reason != c.want || step.Done != (c.want != engine.Success) {
			t.Errorf("%+v, %+v: %+v, want %v", c.spec, c.v, step, c.want)
		}
	}
}

// A request that is lost during the call (NotReplayable) is not repeated from then on, not even if it was never sent. The
// budget is not charged.
func TestALostRequestIsNotRepeated(t *testing.T) {
	for name, spec := range map[string]engine.Spec{"plain": {}, "not idempotent": {NotIdempotent: true}, "once": {Once: true}, "for a retry": {ForRetry: true}} {
		for _, v := range []lull.Verdict{transient, {Kind: lull.KindTransient, NeverSent: true, Code: "connection_refused"}} {
			d := newDependency(t, lull.Policy{Budget: budget.Config{Stock: 3}})
			call, step := d.State().Start(0, spec)
			if step.Done || call.Attempt(0, nil).Done {
				t.Fatal(step)
			}
			call.NotReplayable()
			call.NestedIn(2)
			if step := call.Next(0, v, nil); !step.Done || step.Reason != engine.NotReplayable {
				t.Errorf("%s, %+v: %+v", name, v, step)
			}
			if left := d.Budget().Balance(0); left != 3 {
				t.Errorf("%s: %v tokens are left", name, left)
			}
		}
	}
}

// A failure on the caller's side, in a call of its handler, makes no message a dead letter.
func TestRule23TheCallersSideMakesNoDeadLetter(t *testing.T) {
	for _, v := range []lull.Verdict{noBody, noFiles} {
		if below := engine.FromBelow(engine.Permanent, v, 1); below.Kind == lull.KindPermanent {
			t.Errorf("%+v is %+v", v, below)
		}
	}
}
