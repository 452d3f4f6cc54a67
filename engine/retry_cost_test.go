package engine_test

import (
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/engine"
)

var (
	success   = lull.Verdict{Kind: lull.KindSuccess}
	timedOut  = lull.Verdict{Kind: lull.KindTransient, Code: engine.CodeTimeout}
	inTenSecs = lull.Verdict{Kind: lull.KindTransient, Code: "503", After: 10 * time.Second}
)

// callOf makes a call whose attempts take took and end with the verdicts. It returns the last
// step and its time.
func callOf(t *testing.T, d *lull.Dependency, now, took time.Duration, verdicts ...lull.Verdict) (engine.Step, time.Duration) {
	t.Helper()
	c := begun(t, d, now)
	for i, v := range verdicts {
		now += took
		step := c.Next(now, v, nil)
		if step.Done || i == len(verdicts)-1 {
			if !step.Done {
				c.Abandon(now)
			}
			return step, now
		}
		if step, now = again(&c, now, step); step.Done {
			return step, now
		}
	}
	return engine.Step{}, now
}

// again carries a call on from a step at now, through all its waits: until its next attempt has
// begun, or it is over.
func again(c *engine.Call, now time.Duration, step engine.Step) (engine.Step, time.Duration) {
	now += step.Wait
	for !step.Done {
		if step = c.Attempt(now, nil); step.Wait <= 0 {
			break
		}
		now += step.Wait
	}
	return step, now
}

// The cost of a call's retries is put back if the call succeeds, all of it, and nothing if it
// fails.
func TestRetriesThatHelpedCostNothing(t *testing.T) {
	d := newDependency(t, lull.Policy{Attempts: 4, Budget: budget.Config{Stock: 2}, Breaker: breaker.Config{Off: true}})
	now := time.Duration(0)
	for i := range 100 {
		step, end := callOf(t, d, now, time.Millisecond, transient, transient, success)
		if step.Reason != engine.Success || d.Budget().Balance(end) != 2 {
			t.Fatalf("call %d: %v, and %v tokens are left", i, step.Reason, d.Budget().Balance(end))
		}
		now = end + time.Minute
	}
	if step, _ := callOf(t, d, now, time.Millisecond, transient, transient, transient); step.Reason != engine.BudgetExhausted {
		t.Errorf("the third retry: %v, want none left", step.Reason)
	}
	now += time.Minute
	if step, _ := callOf(t, d, now, time.Millisecond, transient, success); step.Reason != engine.BudgetExhausted {
		t.Errorf("after a call that has failed: %v, want none left", step.Reason)
	}
}

// A retry at the time that the server asked for is free. When two in a row have failed, the
// budget pays, until one succeeds.
func TestHintsAreFreeAsLongAsTheyAreGood(t *testing.T) {
	d := newDependency(t, lull.Policy{AttemptTimeout: time.Second, Deadline: lull.NoTimeout, HintLimit: time.Minute, Breaker: breaker.Config{Off: true}})
	// All calls of a restart are put off, as many as they are.
	calls := make([]engine.Call, 1000)
	for i := range calls {
		calls[i] = begun(t, d, 0)
		if step := calls[i].Next(0, inTenSecs, nil); step.Done || step.Wait < 10*time.Second {
			t.Fatalf("call %d: %+v", i, step)
		}
	}
	if got := d.Budget().Balance(0); got != budget.DefaultStock {
		t.Errorf("%v tokens are left, want all", got)
	}
	// The server still fails, as the first retries show.
	now := 15 * time.Second
	var free, paid, refused int
	for i := range calls {
		c := &calls[i]
		if step := c.Attempt(now, nil); step.Done {
			t.Fatal(step)
		}
		before := d.Budget().Balance(now)
		switch step := c.Next(now, inTenSecs, nil); {
		case step.Done && step.Reason == engine.BudgetExhausted:
			refused++
		case step.Done:
			t.Fatal(step)
		case d.Budget().Balance(now) < before:
			paid++
			c.Abandon(now)
		default:
			free++
			c.Abandon(now)
		}
	}
	if free != 1 || paid != budget.DefaultStock || refused != len(calls)-free-paid {
		t.Errorf("%d retries were free, %d paid for, %d refused; want 1, %d and the rest", free, paid, refused, budget.DefaultStock)
	}
	// Another policy does not make them good again.
	if err := d.State().Update(now, lull.Policy{AttemptTimeout: 2 * time.Second, Deadline: lull.NoTimeout, HintLimit: time.Minute, Breaker: breaker.Config{Off: true}}); err != nil {
		t.Fatal(err)
	}
	if step, _ := callOf(t, d, now, time.Millisecond, inTenSecs); step.Reason != engine.BudgetExhausted {
		t.Errorf("after an update: %+v, want none left", step)
	}
	for n := range 10 * budget.DefaultStock {
		callOf(t, d, now+time.Duration(n)*time.Minute, time.Millisecond, success)
	}
	// One that is paid for and succeeds, and hints are good again.
	now += 10 * budget.DefaultStock * time.Minute
	for _, want := range []float64{budget.DefaultStock - 1, budget.DefaultStock} {
		now += time.Hour
		c := begun(t, d, now)
		step := c.Next(now, inTenSecs, nil)
		if got := d.Budget().Balance(now); step.Done || got != want {
			t.Fatalf("%+v, and %v tokens are left, want %v", step, got, want)
		}
		now += step.Wait
		c.Attempt(now, nil)
		if step := c.Next(now, success, nil); step.Reason != engine.Success {
			t.Fatal(step)
		}
	}
}

// busy has n calls succeed, each ten milliseconds after the last, and each after a
// millisecond. It returns the time of the end.
func busy(t *testing.T, d *lull.Dependency, now time.Duration, n int) time.Duration {
	t.Helper()
	for range n {
		callOf(t, d, now, time.Millisecond, success)
		now += 10 * time.Millisecond
	}
	return now
}

