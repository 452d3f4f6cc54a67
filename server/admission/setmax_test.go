package admission

import (
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
)

func (d *desk) setMax(now time.Duration, n int) {
	d.Helper()
	if err := d.c.SetMax(now, n); err != nil {
		d.Fatal(err)
	}
}

// A server that warms up says how many requests it can take. The limit stands, and holds again
// once the bound is lifted.
func TestSetMax(t *testing.T) {
	d := newDesk(t, Config{Limit: 4, MaxWait: 100 * ms, MaxQueue: 3})
	inFlight := func(want, limit int) {
		t.Helper()
		if s := d.c.Snapshot(0); s.InFlight != want || s.Limit != limit {
			t.Errorf("%d of %d in flight, want %d of %d", s.InFlight, s.Limit, want, limit)
		}
	}
	d.setMax(0, 1)
	a := d.now(0, "a", "admitted")
	for _, name := range []string{"b", "c", "d"} {
		d.now(0, name, "queued")
	}
	slow := d.now(0, "e", "full").last.RetryAfter
	inFlight(1, 1)
	d.setMax(0, 3)
	d.expect("d admitted", "c admitted") // under pressure the newest first
	d.setMax(0, 1)                       // those that are worked on stay, and nobody comes in for the first that goes
	d.depart(0, a)
	d.expect()
	inFlight(2, 1)
	d.setMax(0, 0)
	d.expect("b admitted")
	inFlight(3, 4)
	d.setMax(0, 9) // beyond the limit it changes nothing
	inFlight(3, 4)
	for _, n := range []int{-1, MaxLimit + 1} {
		if err := d.c.SetMax(0, n); err == nil {
			t.Errorf("a bound of %d is taken", n)
		}
	}
	inFlight(3, 4)

	// Callers are asked to come back when a server with so much room has served those before.
	free := newDesk(t, Config{Limit: 4, MaxWait: 100 * ms, MaxQueue: 3})
	for _, want := range []string{"admitted", "admitted", "admitted", "admitted", "queued", "queued", "queued"} {
		free.now(0, "x", want)
	}
	if quick := free.now(0, "y", "full").last.RetryAfter; quick >= slow {
		t.Errorf("with room for four: come back after %v, want sooner than the %v with room for one", quick, slow)
	}
}

// What a bound refuses is no reason for a higher limit.
func TestSetMaxTeachesTheLimitNothing(t *testing.T) {
	grown := func(most int) int {
		d := newDesk(t, Config{MaxWait: -1})
		limited(d.c, 8)
		d.setMax(0, most)
		var now time.Duration
		for range 200 {
			var flying []*guest
			for range 40 {
				g := d.guest("x")
				if d.c.Arrive(now, Request{}, &g.Ticket).Outcome == Admitted {
					flying = append(flying, g)
				}
			}
			now += 10 * ms
			for _, g := range flying {
				d.depart(now, g)
			}
		}
		d.setMax(now, 0)
		return d.c.Snapshot(now).Limit
	}
	if free := grown(0); free < 16 {
		t.Fatalf("without a bound the limit is %d: this test shows nothing", free)
	}
	check.Equal(t, grown(2), 8, "limit with a bound of 2, as before")
}
