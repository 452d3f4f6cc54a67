package demo

import (
	"context"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/internal/check"
)

// A visit is an answer, and when it came. Status 0: the caller hung up before.
type visit struct {
	status int
	at     time.Duration
}

// visitors sends requests to a backend in virtual time.
type visitors struct {
	*backend
	wg  sync.WaitGroup
	mu  sync.Mutex // guards got
	got []visit    // in the order of the answers
}

// visited runs f with a backend, and returns the answers.
func visited(t *testing.T, s setting, f func(*visitors)) []visit {
	t.Helper()
	v := &visitors{}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		v.backend = newBackend(s, func() time.Duration { return time.Since(start) })
		f(v)
		v.wg.Wait()
		v.close()
	})
	return v.got
}

// send sends n requests at once, and returns when all that can happen at this moment has happened.
func (v *visitors) send(ctx context.Context, n int) {
	for range n {
		v.wg.Go(func() {
			w := httptest.NewRecorder()
			v.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
			v.mu.Lock()
			defer v.mu.Unlock()
			if ctx.Err() != nil {
				w.Code = 0
			}
			v.got = append(v.got, visit{w.Code, v.clock()})
		})
	}
	synctest.Wait()
}

// with counts the answers with a status.
func with(got []visit, status int) (n int) {
	for _, v := range got {
		if v.status == status {
			n++
		}
	}
	return n
}

func TestBackendHasItsCapacity(t *testing.T) {
	storms := tenSeconds()
	storms.Capacity, storms.Queue = 100, 4000
	tails := parse(t, "--scenario=tail", "--capacity=100", "--queue=2000")
	check.Equal(t, tails.workers(), 50, "workers that serve 100 a second of half a second each")
	for what, c := range map[string]struct {
		s           setting
		n           int
		slow        bool
		took, about float64
	}{
		"storm":     {storms, 4000, false, 40, 4}, // 4000 random service times: their mean is within 1.6 % two times in three
		"slow tail": {tails, 2000, true, 20, 1.5},
		"no tail":   {parse(t, "--scenario=tail", "--capacity=100", "--queue=2000", "--tail=0"), 2000, false, 0.4, 0.03},
	} {
		got := visited(t, c.s, func(v *visitors) {
			if c.slow {
				v.gate.close()
			}
			v.send(context.Background(), c.n)
		})
		if took := got[len(got)-1].at.Seconds(); with(got, 200) != c.n || math.Abs(took-c.took) > c.about {
			t.Errorf("%s: %d of %d served, in %.1f s; want %v s", what, with(got, 200), c.n, took, c.took)
		}
	}
}

func TestNothingLeavesAFrozenBackend(t *testing.T) {
	s := tenSeconds()
	s.Capacity, s.Queue = 100, 400
	sooner := 0
	got := visited(t, s, func(v *visitors) {
		v.send(context.Background(), 400)
		time.Sleep(time.Second)
		v.gate.close()
		time.Sleep(2 * time.Second)
		v.gate.open()
	})
	for _, a := range got {
		switch {
		case a.at < time.Second:
			sooner++
		case a.at > time.Second && a.at < 3*time.Second:
			t.Errorf("an answer at %v", a.at)
		}
	}
	if sooner == 0 || sooner == len(got) {
		t.Errorf("%d of %d were answered before it froze", sooner, len(got))
	}
	if last := got[len(got)-1].at; last < 5*time.Second || last > 7*time.Second {
		t.Errorf("the last answer came at %v; 4 s of work with a pause of 2 s end at about 6 s", last)
	}
}

func TestBackendQueueIsBounded(t *testing.T) {
	s := tenSeconds()
	s.Queue = 5
	got := visited(t, s, func(v *visitors) {
		v.gate.close()
		v.send(context.Background(), workers)
		v.send(context.Background(), s.Queue+7)
		if len(v.got) != 7 || with(v.got, 503) != 7 {
			t.Errorf("answers of a frozen backend: %v, want 7 times 503", v.got)
		}
		v.gate.open()
	})
	if with(got, 200) != workers+s.Queue || len(got) != workers+s.Queue+7 {
		t.Errorf("%d of %d are served, want %d", with(got, 200), len(got), workers+s.Queue)
	}
}

// Who has gone is served all the same: the next one waits for it.
func TestBackendServesWhoHasGone(t *testing.T) {
	s := tenSeconds()
	s.Queue = 1000
	const gone = 800
	got := visited(t, s, func(v *visitors) {
		ctx, hangUp := context.WithCancel(context.Background())
		v.send(ctx, gone)
		hangUp()
		v.send(context.Background(), 1)
	})
	if last := got[len(got)-1]; with(got, 0) != gone || last.status != 200 || last.at < 6*time.Second || last.at > 10*time.Second {
		t.Errorf("behind %d who have gone, the next one is served at %v with %d; want 200 after 8 s", with(got, 0), last.at, last.status)
	}
}

