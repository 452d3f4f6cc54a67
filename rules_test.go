package lull_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
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