// Where successes take a small part of the timeout, and one that began later was answered
// quickly, a timeout is repeated. A call waits for such an answer for as long as its attempt could
// take. Without it the timeout is final if others have ended, and repeated if none has.
func TestRule15WhatATimeoutCosts(t *testing.T) {
	const timeout, usual = time.Second, 100 * time.Millisecond
	for _, c := range []struct {
		name   string
		usual  time.Duration
		idle   time.Duration // before the call that times out
		later  time.Duration // after it, another one begins; 0: none does
		took   time.Duration // and takes so long
		missed bool          // or times out
		want   engine.Reason
	}{
		{"another was answered quickly", usual, time.Second, 50 * time.Millisecond, usual, false, engine.Success},
		{"the call still waits", usual, time.Second, 1300 * time.Millisecond, usual, false, engine.Success},
		{"in the last moment", usual, time.Second, 1900 * time.Millisecond, usual, false, engine.Success},
		{"slow, while the call waits", usual, time.Second, 1100 * time.Millisecond, 600 * time.Millisecond, false, engine.Unanswered},
		{"others are slow", 900 * time.Millisecond, 0, 50 * time.Millisecond, 900 * time.Millisecond, false, engine.Unanswered},
		{"usually quick, but not now", usual, 0, 50 * time.Millisecond, 600 * time.Millisecond, false, engine.Unanswered},
		{"another timed out", usual, 0, 50 * time.Millisecond, timeout, true, engine.Unanswered},
		{"nobody else calls", usual, time.Second, 0, 0, false, engine.Success},
		{"one call after the other", usual, 0, 0, 0, false, engine.Success},
		{"one after the other, and slow", 400 * time.Millisecond, 0, 0, 0, false, engine.Success},
		{"the latest call was long ago", usual, 2 * time.Second, 0, 0, false, engine.Unanswered},
	} {
		d := newDependency(t, lull.Policy{AttemptTimeout: timeout, Budget: plenty, Breaker: breaker.Config{Off: true}})
		now := time.Duration(0)
		for range 60 {
			callOf(t, d, now, c.usual, success)
			now += c.usual + c.idle
		}
		call := begun(t, d, now)
		var other *engine.Call
		if c.later > 0 && c.later < timeout {
			o := begun(t, d, now+c.later)
			other = &o
		}
		answer := func(at time.Duration) {
			switch ends := now + c.later + c.took; {
			case c.later == 0 || ends > at:
			case other == nil:
				callOf(t, d, now+c.later, c.took, success)
				c.later = 0
			case c.missed:
				other.Next(ends, timedOut, nil)
				other.Abandon(ends)
				c.later = 0
			default:
				other.Next(ends, success, nil)
				c.later = 0
			}
		}
		end := now + timeout
		answer(end)
		step := call.Next(end, timedOut, nil)
		for !step.Done && step.Wait > 0 {
			end += step.Wait
			answer(end)
			step = call.Attempt(end, nil)
		}
		if step.Reason != c.want {
			t.Errorf("%s: %+v, want %v", c.name, step, c.want)
		}
	}
}

// A call waits for another answer for as long as an attempt may take, once, and not beyond its deadline.
func TestRule15HowLongATimeoutWaits(t *testing.T) {
	for _, c := range []struct{ took, left, want time.Duration }{
		{time.Second, time.Hour, time.Second},
		{400 * time.Millisecond, time.Hour, time.Second}, // a gateway has given up
		{time.Second, 1400 * time.Millisecond, time.Second},
		{time.Second, 400 * time.Millisecond, 0},
	} {
		d := newDependency(t, lull.Policy{AttemptTimeout: time.Second, Deadline: c.took + c.left, Budget: plenty, Breaker: breaker.Config{Off: true}, Backoff: backoff.Schedule{Base: 100 * time.Microsecond}})
		now := busy(t, d, 0, 20) + time.Second
		call, other := begun(t, d, now), begun(t, d, now+time.Millisecond)
		now += c.took
		other.Next(now, timedOut, nil)
		step := call.Next(now, timedOut, nil)
		if step.Wait != c.want {
			t.Errorf("%+v: %+v", c, step)
		}
		if step.Wait > 0 {
			step = call.Attempt(now+step.Wait, nil)
		}
		if !step.Done || step.Reason != engine.Unanswered {
			t.Errorf("%+v: %+v in the end", c, step)
		}
	}
}

// What one process knows of timeouts is nothing that another process of its fleet knows, also without budget and breaker.
func TestRule15TimeoutsOfOtherProcesses(t *testing.T) {
	plan, err := engine.NewPlan(lull.Policy{AttemptTimeout: time.Second, Budget: budget.Config{Unlimited: true}, Breaker: breaker.Config{Off: true}}, engine.Parts{})
	if err != nil {
		t.Fatal(err)
	}
	fleet := make([]engine.State, 2)
	plan.InitFleet(fleet, nil)
	start := func(s *engine.State, now time.Duration) *engine.Call {
		c, step := s.Start(now, engine.Spec{})
		if step = c.Attempt(now, nil); step.Done {
			t.Fatalf("%+v", step)
		}
		return &c
	}
	start(&fleet[0], time.Second).Next(time.Second+time.Millisecond, success, nil)
	c, other := start(&fleet[0], 2*time.Second), start(&fleet[1], 2*time.Second+time.Millisecond)
	step := c.Next(3*time.Second, timedOut, nil)
	other.Next(3*time.Second+time.Millisecond, timedOut, nil)
	if step = c.Attempt(3*time.Second+step.Wait, nil); step.Done {
		t.Errorf("%+v, because of a timeout in another process", step)
	}
}