func TestBackendAnswers503WhileDown(t *testing.T) {
	s := tenSeconds()
	s.Kind = errors503
	got := visited(t, s, func(v *visitors) {
		v.gate.close()
		v.send(context.Background(), 10)
		check.Equal(t, with(v.got, 503), 10, "%v while it is down", v.got)
		v.gate.open()
		v.send(context.Background(), 10)
		check.Equal(t, total(v.counts.copy()[seen]), 20, "requests counted")
	})
	check.Equal(t, with(got, 200), 10, "served of 10 when it is up")
}

func TestTailServiceTimes(t *testing.T) {
	s := parse(t, "--scenario=tail", "--tail=0.1")
	luck := rand.New(rand.NewPCG(1, 1))
	const n = 100_000
	var quick, slow int
	var quickSum time.Duration
	for range n {
		switch d := tail.service(s, luck, false); {
		case d >= 7*ms && d <= 13*ms:
			quick++
			quickSum += d
		case d >= 350*ms && d <= 650*ms:
			slow++
		default:
			t.Fatalf("a request takes %v; want 7 to 13 or 350 to 650 ms", d)
		}
		if d := tail.service(s, luck, true); d < 350*ms || d > 650*ms {
			t.Fatalf("while everything is slow a request takes %v", d)
		}
	}
	// A tenth, with a standard deviation of 0.1 %. Six of those are one in a billion.
	if share := float64(slow) / n; math.Abs(share-0.1) > 0.006 {
		t.Errorf("%.3f of the requests are slow, want 0.1", share)
	}
	if mean := quickSum / time.Duration(quick); mean < 9900*time.Microsecond || mean > 10100*time.Microsecond {
		t.Errorf("the others take %v on average, want 10 ms", mean)
	}
}

func TestArrivals(t *testing.T) {
	s := tenSeconds()
	s.Duration, s.Load, s.Capacity = 1000*time.Second, 0.8, 100
	times := arrivals(s)
	if !slices.IsSorted(times) || times[0] < 0 || times[len(times)-1] >= s.Duration {
		t.Error("the moments are not in order, or not within the run")
	}
	// Poisson: 80 000 of them, with a standard deviation of 283. Six of those are one in a billion.
	if n := float64(len(times)); math.Abs(n-80_000) > 6*283 {
		t.Errorf("%v arrivals, want about 80000", n)
	}
	// As many gaps are longer than the mean as an exponential distribution has.
	long := 0
	for i := 1; i < len(times); i++ {
		if times[i]-times[i-1] > 12500*time.Microsecond {
			long++
		}
	}
	if share := float64(long) / float64(len(times)); math.Abs(share-1/math.E) > 0.01 {
		t.Errorf("%.3f of the gaps are longer than the mean, want 1/e", share)
	}
	check.Slices(t, times, arrivals(s), "arrivals with the same seed")
	s.Seed++
	if slices.Equal(times, arrivals(s)) {
		t.Error("another seed gave the same moments")
	}
}

func TestDrive(t *testing.T) {
	for what, c := range map[string]struct {
		after, end time.Duration // it starts, and its context ends
		times      []time.Duration
		late       lateness
	}{
		"each call begins at its time":         {0, time.Hour, []time.Duration{0, 10 * ms, 10 * ms, 700 * ms}, lateness{0, 0, 0, 0}},
		"a late start does not hold back more": {500 * ms, time.Hour, []time.Duration{100 * ms, 200 * ms, 600 * ms}, lateness{400 * ms, 300 * ms, 0}},
		"it ends with its context":             {0, time.Second, []time.Duration{0, time.Hour}, lateness{0}},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			clock := func() time.Duration { return time.Since(start) }
			time.Sleep(c.after)
			ctx, cancel := context.WithTimeout(t.Context(), c.end)
			defer cancel()
			var began lateness
			late := beginCalls(ctx, clock, c.times, func() { began = append(began, max(0, clock()-c.times[len(began)])) })
			if !slices.Equal(late, c.late) || !slices.Equal(began, c.late) || clock() > max(time.Second, c.times[len(c.late)-1]) {
				t.Errorf("%s: late by %v, begun by %v, over after %v; want %v", what, late, began, clock(), c.late)
			}
		})
	}
}
