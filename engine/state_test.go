package engine

import (
	"math"
	"sync"
	"testing"
	"time"

	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
)

// There are four classes of times in each doubling, in equal parts, from 2^18 ns on.
func TestTimeClasses(t *testing.T) {
	for _, d := range []time.Duration{math.MinInt64, -1, 0, 1, 1 << 17, 1<<18 - 1} {
		if c := timeClass(d); c != 0 {
			t.Errorf("class of %v: %d, want the first", d, c)
		}
	}
	for doubling := range 16 {
		low := time.Duration(1) << (18 + doubling)
		for part := range time.Duration(4) {
			from, to := low+low/4*part, low+low/4*(part+1)-1
			want := uint(doubling)*4 + uint(part)
			if a, b := timeClass(from), timeClass(to); a != want || b != want {
				t.Errorf("classes of %v and %v: %d and %d, want %d", from, to, a, b, want)
			}
		}
	}
	for _, d := range []time.Duration{1 << 34, 1 << 40, math.MaxInt64} {
		if c := timeClass(d); c != timeClasses-1 {
			t.Errorf("class of %v: %d, want the last", d, c)
		}
	}
}

// An answer is recorded by the start of its attempt, to a millisecond, the first one too if it
// began at time zero; and successes by how long they usually take.
func TestAnswered(t *testing.T) {
	for _, began := range []time.Duration{0, 1, time.Millisecond - 1, time.Millisecond, time.Hour} {
		var a answered
		if a.latestStart() >= 0 || a.usualClass() != 0 {
			t.Fatalf("answered at %v before it was called, in %d", a.latestStart(), a.usualClass())
		}
		answer := func(began time.Duration) {
			if _, due := a.sinceLatest(began); due {
				a.record(began, unknownTime)
			}
			if a.usualClass() != 0 {
				t.Fatalf("after an answer that took no time the usual time is %d", a.usualClass())
			}
		}
		answer(began)
		if at := a.latestStart(); at > began || at <= began-startStep {
			t.Errorf("began at %v, and answered from %v", began, at)
		}
		for _, later := range []time.Duration{recordStep, 3 * recordStep} {
			answer(began + later)
			if at := a.latestStart(); at > began+later || at <= began+later-startStep {
				t.Errorf("began at %v, and answered from %v", began+later, at)
			}
		}
		answer(began)
		answer(began + 4*recordStep - startStep)
		if at := a.latestStart(); at > began+3*recordStep || at <= began+3*recordStep-startStep {
			t.Errorf("an earlier one was answered later, and one at about the same time, and it is answered from %v", at)
		}
	}
	var a answered
	for i, took := range []time.Duration{0, 20 * time.Millisecond, 20 * time.Millisecond, 25 * time.Millisecond, time.Second, time.Millisecond, time.Hour} {
		before := a.usualClass()
		a.record(time.Duration(i)*time.Second, took)
		want := before
		switch class := max(timeClass(took), 1); {
		case i == 0:
			want = class
		case class > before:
			want++
		case class < before:
			want--
		}
		if a.usualClass() != want {
			t.Errorf("after one of %v the usual class went from %d to %d", took, before, a.usualClass())
		}
		if at := a.latestStart(); at > time.Duration(i)*time.Second || at <= time.Duration(i)*time.Second-startStep {
			t.Errorf("it changes the time to %v", at)
		}
	}
}

// A state has one memory, even if a second goroutine needs it while the first makes it.
func TestAStateHasOneMemory(t *testing.T) {
	var s State
	var other *memory
	made := 0
	makeState(t, &s, Policy{}, Parts{Budget: func() budget.Budget {
		if made++; made == 1 {
			other = s.memory()
		}
		b, _ := budget.New(budget.Config{})
		return b
	}})
	if m := s.memory(); m != other || s.memory() != other || made != 2 {
		t.Errorf("%p and %p: two memories of one state", m, other)
	}
}

// An update is not lost if a call makes the first memory at the same time.
func TestAnUpdateWhileTheMemoryIsMade(t *testing.T) {
	for range 4000 {
		var s State
		makeState(t, &s, Policy{}, Parts{})
		var both sync.WaitGroup
		both.Go(func() { s.memory() })
		if err := s.Update(0, Policy{Attempts: 2}); err != nil {
			t.Fatal(err)
		}
		both.Wait()
		if got := s.Current().Plan().Attempts(); got != 2 {
			t.Fatalf("after an update to 2 attempts new calls make up to %d", got)
		}
	}
}

// An earlier use of a Call leaves nothing in it.
func TestStartInOverwritesTheCall(t *testing.T) {
	middle := func() uint64 { return 1 << 63 }
	var s State
	makeState(t, &s, Policy{Limit: bulkhead.Config{InFlight: 5}, Breaker: breaker.Config{FailureRate: 0.5}}, Parts{})
	var used Call
	for _, v := range []Verdict{{Kind: KindSuccess}, {Kind: KindTransient}, {Kind: KindPermanent}, {Kind: KindRateLimited, After: time.Hour}} {
		if no := s.StartIn(&used, 0, &Spec{}); no != Success {
			t.Fatal(no)
		}
		used.Attempt(0, middle)
		used.Next(0, v, middle)
		again, fresh := used, Call{}
		a := s.StartIn(&again, time.Second, &Spec{})
		b := s.StartIn(&fresh, time.Second, &Spec{})
		if again != fresh || a != b {
			t.Errorf("after %v:\n%+v, %+v, want\n%+v, %+v", v, again, a, fresh, b)
		}
		used.Abandon(0)
	}
}

// A recorded timeout survives an update.
func TestUpdateKeepsWhatTimedOut(t *testing.T) {
	var s State
	makeState(t, &s, Policy{}, Parts{})
	s.memory().recordTimeout(time.Second)
	if err := s.Update(0, Policy{Attempts: 2}); err != nil {
		t.Fatal(err)
	}
	s.memory().recordTimeout(0) // of a call that began under the old policy, and earlier
	if got := s.Current().memory().latestTimeout.Load(); got != int64(time.Second) {
		t.Errorf("after an update the latest attempt that timed out began at %d", got)
	}
}

func makeState(t *testing.T, s *State, p Policy, parts Parts) {
	t.Helper()
	plan, err := NewPlan(p, parts)
	if err != nil {
		t.Fatal(err)
	}
	plan.Init(s, nil)
}
