package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/engine/consumers"
)

// messages is a policy of five attempts after 1, 2, 4 and 8 s, without jitter.
func messages() engine.Policy {
	return engine.Policy{
		Attempts: 5, AttemptTimeout: 10 * time.Second, Deadline: lull.NoTimeout, HintLimit: time.Hour,
		Backoff: backoff.Schedule{Base: time.Second, Cap: time.Minute, Jitter: backoff.None},
		Breaker: breaker.Config{Consecutive: 3, ConsecutiveFor: -1, OpenFor: 10 * time.Second},
	}
}

// delivered is attempt n of a message from a broker that can do everything, under a lease
// that is extended.
func delivered(n int) engine.Delivery {
	return engine.Delivery{
		BrokerCapabilities: engine.BrokerCapabilities{MaxDelay: 12 * time.Hour, FreeDefer: true}, QuickRetries: engine.QuickRetries{MaxWait: time.Second},
		Attempt: n, RetryLeft: engine.Never, KeepLeft: engine.Never, Lease: 30 * time.Second,
	}
}

// handled begins the attempt of d and ends it with h.
func handled(t *testing.T, s *engine.State, now time.Duration, d engine.Delivery, h engine.Handled, free func(int) bool) engine.Redelivery {
	t.Helper()
	c, step := s.ResumeDelivery(now, engine.Spec{}, d)
	if !step.Done {
		step = c.Attempt(now, nil)
	}
	if step.Done {
		t.Fatalf("refused: %v", step.Reason)
	}
	d.Runs++
	if free == nil {
		free = func(int) bool { t.Error("asked whether a probe is free"); return false }
	}
	r := c.Handled(now, h, d, free, nil)
	if !c.Over() {
		t.Error("the call is not over")
	}
	return r
}

