package admission

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
)

// reference is the rules, slow and obvious, for a fixed limit and no deadlines: who is
// at work, and who waits, in order of arrival.
type reference struct {
	limit, queue int
	maxWait      time.Duration
	pressedWait  time.Duration
	working      map[*guest]bool
	line         []*waitingGuest
	shedAt       time.Duration
	shed         bool
	since        time.Duration // of a line that is not empty
}

type waitingGuest struct {
	*guest
	rank  int
	until time.Duration
}

func (r *reference) pressed(now time.Duration) bool {
	return len(r.line) > 0 && now-r.since >= r.maxWait || r.shed && now-r.shedAt < r.maxWait
}

func (r *reference) refuse(now time.Duration, rank int) {
	if rank%2 == 1 { // a first attempt
		r.shedAt, r.shed = now, true
	}
}

func (r *reference) arrive(now time.Duration, g *guest, q Request) (outcome ArriveResult, why RefusalReason, displaced *guest) {
	pressed := r.pressed(now)
	switch {
	case q.Hedge && pressed:
		return Refused, ShedHedge, nil
	case q.Attempt > 1 && !q.Hedge && pressed && q.Priority <= Critical:
		return Refused, ShedRetry, nil
	case len(r.line) == 0 && len(r.working) < r.limit:
		r.working[g] = true
		return Admitted, NotRefused, nil
	case q.Hedge:
		return Refused, ShedHedge, nil
	}
	rank := 2*int(q.Priority+2) + 1
	if q.Attempt > 1 {
		rank--
	}
	if len(r.line) >= r.queue {
		worst := slices.MinFunc(r.line, func(a, b *waitingGuest) int { return a.rank - b.rank }) // the first of equals
		if worst.rank > rank || worst.rank == rank && !pressed {
			r.refuse(now, rank)
			return Refused, Full, nil
		}
		r.line = slices.DeleteFunc(r.line, func(w *waitingGuest) bool { return w == worst })
		r.refuse(now, worst.rank)
		displaced = worst.guest
	}
	wait := r.maxWait
	if pressed && !slices.ContainsFunc(r.line, func(w *waitingGuest) bool { return w.rank < rank }) {
		wait = r.pressedWait
	}
	if len(r.line) == 0 {
		r.since = now
	}
	r.line = append(r.line, &waitingGuest{g, rank, now + wait})
	return Queued, NotRefused, displaced
}

func (r *reference) depart(now time.Duration, g *guest) (settled []string) {
	delete(r.working, g)
	pressed := len(r.line) > 0 && r.pressed(now)
	for len(r.working) < r.limit && len(r.line) > 0 {
		best := r.line[0]
		for _, w := range r.line {
			if w.rank > best.rank || w.rank == best.rank && pressed {
				best = w
			}
		}
		r.line = slices.DeleteFunc(r.line, func(w *waitingGuest) bool { return w == best })
		if now >= best.until {
			r.refuse(now, best.rank)
			settled = append(settled, best.name+" waited")
			continue
		}
		r.working[best.guest] = true
		settled = append(settled, best.name+" admitted")
	}
	return settled
}

func (r *reference) leave(now time.Duration, g *guest) RefusalReason {
	i := slices.IndexFunc(r.line, func(w *waitingGuest) bool { return w.guest == g })
	if i < 0 {
		return NotRefused
	}
	w := r.line[i]
	r.line = slices.Delete(r.line, i, i+1)
	if now < w.until {
		return Gone
	}
	r.refuse(now, w.rank)
	return Waited
}

