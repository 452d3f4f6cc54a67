package admission

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
)

func TestGateWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(must.Have(New(Config{Limit: 1, MaxWait: 100 * ms, PressedWait: 100 * ms}, WithRand(seed.Source(t)))))
		first, d := g.Enter(t.Context(), Request{})
		if d.Outcome != Admitted {
			t.Fatal(d)
		}
		// Its turn does not come.
		start := time.Now()
		if _, d := g.Enter(t.Context(), Request{}); d.Reason != Waited || time.Since(start) != 100*ms {
			t.Errorf("%+v after %v, want it refused after 100ms", d, time.Since(start))
		}
		// Its caller goes.
		ctx, cancel := context.WithTimeout(t.Context(), 30*ms)
		defer cancel()
		start = time.Now()
		if _, d := g.Enter(ctx, Request{}); d.Reason != TooLate && d.Reason != Gone || time.Since(start) != 30*ms {
			t.Errorf("%+v after %v, want it refused after 30ms", d, time.Since(start))
		}
		if _, d := g.Enter(ctx, Request{}); d.Reason != Gone && d.Reason != TooLate {
			t.Errorf("%+v for a caller that has gone", d)
		}
		// Its turn comes.
		time.AfterFunc(40*ms, func() { first.Depart(Done) })
		start = time.Now()
		second, d := g.Enter(t.Context(), Request{})
		if d.Outcome != Admitted || time.Since(start) != 40*ms {
			t.Errorf("%+v after %v", d, time.Since(start))
		}
		// Its caller goes in the very moment in which its turn comes.
		ctx2, cancel2 := context.WithCancel(t.Context())
		time.AfterFunc(10*ms, func() { cancel2(); second.Depart(Done) })
		if p, d := g.Enter(ctx2, Request{}); d.Outcome == Admitted || p != (Pass{}) {
			t.Errorf("%+v: work was begun for a caller that has gone", d)
		}
		if s := g.Snapshot(); s.InFlight != 0 || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
		if g.Controller().random == nil {
			t.Error("the gate has no source of chance")
		}
	})
}

// A deadline that is known makes who cannot be served by then leave before it passes.
func TestGateDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(must.Have(New(Config{Limit: 1, MaxWait: 100 * ms}, WithRand(seed.Source(t)))))
		p, _ := g.Enter(t.Context(), Request{})
		time.Sleep(20 * ms)
		p.Depart(Done) // work takes 20 ms
		p, _ = g.Enter(t.Context(), Request{})
		defer p.Depart(Done)
		ctx, cancel := context.WithTimeout(t.Context(), 50*ms)
		defer cancel()
		start := time.Now()
		_, d := g.Enter(ctx, Request{})
		if d.Reason != TooLate || time.Since(start) != 30*ms {
			t.Errorf("%+v after %v, want it too late after 30ms, 20ms before the end", d, time.Since(start))
		}
		if _, d := g.Enter(ctx, Request{Deadline: g.Now() + 10*ms}); d.Reason != TooLate {
			t.Errorf("%+v", d)
		}
	})
}
