package engine_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/seed"
)

// siblings is one call on two dependencies. On the first, successes go to Succeed where that is
// allowed, on the second always to Next.
type siblings struct {
	*world
	of        [2]*lull.Dependency
	succeeded int // calls that were handed to Succeed
}

// same compares two answers of the engine.
func (s *siblings) same(what string, short, general engine.Step) {
	s.t.Helper()
	if short != general {
		s.fatalf("at %v, %s: %+v where successes are handed to Succeed, %+v where they are not", s.now, what, short, general)
	}
}

// sameState compares what the two dependencies show of what they remember.
func (s *siblings) sameState() {
	s.t.Helper()
	a, b := s.of[0].State(), s.of[1].State()
	if a.CircuitClosed(s.now) != b.CircuitClosed(s.now) {
		s.fatalf("at %v: the circuit is closed: %v and %v", s.now, a.CircuitClosed(s.now), b.CircuitClosed(s.now))
	}
	if x, y := a.Limiter(), b.Limiter(); x != nil && (x.InFlight() != y.InFlight() || x.Waiting() != y.Waiting()) {
		s.fatalf("at %v: in flight %d and %d, waiting %d and %d", s.now, x.InFlight(), y.InFlight(), x.Waiting(), y.Waiting())
	}
	// To look at the other parts makes a state remember. It is done only at times, so that
	// states that remember nothing are compared as well.
	if s.r.IntN(50) != 0 {
		return
	}
	s.remembers("the end of an attempt", s.of[0], s.of[1])
}

func (s *siblings) arrive() {
	s.calls++
	spec := engine.Spec{NotIdempotent: s.r.IntN(4) == 0, Stream: s.r.IntN(4) == 0}
	if s.r.IntN(3) == 0 {
		spec.Deadline = s.now + time.Duration(s.r.Int64N(int64(time.Second)))
	}
	var calls [2]engine.Call
	var steps [2]engine.Step
	for i := range calls {
		calls[i], steps[i] = s.of[i].State().Start(s.now, spec)
	}
	s.same("the start", steps[0], steps[1])
	if !steps[0].Done {
		s.attempt(&calls)
	}
}

func (s *siblings) attempt(calls *[2]engine.Call) {
	luck := s.luck()
	short, general := calls[0].Attempt(s.now, luck), calls[1].Attempt(s.now, luck)
	s.same("an attempt", short, general)
	switch {
	case short.Done:
	case short.Full:
		s.same("leaving", calls[0].Stop(s.now, engine.Canceled, luck), calls[1].Stop(s.now, engine.Canceled, luck))
	case short.Wait > 0:
		s.after(short.Wait, func() { s.attempt(calls) })
	default:
		s.attemptBegan(calls)
	}
}

// attemptBegan draws how the attempt ends.
func (s *siblings) attemptBegan(calls *[2]engine.Call) {
	v, _, took := s.drawEnd(calls[0].Timeout(s.now))
	s.after(took, func() {
		luck := s.luck()
		general := calls[1].Next(s.now, v, luck)
		if c := &calls[0]; v.Kind == lull.KindSuccess && c.Attempts() == 1 && c.CanUseSucceed() {
			s.succeeded++
			c.Succeed(s.now, c.NeedsEndTime())
			if !c.Over() {
				s.fatalf("at %v: the call goes on after Succeed", s.now)
			}
		} else {
			s.same("the end of an attempt", c.Next(s.now, v, luck), general)
		}
		s.sameState()
		if !general.Done {
			s.retries++
			s.after(general.Wait, func() { s.attempt(calls) })
		}
	})
}

// Succeed leaves the same state as Next, so that later calls are decided in the same way.
func TestSucceedLeavesWhatNextLeaves(t *testing.T) {
	worlds, callsEach := seed.Runs(100), 1000
	const base = 2600
	calls, succeeded := 0, 0
	for i := range uint64(worlds) {
		seed := base + i
		r := rand.New(rand.NewPCG(seed, 0))
		p := randomPolicy(r)
		if r.IntN(8) == 0 {
			p.Breaker = breaker.Config{SlowRate: 0.5, SlowCall: 30 * ms}
		}
		s := &siblings{world: &world{t: t, seed: seed, r: r, policy: p}}
		kind := r.IntN(5)
		for j := range s.of {
			s.of[j] = newDependency(t, p, lull.WithBudget(budgetOfKind(kind)))
		}
		s.play(callsEach, 200, s.arrive, nil)
		calls, succeeded = calls+s.calls, succeeded+s.succeeded
	}
	t.Logf("%d calls, of which %d were handed to Succeed (base seed %d)", calls, succeeded, base)
	if succeeded < calls/5 {
		t.Errorf("%d of %d calls were handed to Succeed: hardly anything was compared", succeeded, calls)
	}
}