// What becomes of a message whose handler has run.
func TestHandled(t *testing.T) {
	change := func(n int, f func(d *engine.Delivery)) engine.Delivery {
		d := delivered(n)
		f(&d)
		return d
	}
	stopping := func(n int) engine.Delivery { return change(n, func(d *engine.Delivery) { d.Stopping = true }) }
	const cap = 8 * time.Second // the longest wait of the schedule
	for _, c := range []struct {
		name string
		d    engine.Delivery
		h    engine.Handled
		want engine.Redelivery
	}{
		{"handled", delivered(1), engine.Handled{Verdict: lull.Verdict{Kind: lull.KindSuccess}}, engine.Redelivery{Outcome: engine.Ack}},
		{"a first failure", delivered(1), engine.Handled{Verdict: transient}, engine.Redelivery{Outcome: engine.Retry, After: time.Second, Wait: time.Second}},
		{"a third failure", delivered(3), engine.Handled{Verdict: transient}, engine.Redelivery{Outcome: engine.Retry, After: 4 * time.Second, Wait: 4 * time.Second}},
		{"the last failure", delivered(5), engine.Handled{Verdict: transient}, engine.Redelivery{Outcome: engine.DeadLetter, Reason: engine.AttemptsExhausted}},
		{"permanent", delivered(1), engine.Handled{Verdict: lull.Verdict{Kind: lull.KindPermanent}}, engine.Redelivery{Outcome: engine.DeadLetter, Reason: engine.Permanent}},
		{"unknown", delivered(2), engine.Handled{}, engine.Redelivery{Outcome: engine.Retry, After: 2 * time.Second}},
		{"unknown to the last", delivered(5), engine.Handled{}, engine.Redelivery{Outcome: engine.DeadLetter, Reason: engine.AttemptsExhausted}},
		{"unknown, its time was over", delivered(2), engine.Handled{CutOff: engine.CutByTime}, engine.Redelivery{Outcome: engine.Retry, After: cap * 3 / 4}},
		{"a hint too long", delivered(1), engine.Handled{Verdict: lull.Verdict{Kind: lull.KindTransient, After: 2 * time.Hour}}, engine.Redelivery{Outcome: engine.DeadLetter, Reason: engine.HintTooLong}},
		{"do not retry", delivered(1), engine.Handled{Verdict: lull.Verdict{Kind: lull.KindOverloaded}}, engine.Redelivery{Outcome: engine.Retry, After: cap * 3 / 4}},
		{"a hint as long as is allowed, and do not retry", delivered(1), engine.Handled{Verdict: lull.Verdict{Kind: lull.KindOverloaded, After: time.Hour}}, engine.Redelivery{Outcome: engine.Retry, After: time.Hour}},
		{"a longer one, and do not retry", delivered(1), engine.Handled{Verdict: lull.Verdict{Kind: lull.KindOverloaded, After: time.Hour + 1}}, engine.Redelivery{Outcome: engine.DeadLetter, Reason: engine.HintTooLong}},
		{"past the deadline", change(1, func(d *engine.Delivery) { d.RetryLeft = time.Second }), engine.Handled{Verdict: transient}, engine.Redelivery{Outcome: engine.DeadLetter, Reason: engine.Deadline}},
		{"a broker without delays", change(1, func(d *engine.Delivery) { d.MaxDelay = 0 }), engine.Handled{Verdict: transient}, engine.Redelivery{Outcome: engine.Retry, Wait: time.Second}},

		{"a panic", delivered(2), engine.Handled{Verdict: transient, Panicked: true}, engine.Redelivery{Outcome: engine.Retry, After: 2 * time.Second}},
		{"the last panic", delivered(5), engine.Handled{Verdict: transient, Panicked: true}, engine.Redelivery{Outcome: engine.DeadLetter, Reason: engine.AttemptsExhausted}},
		{"interrupted", delivered(2), engine.Handled{Verdict: transient, CutOff: engine.CutByCaller}, engine.Redelivery{Outcome: engine.Retry, After: 2 * time.Second}},
		{"stopping, and cut off", stopping(5), engine.Handled{Verdict: transient, CutOff: engine.CutByCaller}, engine.Redelivery{Outcome: engine.Defer}},
		{"stopping, and cut off, whatever it returned", stopping(5), engine.Handled{Verdict: lull.Verdict{Kind: lull.KindPermanent}, CutOff: engine.CutByCaller}, engine.Redelivery{Outcome: engine.Defer}},
		{"stopping, and cut off, and a panic", stopping(5), engine.Handled{Verdict: transient, CutOff: engine.CutByCaller, Panicked: true}, engine.Redelivery{Outcome: engine.Defer}},
		{"stopping, and cut off, but handled", stopping(5), engine.Handled{Verdict: lull.Verdict{Kind: lull.KindSuccess}, CutOff: engine.CutByCaller}, engine.Redelivery{Outcome: engine.Ack}},
		{"stopping, and failed before it was cut off", stopping(5), engine.Handled{Verdict: transient}, engine.Redelivery{Outcome: engine.Defer}},
		{"stopping, and failed in an unknown way", stopping(5), engine.Handled{}, engine.Redelivery{Outcome: engine.Defer}},
		{"stopping, and its time was over", stopping(5), engine.Handled{CutOff: engine.CutByTime}, engine.Redelivery{Outcome: engine.Defer}},
		{"stopping, and permanent", stopping(1), engine.Handled{Verdict: lull.Verdict{Kind: lull.KindPermanent}}, engine.Redelivery{Outcome: engine.DeadLetter, Reason: engine.Permanent}},
		{"stopping, and a panic", stopping(1), engine.Handled{Verdict: transient, Panicked: true}, engine.Redelivery{Outcome: engine.Retry, After: time.Second}},

		{"deferred by its handler", delivered(5), engine.Handled{Verdict: lull.Verdict{Kind: engine.KindCanceled}, Chosen: engine.Redelivery{Outcome: engine.Defer, After: 24 * time.Hour}}, engine.Redelivery{Outcome: engine.Defer, After: 12 * time.Hour}},
		{"dropped by its handler", delivered(1), engine.Handled{Verdict: lull.Verdict{Kind: lull.KindPermanent}, Chosen: engine.Redelivery{Outcome: engine.Drop}}, engine.Redelivery{Outcome: engine.Drop}},

		{"behind a circuit, not called", delivered(5), engine.Handled{Verdict: transient, Behind: true, RetryAt: 20 * time.Second}, engine.Redelivery{Outcome: engine.Defer, After: 20 * time.Second}},
		{"the same where a deferral counts", change(1, func(d *engine.Delivery) { d.FreeDefer = false }), engine.Handled{Verdict: transient, Behind: true, RetryAt: 20 * time.Second}, engine.Redelivery{Outcome: engine.Retry, After: 20 * time.Second, Wait: time.Second}},
		{"behind a circuit, called", delivered(1), engine.Handled{Verdict: transient, Behind: true, Called: true, RetryAt: 20 * time.Second}, engine.Redelivery{Outcome: engine.Retry, After: 20 * time.Second, Wait: time.Second}},
		{"behind a circuit, but permanent", delivered(1), engine.Handled{Verdict: lull.Verdict{Kind: lull.KindPermanent}, Behind: true, RetryAt: 20 * time.Second}, engine.Redelivery{Outcome: engine.DeadLetter, Reason: engine.Permanent}},

		{"quick", change(1, func(d *engine.Delivery) { d.MaxRuns = 1 }), engine.Handled{Verdict: transient}, engine.Redelivery{Outcome: engine.Retry, After: time.Second, Wait: time.Second, Here: true}},
		{"quick at the last attempt", change(5, func(d *engine.Delivery) { d.MaxRuns, d.MaxWait = 1, time.Minute }), engine.Handled{Verdict: transient}, engine.Redelivery{Outcome: engine.DeadLetter, Reason: engine.AttemptsExhausted, Wait: 8 * time.Second, Here: true}},
		{"no quick run is left", change(1, func(d *engine.Delivery) { d.MaxRuns, d.Runs = 1, 1 }), engine.Handled{Verdict: transient}, engine.Redelivery{Outcome: engine.Retry, After: time.Second, Wait: time.Second}},
		{"the wait is too long for a quick run", change(2, func(d *engine.Delivery) { d.MaxRuns = 1 }), engine.Handled{Verdict: transient}, engine.Redelivery{Outcome: engine.Retry, After: 2 * time.Second, Wait: 2 * time.Second}},
		{"the lease is too short for a quick run", change(1, func(d *engine.Delivery) { d.MaxRuns, d.KeepLeft = 1, 10*time.Second }), engine.Handled{Verdict: transient}, engine.Redelivery{Outcome: engine.Retry, After: time.Second, Wait: time.Second}},
		{"the lease is just long enough for a quick run", change(1, func(d *engine.Delivery) { d.MaxRuns, d.KeepLeft = 1, 11*time.Second }), engine.Handled{Verdict: transient}, engine.Redelivery{Outcome: engine.Retry, After: time.Second, Wait: time.Second, Here: true}},
		{"half of a short lease is enough", change(1, func(d *engine.Delivery) { d.MaxRuns, d.KeepLeft, d.Lease = 1, 3*time.Second, 4*time.Second }), engine.Handled{Verdict: transient}, engine.Redelivery{Outcome: engine.Retry, After: time.Second, Wait: time.Second, Here: true}},
		{"no quick run when stopping", change(1, func(d *engine.Delivery) { d.MaxRuns, d.Stopping = 1, true }), engine.Handled{Verdict: transient}, engine.Redelivery{Outcome: engine.Defer}},
	} {
		got := handled(t, newDependency(t, messages()).State(), 0, c.d, c.h, nil)
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// What shows nothing of the dependency opens no circuit.
func TestHandledOpensNoCircuit(t *testing.T) {
	for _, h := range []engine.Handled{
		{Verdict: transient, Panicked: true},
		{Verdict: transient, CutOff: engine.CutByCaller},
		{},
		{Verdict: lull.Verdict{Kind: engine.KindCanceled}, Chosen: engine.Redelivery{Outcome: engine.Defer}},
	} {
		s := newDependency(t, messages()).State()
		for range 10 {
			handled(t, s, 0, delivered(1), h, nil)
		}
		if got := s.Breaker().State(0); got != breaker.Closed {
			t.Errorf("after ten of %+v the breaker is %v", h, got)
		}
	}
}

// opened is a state whose breaker has opened at now.
func opened(t *testing.T, now time.Duration) *engine.State {
	t.Helper()
	s := newDependency(t, messages()).State()
	for range 3 {
		handled(t, s, now, delivered(1), engine.Handled{Verdict: transient}, nil)
	}
	if got := s.Breaker().State(now); got != breaker.Open {
		t.Fatalf("the breaker is %v", got)
	}
	return s
}

// A probe with a message is no attempt where a deferral is free, as often as the policy allows
// attempts.
func TestProbesAreFree(t *testing.T) {
	for _, c := range []struct {
		free, deferFree bool
		want            engine.MessageOutcome
	}{{true, true, engine.Defer}, {false, true, engine.DeadLetter}, {true, false, engine.DeadLetter}} {
		s := opened(t, 0)
		now := s.Breaker().RetryAt(0)
		d := delivered(5)
		d.FreeDefer = c.deferFree
		asked := 0
		got := handled(t, s, now, d, engine.Handled{Verdict: transient}, func(most int) bool {
			if asked++; most != 5 {
				t.Errorf("asked for %d probes, want the policy's 5 attempts", most)
			}
			return c.free
		})
		if got.Outcome != c.want || (asked == 1) != c.deferFree {
			t.Errorf("%+v: %+v, asked %d times", c, got, asked)
		}
	}
}

// What becomes of a message that was refused before its handler ran.
func TestRefused(t *testing.T) {
	const open = 10 * time.Second
	for _, c := range []struct {
		name string
		why  engine.Reason
		d    func(d *engine.Delivery)
		want engine.Redelivery
	}{
		{"behind the open circuit", engine.CircuitOpen, func(*engine.Delivery) {}, engine.Redelivery{Outcome: engine.Defer, After: open}},
		{"the broker's longest delay", engine.CircuitOpen, func(d *engine.Delivery) { d.MaxDelay = time.Second }, engine.Redelivery{Outcome: engine.Defer, After: time.Second}},
		{"kept, where a deferral counts", engine.CircuitOpen, func(d *engine.Delivery) { d.FreeDefer = false }, engine.Redelivery{Here: true, Wait: open}},
		{"not kept when it must be let go of", engine.CircuitOpen, func(d *engine.Delivery) { d.FreeDefer, d.Ending = false, true }, engine.Redelivery{Outcome: engine.Defer, After: open}},
		{"given back at once when stopping", engine.CircuitOpen, func(d *engine.Delivery) { d.FreeDefer, d.Stopping = false, true }, engine.Redelivery{Outcome: engine.Defer}},
		{"an attempt, after a run", engine.CircuitOpen, func(d *engine.Delivery) { d.Runs = 1 }, engine.Redelivery{Outcome: engine.Retry, After: open}},
		{"the last attempt, after a run", engine.CircuitOpen, func(d *engine.Delivery) { d.Runs, d.Attempt = 1, 5 }, engine.Redelivery{Outcome: engine.DeadLetter, Reason: engine.AttemptsExhausted}},
	} {
		s := opened(t, 0)
		at := s.Breaker().RetryAt(0)
		d := delivered(1)
		c.d(&d)
		got := s.Refused(0, c.why, transient, d, nil)
		if c.want.After == open { // the open time has jitter
			c.want.After = at
		}
		if c.want.Wait == open {
			c.want.Wait = at
		}
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	// For want of room it waits as after a first failure that asks for fewer calls.
	s := newDependency(t, messages()).State()
	want := engine.Redelivery{Outcome: engine.Defer, After: s.Wait(1, engine.Verdict{Kind: engine.KindRateLimited}, nil)}
	if got := s.Refused(0, engine.Limited, engine.Verdict{}, delivered(3), nil); got != want || got.After <= 0 {
		t.Errorf("without room: %+v, want %+v", got, want)
	}
}

// How many messages may be fetched, by the state of the breaker.
func TestFetch(t *testing.T) {
	s := newDependency(t, messages()).State()
	if got := s.Fetch(0, 7, false); got != (engine.Fetch{Most: 7}) {
		t.Errorf("closed: %+v", got)
	}
	const now = time.Minute
	s = opened(t, now)
	at := s.Breaker().RetryAt(now)
	if got := s.Fetch(now, 7, false); got != (engine.Fetch{Wait: at - now, Foreseen: at - now}) {
		t.Errorf("at %v, open until %v: %+v", now, at, got)
	}
	if got := s.Fetch(at, 7, false); got != (engine.Fetch{Most: 1, Probe: true}) {
		t.Errorf("half-open: %+v", got)
	}
	if got := s.Fetch(at, 7, true); got.Most != 0 || got.Wait != 250*time.Millisecond || got.Foreseen != 10*time.Second {
		t.Errorf("half-open, and a probe is out: %+v", got)
	}
	off := messages()
	off.Breaker = breaker.Config{Off: true}
	if got := newDependency(t, off).State().Fetch(0, 7, true); got.Most != 7 {
		t.Errorf("without a breaker: %+v", got)
	}
}

// A message that crashed its consumers alone is not handled again. One that was lost is deferred,
// and one that comes late is given back.
func TestDeliver(t *testing.T) {
	p := newDependency(t, messages()).Plan() // of 5 attempts
	type d = engine.Delivery
	told := engine.BrokerCapabilities{FreeDefer: true, Losses: true, MaxDelay: time.Hour}
	for _, c := range []struct {
		name string
		is   d
		seen int
		want string // attempt, crashes, and what becomes of it
	}{
		{"the first", d{BrokerCapabilities: told, Attempt: 1}, 0, "1 0 handle"},
		{"attempts that ended", d{BrokerCapabilities: told, Attempt: 5}, 0, "5 0 handle"},
		{"lost once", d{BrokerCapabilities: told, Attempt: 2, Lost: 1}, 0, "1 1 defer 1s"},
		{"lost on the way, twenty times", d{BrokerCapabilities: told, Attempt: 22, Lost: 20}, 0, "2 1 defer 1s"},
		{"lost, and this process knows of it", d{BrokerCapabilities: told, Attempt: 2, Lost: 1}, 1, "1 0 defer 1s"},
		{"the fourth time in a row", d{BrokerCapabilities: told, Attempt: 2, Lost: 1, SeenLost: 4}, 1, "1 0 defer 8s"},
		{"lost by this process once, and by others", d{BrokerCapabilities: told, Attempt: 2, Lost: 1, Crashes: 3}, 1, "1 3 defer 4s"},
		{"lost by this process more often than anybody noted", d{BrokerCapabilities: told, Attempt: 2, Lost: 1}, 7, "1 0 defer 1s"},
		{"crashed, and put off", d{BrokerCapabilities: told, Attempt: 1, Crashes: 5}, 0, "1 5 handle"},
		{"crashed too often", d{BrokerCapabilities: told, Attempt: 2, Lost: 1, Crashes: 5}, 0, "1 6 crashed"},
		{"crashed too often, and to stop", d{BrokerCapabilities: told, Attempt: 2, Lost: 1, Crashes: 5, Stopping: true}, 0, "1 6 crashed"},
		{"lost, and to stop", d{BrokerCapabilities: told, Attempt: 2, Lost: 1, Stopping: true}, 0, "1 1 defer 0s"},
		{"to stop", d{BrokerCapabilities: told, Attempt: 1, Stopping: true}, 0, "1 0 defer 0s"},
		{"to stop, not free", d{Attempt: 1, Stopping: true}, 0, "1 0 handle"},
		{"not told: as often as it may fail", d{Attempt: 5}, 0, "5 0 handle"},
		{"not told: once more", d{Attempt: 6}, 0, "6 3 handle"},
		{"not told: three times more", d{Attempt: 8}, 0, "8 5 handle"},
		{"not told: four times more", d{Attempt: 9}, 0, "9 6 crashed"},
		{"not told, but this process knows of some", d{Attempt: 9}, 5, "4 0 handle"},
		{"not told, but this process knows of all", d{Attempt: 3}, 3, "1 0 handle"},
	} {
		is := p.Counted(c.is, c.seen)
		r, ok := p.Deliver(is, nil)
		got := fmt.Sprint(is.Attempt, " ", is.Crashes, " ")
		switch {
		case ok:
			got += "handle"
		case r.Outcome == engine.DeadLetter:
			got += r.Reason.String()
		default:
			got += fmt.Sprint(r.Outcome, " ", r.After)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// A message comes again only in its own time, and if the broker has room for it.
func TestWithin(t *testing.T) {
	const wait = time.Second
	for _, x := range []struct {
		outcome engine.MessageOutcome
		life    time.Duration
		expired bool
	}{
		{engine.Retry, 0, false}, {engine.Defer, 0, false},
		{engine.Retry, wait + 1, false}, {engine.Defer, wait + 1, false},
		{engine.Retry, wait, true}, {engine.Defer, wait, true}, {engine.Retry, -1, true},
		{engine.Ack, -1, false}, {engine.Drop, -1, false}, {engine.DeadLetter, -1, false},
	} {
		r := engine.Redelivery{Outcome: x.outcome, After: wait}
		want := r
		if x.expired {
			want = engine.Redelivery{Outcome: engine.DeadLetter, Reason: engine.Expired}
		}
		if got := r.Within(x.life); got != want {
			t.Errorf("%v with %v left: %+v, want %+v", x.outcome, x.life, got, want)
		}
		want = r
		if x.outcome == engine.Retry || x.outcome == engine.Defer {
			want = engine.Redelivery{Outcome: engine.DeadLetter, Reason: engine.TooLarge}
		}
		if got := r.TooLarge(); got != want {
			t.Errorf("%v without room: %+v, want %+v", x.outcome, got, want)
		}
	}
	p := newDependency(t, messages()).Plan()
	d := delivered(1)
	d.LifeLeft = -1
	if r, ok := p.Deliver(d, nil); ok || r.Outcome != engine.DeadLetter || r.Reason != engine.Expired {
		t.Errorf("its time is over: %+v, %v", r, ok)
	}
}

// A message comes again after every end of a call of its handler, except for an answer that
// refuses the request for good. What was not safe to repeat may be repeated later: the broker's
// contract is at least once.
func TestFromBelow(t *testing.T) {
	for why := engine.Permanent; int(why) < engine.Reasons; why++ {
		for _, last := range []engine.Verdict{
			{Kind: engine.KindTransient, Code: "503", After: time.Minute},
			{Kind: engine.KindRateLimited, Code: "429", After: time.Minute},
			{Kind: engine.KindUnclassified, Code: "mystery"},
			{Kind: engine.KindPermanent, Code: "400"},
			{Kind: engine.KindPermanent, Code: "nxdomain", NeverSent: true},
		} {
			want := engine.KindTransient
			switch {
			case why == engine.Canceled:
				want = engine.KindUnclassified
			case why == engine.Permanent && last.Code == "400":
				want = engine.KindPermanent
			case why == engine.Permanent:
				want = engine.KindUnclassified
			case why == engine.Overloaded:
				want = engine.KindOverloaded
			case why == engine.HintTooLong, last.Kind == engine.KindRateLimited && why != engine.Limited && why != engine.Deadline && why != engine.Unanswered:
				want = engine.KindRateLimited
			}
			v := engine.FromBelow(why, last, 1)
			if v.Kind != want || v.NeverSent {
				t.Errorf("%v of %+v: %+v, want %v", why, last, v, want)
			}
			if hinted := v.After == time.Minute; hinted && why != engine.HintTooLong {
				t.Errorf("%v: wait %v", why, v.After)
			}
		}
		if v := engine.FromBelow(why, engine.Verdict{}, 0); v.Kind == engine.KindTransient && !v.NeverSent {
			t.Errorf("%v before the first attempt: %+v", why, v)
		}
	}
}

// A lease is extended every third of its length, every sixth while that fails, and later if its
// holder has extended it.
func TestLease(t *testing.T) {
	const want = 30 * time.Second
	l := consumers.NewLease(want, want, 0, true)
	equal := func(what string, got, want any) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	equal("first look", l.AfterExtension(false), 10*time.Second)
	equal("after a failure", l.AfterExtension(true), 5*time.Second)
	equal("a beat", l.UntilExtension(20*time.Second), time.Duration(0))
	equal("a beat after Message.Extend", l.UntilExtension(time.Minute), 40*time.Second)
	equal("margin", l.Margin(), 3*time.Second)
	equal("patience", l.AnswerTimeout(), 5*time.Second)
	l.Extended(want, 28*time.Second)
	equal("nearly all of it", l.Final, false)
	l.Extended(want, 20*time.Second)
	equal("less than asked for", l.Final, true)
	equal("its length", l.Length, 20*time.Second)
	l = consumers.NewLease(want, want, 10*time.Second, false)
	equal("cannot be extended", l.Final, true)
	equal("a margin of its own", l.Margin(), 10*time.Second)
	l.Length = 4 * time.Second
	equal("at most half", l.Margin(), 2*time.Second)
	lapsed := consumers.NewLease(-time.Second, want, 0, true)
	equal("lapsed", lapsed.First, time.Duration(0))
}
