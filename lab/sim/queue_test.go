package sim

import (
	"runtime/debug"
	"testing"
	"time"

	"github.com/lullgo/lull/engine"
)

// one is a worker that takes 100 ms, with a queue before it, and calls at the
// given milliseconds.
func one(q Queue, at ...int) Scenario {
	s := Scenario{
		Horizon: 3 * time.Second, Step: millisecond,
		Services: []Service{{Name: "api", Workers: 1, Queue: q, Time: fixed(100 * millisecond)}},
	}
	for _, at := range at {
		s.Fleets = append(s.Fleets, callsAt(time.Duration(at)*millisecond)...)
	}
	return s
}

// patient gives the calls of s timeouts, in milliseconds.
func patient(s Scenario, timeouts ...int) Scenario {
	for i := range s.Fleets {
		s.Fleets[i].AttemptTimeout = time.Duration(timeouts[min(i, len(timeouts)-1)]) * millisecond
	}
	return s
}

// wantDone compares when calls were done and how long each took, in milliseconds.
func wantDone(t *testing.T, what string, r Result, want ...[2]int) {
	t.Helper()
	var times []time.Duration
	for _, w := range want {
		times = append(times, time.Duration(w[0])*millisecond)
	}
	wantTimes(t, what+": done", moments(r.Series, r.Series.Goodput), times...)
	for _, w := range want {
		took := r.Series.P50[w[0]].Milliseconds()
		if off := took - int64(w[1]); off < -3 || off > 3 { // the histogram is coarse
			t.Errorf("%s: the call done at %d ms took %d ms, want %d", what, w[0], took, w[1])
		}
	}
}

func TestQueueOrders(t *testing.T) {
	five := []int{1000, 1010, 1020, 1030, 1040}
	r := play(t, one(Queue{Limit: 2}, five...), once())
	wantDone(t, "fifo", r, [2]int{1100, 100}, [2]int{1200, 190}, [2]int{1300, 280})
	wantTimes(t, "fifo: refused", moments(r.Series, r.Series.Failed), 1030*millisecond, 1040*millisecond)
	want(t, "queue full", r.Totals.QueueFull, 2)

	// The second makes room for the fourth, the third for the fifth.
	r = play(t, one(Queue{Limit: 2, Order: LIFO}, five...), once())
	wantDone(t, "lifo", r, [2]int{1100, 100}, [2]int{1200, 160}, [2]int{1300, 270})
	wantTimes(t, "lifo: refused", moments(r.Series, r.Series.Failed), 1030*millisecond, 1040*millisecond)
	want(t, "queue full", r.Totals.QueueFull, 2)

	for _, order := range []Order{FIFO, LIFO} {
		r = play(t, one(Queue{Order: order}, five...), once())
		want(t, "no queue: refused", r.Totals.QueueFull, 4)
	}
}

// A refusal has the verdict and the hint that the queue is configured with.
func TestQueueRefusals(t *testing.T) {
	r := play(t, one(Queue{RetryAfter: 500 * millisecond}, 1000, 1010), retrying(2, millisecond))
	at := moments(r.Series, r.Series.Retries)
	if len(at) != 1 || at[0] < 1510*millisecond || at[0] > 1760*millisecond {
		t.Errorf("retry at %v, want one 500 to 750 ms after 1.01 s", at)
	}
	r = play(t, one(Queue{DontRetry: true}, 1000, 1010), retrying(2, millisecond))
	want(t, "told not to retry", r.reason(engine.Overloaded), 1)
	// Who retries at once finds the worker free that has just become so.
	r = play(t, one(Queue{}, 1000, 1000), retrying(2, 100*millisecond))
	want(t, "successes", r.Totals.Succeeded, 2)
}

func TestExpiredWorkIsDropped(t *testing.T) {
	// The second begins at 1.1 s, its caller goes at 1.16; the third would begin at
	// 1.2 s, its caller went at 1.17.
	r := play(t, patient(one(Queue{Limit: 5}, 1000, 1010, 1020), 150), once())
	want(t, "wasted", r.Totals.Wasted, 2)
	want(t, "dropped", r.Totals.Dropped, 0)
	wantTimes(t, "gone", moments(r.Series, r.Series.Failed), 1160*millisecond, 1170*millisecond)
	wantTimes(t, "wasted", moments(r.Series, r.Series.Wasted), 1200*millisecond, 1300*millisecond)
	r = play(t, patient(one(Queue{Limit: 5, DropExpired: true}, 1000, 1010, 1020), 150), once())
	want(t, "wasted", r.Totals.Wasted, 1)
	want(t, "dropped", r.Totals.Dropped, 1)
	want(t, "timed out", r.Totals.AttemptsTimedOut, 2)
}

