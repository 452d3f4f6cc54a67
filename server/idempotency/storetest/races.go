package storetest

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/server/idempotency"
)

func (t *tester) oneTakesOver() {
	c := t.claimed(request(), false)
	t.extends(c, 0, long)
	n := t.race(t.o.Concurrent, func() idempotency.Claim { return resume(c) })
	if n[idempotency.Claimed] != 1 || n[idempotency.InFlight] != t.o.Concurrent-1 {
		t.Errorf("of %d that took over at once: %v", t.o.Concurrent, n)
	}
	t.fenced(c)
}

// race makes n claims at once, and counts the answers by State.
func (t *tester) race(n int, claim func() idempotency.Claim) (count [6]int) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	start := make(chan struct{})
	for range n {
		c := claim()
		wg.Go(func() {
			<-start
			a, err := t.s.Claim(t.ctx, c)
			if err != nil {
				t.Errorf("Claim: %v", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			count[a.State]++
		})
	}
	close(start)
	wg.Wait()
	return count
}

// An owner that was silent completes at the moment in which another takes over: one
// of the two wins, and both know which.
func (t *tester) completeOrTakeOver() {
	for i := range 50 {
		c := t.claimed(request(), false)
		t.extends(c, 0, long)
		d := resume(c)
		var wg sync.WaitGroup
		var err error
		start := make(chan struct{})
		wg.Go(func() {
			<-start
			err = t.s.Complete(t.ctx, c.Key, c.Token, []byte("first"), long)
		})
		close(start)
		a, err2 := t.s.Claim(t.ctx, d)
		wg.Wait()
		t.must("Claim", err2)
		switch {
		case err == nil && a.State == idempotency.Replay && string(a.Record) == "first":
			t.replays(again(c), []byte("first"))
		case errors.Is(err, idempotency.ErrFenced) && a.State == idempotency.Claimed && a.Resumed:
			t.wants(again(c), idempotency.InFlight)
			t.completes(d, []byte("second"), long)
		default:
			t.Fatalf("round %d: Complete gives %v, and Claim at the same time %v with %q", i, err, a.State, a.Record)
		}
	}
}

func (t *tester) concurrent() {
	n := t.o.Concurrent
	c := request()
	got := t.race(n, func() idempotency.Claim { return again(c) })
	if got[idempotency.Claimed] != 1 || got[idempotency.InFlight] != n-1 {
		t.Errorf("%d claims at once: %v answers by state, want one that is claimed, and the others in flight", n, got)
	}
	// The same owner, whose every answer is lost: it is claimed each time.
	d := request()
	got = t.race(8, func() idempotency.Claim { return d })
	if got[idempotency.Claimed] != 8 {
		t.Errorf("8 claims by one token: %v answers by state, want all claimed", got)
	}
	// The whole way, all at once: one runs, and all others see its record.
	t.onlyOneRuns(n, func(mine idempotency.Claim, ran func()) (idempotency.ClaimResult, error) {
		a, err := t.s.Claim(t.ctx, mine)
		if err == nil && a.State == idempotency.Claimed {
			ran()
			err = t.s.Complete(t.ctx, mine.Key, mine.Token, mine.Token[:], long)
		}
		return a, err
	})
}

// onlyOneRuns has n owners of one key try, until it is theirs or there is a record.
func (t *tester) onlyOneRuns(n int, try func(mine idempotency.Claim, ran func()) (idempotency.ClaimResult, error)) {
	t.Helper()
	all := request()
	var runs atomic.Int64
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for mine := again(all); ; time.Sleep(time.Millisecond) {
				a, err := try(mine, func() { runs.Add(1) })
				if err != nil || a.State != idempotency.InFlight {
					if err != nil || a.State != idempotency.Claimed && a.State != idempotency.Replay {
						t.Errorf("one of %d at once gets %v, %v", n, a.State, err)
					}
					return
				}
			}
		})
	}
	wg.Wait()
	if runs.Load() != 1 {
		t.Errorf("%d of %d at once own the key", runs.Load(), n)
	}
}
