package sim

import (
	"testing"
	"time"

	"github.com/lullgo/lull/server/admission"
)

// A heap has room for three attempts above the live million bytes. The fourth makes a collection of
// 1 ms for each million bytes in use, and all that is worked on is later by as much.
func TestCollectionStopsTheWork(t *testing.T) {
	at := time.Second
	s := Scenario{
		Horizon: 10 * time.Second, Step: millisecond,
		Services: []Service{{Name: "api", Time: fixed(100 * millisecond), Heap: Heap{Size: 4e6, Live: 1e6, PerAttempt: 500_000, Garbage: 500_000, Pause: 10 * millisecond}}},
		Fleets:   callsAt(at, at, at, 1050*millisecond, 2*at),
	}
	s.Services[0].Workers = 10
	r := play(t, s, once())
	// In use at 1.05 s: one million, and four attempts of half a million: 30 ms. The heap has three
	// million bytes then, and four with the attempt at 2 s.
	wantTimes(t, "done", moments(r.Series, r.Series.Goodput), 1130*millisecond, 1130*millisecond, 1130*millisecond, 1180*millisecond, 2100*millisecond)
	want(t, "collections", r.Totals.Collections, 1)
	want(t, "paused", r.Totals.Paused, 30*millisecond)
}

// Work that begins in a pause begins at its end.
func TestWorkBeginsAfterThePause(t *testing.T) {
	at := time.Second
	s := Scenario{
		Horizon: 10 * time.Second, Step: millisecond,
		Services: []Service{{Name: "api", Workers: 5, Time: fixed(100 * millisecond), Heap: Heap{Size: 2e6, Live: 1e6, PerAttempt: 1, Garbage: 999_999, Pause: 50 * millisecond}}},
		Fleets:   callsAt(at, at+millisecond, at+20*millisecond),
	}
	r := play(t, s, once())
	// The second fills the heap: 50 ms until 1.051 s, when it begins; the third, too, after another 50.
	wantTimes(t, "done", moments(r.Series, r.Series.Goodput), 1200*millisecond, 1201*millisecond, 1201*millisecond)
	want(t, "collections", r.Totals.Collections, 2)
}

// Three attempts at once are more than the memory.
func TestOutOfMemory(t *testing.T) {
	at := time.Second
	s := Scenario{
		Horizon: 20 * time.Second, Step: 10 * millisecond,
		Services: []Service{{Name: "api", Workers: 5, Time: fixed(100 * millisecond), Heap: Heap{Size: 2e6, PerAttempt: 1e6, Restart: 2 * time.Second}}},
		Fleets:   callsAt(at, at, at, 2*at, 2999*millisecond, 3*at),
	}
	r := play(t, s, once())
	want(t, "crashes", r.Totals.OutOfMemory, 1)
	want(t, "failed", r.Totals.AttemptsFailed, 5)
	want(t, "last", r.Totals.Last, 3100*millisecond)
}

// A host that runs out of memory when the gate lets an attempt in answers each attempt once.
func TestOutOfMemoryBehindTheGate(t *testing.T) {
	s := gated1(admission.Config{}, 1000, 1010, 1020, 1030)
	s.Services[0].Heap = Heap{Size: 1e6, Live: 500_000, PerAttempt: 200_000, Garbage: 300_000, Restart: time.Second}
	w, r := playWorld(t, s, Contender{Policy: once()}, Options{})
	want(t, "crashes", r.Totals.OutOfMemory, 1)
	wantDone(t, "before", r, [2]int{1100, 100})
	lost := 1100 * millisecond
	wantTimes(t, "lost", moments(r.Series, r.Series.Failed), lost, lost, lost)
	want(t, "jobs left", w.jobs.inUse(), 0)
	want(t, "visitors left", w.visitors.inUse(), 0)
}