func TestWorkForThoseWhoHaveGoneIsCancelled(t *testing.T) {
	// The second begins at 1.1 s and its caller goes at 1.16 s; then the third
	// begins, whose caller goes at 1.17 s; the fourth comes at 1.18 s.
	s := patient(one(Queue{Limit: 5}, 1000, 1010, 1020, 1180), 150)
	r := play(t, s, once())
	want(t, "without: wasted", r.Totals.Wasted, 3)
	want(t, "without: succeeded", r.Totals.Succeeded, 1)
	s.Services[0].CancelWork = true
	w, r := playWorld(t, s, Contender{Policy: once()}, Options{})
	want(t, "wasted", r.Totals.Wasted, 0)
	wantDone(t, "cancelled", r, [2]int{1100, 100}, [2]int{1280, 100})
	want(t, "busy", w.services[0].hosts[0].busy, 0)
	want(t, "jobs left", w.jobs.inUse(), 0)

	// The second waits, and goes at 1.03 s: it is skipped, and took no room after.
	for _, order := range []Order{FIFO, LIFO} {
		s = patient(one(Queue{Limit: 1, Order: order}, 1000, 1010, 1050), 1000, 20, 1000)
		s.Services[0].CancelWork = true
		w, r = playWorld(t, s, Contender{Policy: once()}, Options{})
		wantDone(t, "skipped", r, [2]int{1100, 100}, [2]int{1200, 150})
		want(t, "queue full", r.Totals.QueueFull, 0)
		want(t, "jobs left", w.jobs.inUse(), 0)
	}

	// Nobody has gone before the crash at 1.02 s but the second; its entry goes, too.
	s = patient(one(Queue{Limit: 2}, 1000, 1005, 1006), 1000, 10, 1000)
	s.Services[0].CancelWork = true
	s.Services[0].Faults = []Fault{{Kind: Crash, At: 1020 * millisecond, For: 10 * millisecond}}
	w, r = playWorld(t, s, Contender{Policy: once()}, Options{})
	want(t, "lost", r.Totals.AttemptsFailed, 2)
	want(t, "jobs left", w.jobs.inUse(), 0)
	want(t, "queue", w.services[0].hosts[0].queue.len(), 0)

	// A request whose caller goes while it is on its way is not worked on.
	s = patient(one(Queue{}, 1000), 50)
	s.Services[0].CancelWork = true
	s.Fleets[0].Network.Latency = fixed(60 * millisecond)
	w, r = playWorld(t, s, Contender{Policy: once()}, Options{})
	want(t, "wasted", r.Totals.Wasted, 0)
	want(t, "jobs left", w.jobs.inUse(), 0)

	// The very first request is lost: there is nothing to cancel.
	s.Fleets[0].Network = Network{Loss: 1}
	want(t, "timed out", play(t, s, once()).Totals.AttemptsTimedOut, 1)

	// Nor is that of a service without a number of workers, whatever is before them.
	s = patient(one(Queue{}, 1000), 50)
	s.Services[0] = Service{Name: "api", CancelWork: true, Time: fixed(time.Second), Rate: Rate{PerSecond: 100}}
	s.Fleets[0].Network.Latency = fixed(millisecond)
	w, r = playWorld(t, s, Contender{Policy: once()}, Options{})
	want(t, "wasted", r.Totals.Wasted, 0)
	want(t, "jobs left", w.jobs.inUse(), 0)

	// A contended service has no workers to give back.
	s = patient(one(Queue{}, 1000), 50)
	s.Services[0] = Service{Name: "api", Contention: true, CancelWork: true}
	s.Fleets[0].Network.Latency = fixed(20 * millisecond)
	w, _ = playWorld(t, s, Contender{Policy: once()}, Options{})
	want(t, "busy", w.services[0].hosts[0].busy, 0)

	// Where there are as many workers as it takes, work is no waste either.
	s = patient(one(Queue{}, 1000), 50)
	s.Services[0].Workers = 0
	want(t, "wasted without", play(t, s, once()).Totals.Wasted, 1)
	s.Services[0].CancelWork = true
	want(t, "wasted with", play(t, s, once()).Totals.Wasted, 0)
}

// An attempt that takes as long as it may is in time, and one that takes longer
// ends when the time is up, not later; so does one whose caller has less patience.
func TestTimeoutsAreExact(t *testing.T) {
	for _, workers := range []int{0, 100} {
		s := patient(one(Queue{}, 1000), 100)
		s.Services[0].Workers = workers
		want(t, "in time", play(t, s, once()).Totals.Succeeded, 1)
		s.Fleets[0].AttemptTimeout--
		r := play(t, s, once())
		want(t, "timed out", r.Totals.AttemptsTimedOut, 1)
		want(t, "at", r.Totals.Last, 1100*millisecond-1)
		want(t, "wasted", r.Totals.Wasted, 1)

		s.Fleets[0].Deadline = 30 * millisecond
		r = play(t, s, retrying(2, 0))
		want(t, "at the deadline", r.Totals.Last, 1030*millisecond)
		want(t, "deadline reached", r.reason(engine.Deadline), 1)
		want(t, "attempts", r.Totals.Attempts, 1)

		// 40 ms for each attempt, 100 ms for the call: the third gets what is left.
		s.Fleets[0].AttemptTimeout, s.Fleets[0].Deadline = 40*millisecond, 100*millisecond
		r = play(t, s, retrying(5, 0))
		wantTimes(t, "retries", moments(r.Series, r.Series.Retries), 1040*millisecond, 1080*millisecond)
		want(t, "last", r.Totals.Last, 1100*millisecond)
	}
}

// A queue whose every attempt ends in the moment in which it begins needs no more
// stack than another.
func TestLongQueueDrainsAtOnce(t *testing.T) {
	const calls = 100_000
	defer debug.SetMaxStack(debug.SetMaxStack(4 << 20))
	r := play(t, Scenario{
		Horizon: 2 * time.Second,
		Services: []Service{
			{Name: "api", Workers: 1, Queue: Queue{Limit: calls}, Calls: []Hop{{Service: "down", Policy: "none"}},
				Faults: []Fault{{Kind: BrownOut, At: 0, For: time.Second, Share: 1e-9}}},
			{Name: "down", Errors: 1},
		},
		Fleets: []Fleet{{Calls: "api", Arrivals: Arrivals{Kind: AtOnce, At: 500 * millisecond, Each: calls}}},
	}, once())
	want(t, "failed", r.reason(engine.AttemptsExhausted), calls)
	want(t, "last", r.Totals.Last, time.Second)
}