func TestAgainstReference(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 7))
		c := Config{Limit: 1 + rng.IntN(4), MaxWait: 20 * ms, PressedWait: 8 * ms, MaxQueue: 1 + rng.IntN(5), RetryRatio: -1}
		d := newDesk(t, c)
		r := &reference{limit: c.Limit, queue: c.MaxQueue, maxWait: c.MaxWait, pressedWait: c.PressedWait, working: map[*guest]bool{}}
		var all []*guest
		now := time.Duration(0)
		for step := range 400 {
			now += time.Duration(rng.IntN(4)) * ms
			fail := func(what string, got, want any) {
				t.Helper()
				t.Fatalf("seed %d, step %d, at %v: %s: got %v, want %v", seed, step, now, what, got, want)
			}
			switch op := rng.IntN(10); {
			case op < 5:
				g := d.guest(string(rune('a'+step%26)) + string(rune('0'+step/26)))
				all = append(all, g)
				q := Request{Priority: Sheddable + Priority(rng.IntN(4)), Attempt: rng.IntN(3), Hedge: rng.IntN(8) == 0}
				got := d.c.Arrive(now, q, &g.Ticket)
				outcome, why, displaced := r.arrive(now, g, q)
				if got.Outcome != outcome || got.Reason != why {
					fail("arrive", got, []any{outcome, why})
				}
				if displaced != nil {
					d.expect(displaced.name + " displaced")
				}
				if outcome == Queued && g.Until != r.line[len(r.line)-1].until {
					fail("until", g.Until, r.line[len(r.line)-1].until)
				}
			case op < 8 && len(r.working) > 0:
				i := slices.IndexFunc(all, func(g *guest) bool { return r.working[g] })
				want := r.depart(now, all[i])
				d.c.Depart(now, &all[i].Ticket, WorkResult(rng.IntN(3)))
				d.expect(want...)
			case len(all) > 0:
				g := all[len(all)-1-rng.IntN(min(8, len(all)))]
				want := r.leave(now, g)
				got, left := d.c.Leave(now, &g.Ticket)
				if left != (want != NotRefused) || got.Reason != want {
					fail("leave", got.Reason, want)
				}
			}
			if s := d.c.Snapshot(now); s.InFlight != len(r.working) || s.Waiting != len(r.line) || s.Pressed != r.pressed(now) {
				fail("snapshot", []any{s.InFlight, s.Waiting, s.Pressed}, []any{len(r.working), len(r.line), r.pressed(now)})
			}
			d.expect()
		}
	}
}

