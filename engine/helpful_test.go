package engine_test

import (
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/engine"
)

var (
	success   = lull.Verdict{Kind: lull.KindSuccess}
	timedOut  = lull.Verdict{Kind: lull.KindTransient, Code: engine.CodeTimeout}
	inTenSecs = lull.Verdict{Kind: lull.KindTransient, Code: "503", After: 10 * time.Second}
)

// callOf makes a call whose attempts end with the verdicts, each after took, and returns the
// last step and its time.
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
		now += step.Wait
		if step = c.Attempt(now, nil); step.Done {
			return step, now
		}
	}
	return engine.Step{}, now
}

// What retries of a call have cost is given back if the call succeeds, all of it, and nothing
// if it fails.
func TestRetriesThatHelpedCostNothing(t *testing.T) {
	d := newDependency(t, lull.Policy{Attempts: 4, Breaker: breaker.Config{Off: true}})
	now := time.Duration(0)
	for i := range 100 {
		step, end := callOf(t, d, now, time.Millisecond, transient, transient, success)
		if step.Reason != engine.Success || d.Budget().Balance(end) != budget.DefaultStock {
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

// A retry at the time that the server asked for is a call that was put off, and is free. When
// two in a row have failed, the budget pays, until one succeeds.
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
	// The server is still not well. The first calls that come back show it.
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
	for n := range 20 {
		callOf(t, d, now+time.Duration(n)*time.Minute, time.Millisecond, success)
	}
	// One that is paid for and succeeds, and hints are good again.
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

// An attempt that timed out may be repeated if another one was answered that began later, or
// up to two seconds earlier.
func TestATimeoutNeedsAnAnswerNearby(t *testing.T) {
	for _, c := range []struct {
		answered time.Duration // start of the other, before the one that timed out; negative: after
		want     engine.Reason
	}{
		{-time.Second, engine.Success},
		{time.Second, engine.Success},
		{1900 * time.Millisecond, engine.Success},
		{2100 * time.Millisecond, engine.Unanswered},
		{time.Minute, engine.Unanswered},
	} {
		d := newDependency(t, lull.Policy{AttemptTimeout: 2 * time.Second, Budget: plenty, Breaker: breaker.Config{Off: true}})
		const began = time.Hour
		busy(t, d, began-time.Minute-15*time.Second, 1300)
		var call engine.Call
		if c.answered < 0 {
			call = begun(t, d, began)
		}
		callOf(t, d, began-c.answered, 10*time.Millisecond, success)
		if c.answered >= 0 {
			call = begun(t, d, began)
		}
		step := call.Next(began+2*time.Second, timedOut, nil)
		if step.Done != (c.want != engine.Success) || step.Reason != c.want {
			t.Errorf("another began %v before: %+v, want %v", c.answered, step, c.want)
		}
	}
	d := newDependency(t, lull.Policy{Budget: plenty, Breaker: breaker.Config{Off: true}})
	c := begun(t, d, 0)
	if step := c.Next(time.Second, timedOut, nil); step.Reason != engine.Unanswered {
		t.Errorf("nothing was ever answered: %+v", step)
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

// Where successes take a small part of the timeout and one that began later was answered, there is
// no line: a timeout costs what any failure costs. Where they take nearly as long, or the evidence
// is older, the account for timeouts has to pay as well: one in six hundred of those that succeeded.
func TestRule15WhatATimeoutCosts(t *testing.T) {
	for _, c := range []struct {
		name     string
		usual    time.Duration
		later    bool
		repeated int
	}{
		{"others are quick", 100 * time.Millisecond, true, 100},
		{"others are slow", 900 * time.Millisecond, true, 100 * 60 / 600},
		{"quick, but earlier", 100 * time.Millisecond, false, 100 * 60 / 600},
	} {
		d := newDependency(t, lull.Policy{AttemptTimeout: time.Second, Budget: plenty, Breaker: breaker.Config{Off: true}})
		now, repeated := time.Duration(0), 0
		for range 100 {
			for range 59 {
				callOf(t, d, now, c.usual, success)
				now += time.Second
			}
			if !c.later {
				callOf(t, d, now-time.Second, c.usual, success)
			}
			call := begun(t, d, now)
			if c.later {
				callOf(t, d, now+50*time.Millisecond, c.usual, success)
			}
			if step := call.Next(now+time.Second, timedOut, nil); !step.Done {
				repeated++
				call.Abandon(now + time.Second)
			} else if step.Reason != engine.BudgetExhausted {
				t.Fatalf("%s: %+v", c.name, step)
			}
		}
		if repeated < c.repeated-1 || repeated > c.repeated+1 {
			t.Errorf("%s: %d of 100 timeouts were repeated, want %d", c.name, repeated, c.repeated)
		}
	}
}

// A repeat of a timeout that has helped pays for another one, whoever paid for it, for two
// minutes and up to twenty of them: while successes take a small part of the timeout.
func TestRule15WhatHelpedPaysForTheNext(t *testing.T) {
	for _, c := range []struct {
		name   string
		usual  time.Duration
		free   int           // repeats that helped and were free, since one that began later was answered
		helped int           // then so many that helped, and were paid for by the account
		rest   time.Duration // before those that do not help
		want   int           // repeats that do not help, before one is refused
	}{
		{"nothing has helped", time.Millisecond, 0, 0, 0, 0},
		{"each has helped", time.Millisecond, 1, 50, 0, 1},
		{"seven were free", time.Millisecond, 7, 0, 0, 7},
		{"some time ago", time.Millisecond, 7, 0, time.Minute, 7},
		{"long ago", time.Millisecond, 7, 0, 130 * time.Second, 0},
		{"fifty were free", time.Millisecond, 50, 0, 0, 20},
	} {
		d := newDependency(t, lull.Policy{AttemptTimeout: time.Second, Budget: plenty, Breaker: breaker.Config{Off: true}})
		now := busy(t, d, 0, 20)
		for range c.free {
			call := begun(t, d, now)
			callOf(t, d, now+time.Millisecond, c.usual, success)
			step := call.Next(now+time.Second, timedOut, nil)
			if step.Done {
				t.Fatalf("%s: %+v", c.name, step)
			}
			now += time.Second + step.Wait
			call.Attempt(now, nil)
			call.Next(now+c.usual, success, nil)
			now += c.usual
		}
		doubtful := func(ends lull.Verdict) bool {
			callOf(t, d, now, c.usual, success)
			now += time.Second
			call := begun(t, d, now)
			now += time.Second
			step := call.Next(now, timedOut, nil)
			if step.Done {
				if step.Reason != engine.BudgetExhausted {
					t.Fatalf("%s: %+v", c.name, step)
				}
				return false
			}
			now += step.Wait
			call.Attempt(now, nil)
			call.Next(now+c.usual, ends, nil)
			now += c.usual
			return true
		}
		for i := range c.helped {
			if !doubtful(success) {
				t.Fatalf("%s: repeat %d of those that help was refused", c.name, i)
			}
		}
		now += c.rest
		n := 0
		for doubtful(lull.Verdict{Kind: lull.KindPermanent, Code: "404"}) {
			n++
		}
		if n != c.want {
			t.Errorf("%s: %d repeats that do not help, want %d", c.name, n, c.want)
		}
	}
}

// In a line, where successes take nearly as long as timeouts, what has helped pays for nothing.
func TestRule15InALineWhatHelpedPaysForNothing(t *testing.T) {
	d := newDependency(t, lull.Policy{AttemptTimeout: time.Second, Budget: plenty, Breaker: breaker.Config{Off: true}})
	now, repeated := time.Duration(0), 0
	for range 1300 { // which earn two
		callOf(t, d, now, 900*time.Millisecond, success)
		now += 10 * time.Millisecond
	}
	for range 10 {
		callOf(t, d, now, 900*time.Millisecond, success)
		step, end := callOf(t, d, now, time.Second, timedOut, success)
		if step.Reason == engine.Success {
			repeated++
		}
		now = end
	}
	if repeated != 2 {
		t.Errorf("%d timeouts were repeated, want 2", repeated)
	}
}

// closable pays for every retry while it is open.
type closable struct {
	budget.Budget
	closed bool
}

func (b *closable) Withdraw(now time.Duration, class budget.Class, random func() uint64) budget.Grant {
	if b.closed {
		return budget.Grant{}
	}
	return b.Budget.Withdraw(now, class, random)
}

// A repeat that the budget refuses costs the account for timeouts nothing.
func TestRule15TheOtherAccountRefuses(t *testing.T) {
	unlimited, err := budget.New(budget.Config{Unlimited: true})
	if err != nil {
		t.Fatal(err)
	}
	other := &closable{Budget: unlimited}
	d := newDependency(t, lull.Policy{AttemptTimeout: time.Second, Breaker: breaker.Config{Off: true}}, lull.WithBudget(func() budget.Budget { return other }))
	now := busy(t, d, 0, 1300) // which earn two
	for i, c := range []struct {
		closed bool
		want   engine.Reason
	}{
		{true, engine.BudgetExhausted}, {true, engine.BudgetExhausted}, {true, engine.BudgetExhausted},
		{false, engine.Success}, {false, engine.Success}, {false, engine.BudgetExhausted},
	} {
		other.closed = c.closed
		callOf(t, d, now, time.Millisecond, success)
		now += time.Second
		call := begun(t, d, now)
		now += time.Second
		if step := call.Next(now, timedOut, nil); step.Reason != c.want {
			t.Errorf("timeout %d: %+v, want %v", i, step, c.want)
		}
	}
}
