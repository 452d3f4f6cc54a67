package storetest

import (
	"time"

	"github.com/lullgo/lull/server/idempotency"
)

func (t *tester) leaseEnds() {
	owned := func() idempotency.Claim { return t.claimed(lasting(request(), short, long), false) }
	c, d, e := owned(), owned(), owned()
	time.Sleep(past)
	for range 2 { // to ask changes nothing
		t.wants(lasting(again(c), long, 2*long), idempotency.Unknown)
	}
	t.extends(c, long, 2*long) // nobody has taken over: the owner was only slow
	t.wants(again(c), idempotency.InFlight)
	t.completes(d, []byte("late"), long)
	t.replays(again(d), []byte("late"))
	t.claimed(lasting(e, long, 2*long), false) // the same claim once more
	t.wants(again(e), idempotency.InFlight)
}

func (t *tester) extend() {
	c := t.claimed(lasting(request(), short, long), false)
	t.extends(c, long, 2*long)
	time.Sleep(past)
	if a := t.wants(again(c), idempotency.InFlight); a.Remaining > long || a.Remaining < long-time.Minute {
		t.Errorf("what remains of a lease extended to %v is %v", long, a.Remaining)
	}
	t.extends(c, short, 2*long) // shorter than it was
	time.Sleep(past)
	t.wants(again(c), idempotency.Unknown)
}

func (t *tester) giveUp() {
	c := t.claimed(request(), false)
	t.extends(c, 0, long)
	t.wants(again(c), idempotency.Unknown)
	t.completes(c, []byte("after all"), long)
	t.replays(again(c), []byte("after all"))
}

func (t *tester) takeOver() {
	c := t.claimed(lasting(request(), short, long), false)
	time.Sleep(past)
	t.wants(again(c), idempotency.Unknown)
	d := t.claimed(lasting(resume(c), long, 2*long), true)
	t.fenced(c)
	t.wants(c, idempotency.InFlight) // it is not the owner any more
	t.wants(again(c), idempotency.InFlight)
	t.wants(resume(c), idempotency.InFlight)
	t.claimed(d, true) // asked again, it learns again that it was resumed
	d.Resume = false
	t.claimed(d, true)
	t.fenced(c)

	t.extends(d, 0, long)
	e := t.claimed(resume(c), true)
	t.fenced(d)
	t.fenced(c)
	t.completes(e, []byte("by the third"), long)
	t.fenced(c)
	t.fenced(d)
	t.replays(again(c), []byte("by the third"))
}

func (t *tester) recordForgotten() {
	c := t.claimed(request(), false)
	t.completes(c, []byte("soon forgotten"), short)
	d := t.before(func(d idempotency.Claim) error {
		return t.s.Complete(t.ctx, d.Key, d.Token, []byte("longer than its claim"), long)
	})
	e := t.claimed(request(), false)
	t.completes(e, []byte("asked for"), short)
	time.Sleep(short / 3)
	if a, err := t.s.Claim(t.ctx, again(e)); err != nil {
		t.Fatal(err)
	} else if a.State == idempotency.Replay { // otherwise the machine was too slow to see it
		time.Sleep(past)
		t.claimed(other(e), false) // to ask does not prolong its life
	}
	time.Sleep(past)
	t.fenced(c)
	f := t.claimed(other(c), false)
	t.fenced(c)
	t.wants(again(f), idempotency.InFlight)
	t.replays(again(d), []byte("longer than its claim"))
}

// before returns a claim that would be forgotten soon, and for which act was called in time. If the machine is too slow,
// it tries another claim.
func (t *tester) before(act func(c idempotency.Claim) error) idempotency.Claim {
	t.Helper()
	for {
		c := lasting(request(), short, short)
		began := time.Now()
		t.claimed(c, false)
		if err := act(c); err == nil || time.Since(began) < short {
			t.must("with a claim that lasts", err)
			return c
		}
	}
}

func (t *tester) ownerForgotten() {
	c := t.claimed(lasting(request(), short, short), false)
	extended := func(lease, retention time.Duration) idempotency.Claim {
		return t.before(func(c idempotency.Claim) error { return t.s.Extend(t.ctx, c.Key, c.Token, lease, retention) })
	}
	d, e := extended(long, 2*long), extended(0, long)
	time.Sleep(past)
	t.fenced(c)
	f := t.claimed(lasting(other(c), long, 2*long), false)
	t.fenced(c)
	t.wants(again(f), idempotency.InFlight)
	t.wants(again(d), idempotency.InFlight)
	t.wants(again(e), idempotency.Unknown)
}

// A key that one owner released and another claimed is not the first one's, even if the
// first never noticed. A store that numbers owners from one for each entry fails this.
func (t *tester) tokens() {
	c := t.claimed(request(), false)
	t.extends(c, 0, long)
	d := t.claimed(resume(c), true)
	t.must("Release", t.s.Release(t.ctx, d.Key, d.Token))
	e := t.claimed(again(c), false)
	t.fenced(c)
	t.fenced(d)
	t.completes(e, []byte("the third's"), long)
	t.fenced(c)
	t.fenced(d)
	t.replays(again(c), []byte("the third's"))
}

func (t *tester) longTimes() {
	const decade = 10 * 365 * 24 * time.Hour
	c := t.claimed(lasting(request(), long, decade), false)
	t.extends(c, long, decade)
	t.wants(again(c), idempotency.InFlight)
	t.completes(c, []byte("kept"), decade)
	t.replays(again(c), []byte("kept"))
	d := t.claimed(lasting(request(), time.Nanosecond, long), false) // shorter than any clock's step
	time.Sleep(10 * time.Millisecond)
	t.wants(again(d), idempotency.Unknown)
}