// Whatever comes, with an adaptive limit: nobody waits while there is room, no more are
// at work than the limit was, everybody is settled once, and the books balance.
func TestInvariants(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 8))
		events := [3]uint64{}
		a := limited(must.Have(New(Config{MaxQueue: 20}, WithRand(rng.Uint64), WithObserver(func(e Event) { events[e.Kind]++ }))), 8)
		var working, queued []*guest
		var arrived, settled, left uint64
		now := time.Duration(0)
		for range 20_000 {
			now += time.Duration(rng.IntN(3)) * ms
			switch op := rng.IntN(20); {
			case op < 11:
				g := &guest{}
				g.Settled = func(_ *Ticket, d Decision) {
					settled++
					queued = slices.DeleteFunc(queued, func(x *guest) bool { return x == g })
					if d.Outcome == Admitted {
						working = append(working, g)
						if now >= g.Until {
							t.Fatal("work was begun for somebody who has waited too long")
						}
					}
				}
				arrived++
				q := Request{Attempt: rng.IntN(3), Priority: Priority(rng.IntN(9) - 4), Hedge: rng.IntN(9) == 0}
				if rng.IntN(3) == 0 {
					q.Deadline = now + time.Duration(rng.IntN(200)-20)*ms
				}
				switch d := a.Arrive(now, q, &g.Ticket); d.Outcome {
				case Admitted:
					working = append(working, g)
				case Queued:
					queued = append(queued, g)
				case Refused:
					if d.RetryAfter <= 0 || d.RetryAfter > maxRetryAfter || d.Reason == NotRefused {
						t.Fatalf("%+v", d)
					}
				}
			case op < 18 && len(working) > 0:
				i := rng.IntN(len(working))
				g := working[i]
				working = slices.Delete(working, i, i+1)
				a.Depart(now, &g.Ticket, WorkResult(rng.IntN(4)/2))
			case len(queued) > 0:
				i := rng.IntN(len(queued))
				if _, ok := a.Leave(now, &queued[i].Ticket); ok {
					left++
					queued = slices.Delete(queued, i, i+1)
				}
			}
			s := a.Snapshot(now)
			if s.InFlight != len(working) || s.Waiting != len(queued) || s.Waiting > 20 {
				t.Fatalf("seed %d: %+v, but %d work and %d wait", seed, s, len(working), len(queued))
			}
			if s.Waiting > 0 && s.InFlight < a.knee.current {
				t.Fatalf("seed %d: %d wait while there is room", seed, s.Waiting)
			}
			if s.Limit < 1 || s.Limit > DefaultMax || a.knee.current > s.Limit || a.knee.current < 1 {
				t.Fatalf("seed %d: limit %d, at present %d", seed, s.Limit, a.knee.current)
			}
		}
		s := a.Snapshot(now)
		var in, refused uint64
		for c := First; c <= Hedge; c++ {
			in += s.Admitted(c)
		}
		for r := range RefusalReason(reasons) {
			refused += s.Refused(r)
		}
		if s.Arrived(First)+s.Arrived(Retry)+s.Arrived(Hedge) != arrived || in+refused+uint64(s.Waiting) != arrived {
			t.Errorf("seed %d: %d came, %d were admitted, %d refused, %d wait", seed, arrived, in, refused, s.Waiting)
		}
		if events[Admission] != in || events[Refusal] != refused || events[Departure] != s.Departed(Done)+s.Departed(Failed)+s.Departed(Unmeasured) {
			t.Errorf("seed %d: the observer saw %v, but %d were admitted and %d refused", seed, events, in, refused)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	a := limited(must.Have(New(Config{MaxQueue: 8}, WithObserver(func(Event) {}), WithRand(seed.Source(t)))), 4)
	g := NewGate(a)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for n := range 200 {
				pass, d := g.Enter(t.Context(), Request{Attempt: n % 3, Priority: Priority(i%4 - 2)})
				if d.Outcome == Admitted {
					pass.Depart(Done)
				}
				pass.Depart(Done)
				if n%50 == 0 {
					g.Snapshot()
				}
			}
		})
	}
	wg.Wait()
	if s := g.Snapshot(); s.InFlight != 0 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
}

func FuzzNothingPanics(f *testing.F) {
	f.Add(0, 0, 0, int64(0), int64(0), 0, 0.0, int64(0), []byte{1, 2, 3})
	f.Add(0, 1, 1, int64(math.MaxInt64), int64(1), 1, -1.0, int64(math.MaxInt64), []byte{0, 0, 250, 9, 130, 7})
	f.Add(3, 0, 0, int64(-1), int64(0), 0, 10.0, int64(math.MinInt64), []byte{0, 0, 0, 0, 0, 77, 200, 201})
	f.Fuzz(func(t *testing.T, limit, least, most int, maxWait, pressed int64, queue int, ratio float64, step int64, ops []byte) {
		c := Config{Limit: limit, Min: least, Max: most, MaxWait: time.Duration(maxWait), PressedWait: time.Duration(pressed), MaxQueue: queue, RetryRatio: ratio}
		a, err := New(c)
		if err != nil {
			return
		}
		tickets := make([]Ticket, 8)
		now := time.Duration(0)
		for _, op := range ops {
			x := &tickets[op&7]
			switch op >> 3 & 3 {
			case 0, 1:
				a.Arrive(now, Request{Priority: Priority(op), Attempt: int(op >> 5), Hedge: op > 250, Deadline: time.Duration(step) * time.Duration(op&1)}, x)
			case 2:
				a.Depart(now, x, WorkResult(op>>5))
			case 3:
				a.Leave(now, x)
			}
			if op >= 128 {
				now += time.Duration(step)
			} else {
				now += time.Duration(op) * ms
			}
		}
		if s := a.Snapshot(now); s.InFlight < 0 || s.InFlight > 8 || s.Waiting < 0 || s.Limit < 1 {
			t.Errorf("%+v", s)
		}
	})
}
