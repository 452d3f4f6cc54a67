package throttle

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
)

// A flight is a backend and its clients on explicit time, in steps of 10 ms: calls
// arrive at random, are asked for, wait, are sent, and are answered 100 ms later.
// Nothing is retried.
type flight struct {
	config   Config
	clients  int
	calls    float64                             // per second, of all clients
	capacity func(now time.Duration) float64     // accepted per second; above it, rate-limited
	down     func(now time.Duration) (down bool) // nobody answers
}

// seconds of a flight: what happened in each.
type log struct{ calls, sent, accepted, refused []int }

const (
	step    = 10 * time.Millisecond
	latency = 10 // steps
)

func (f flight) fly(t testing.TB, d time.Duration, seed uint64) log {
	plan := must.Have(Prepare(f.config))
	clients := make([]*Throttle, f.clients)
	for i := range clients {
		clients[i] = plan.New()
	}
	r := rand.New(rand.NewPCG(seed, 8))
	type answer struct {
		client  *Throttle
		outcome Evidence
	}
	n := int(d / step)
	sends := make([][]*Throttle, n+1)
	answers := make([][]answer, n+latency+1)
	var room float64 // of the backend
	l := log{make([]int, d/sec), make([]int, d/sec), make([]int, d/sec), make([]int, d/sec)}
	for i := range n {
		now := time.Duration(i) * step
		second := now / sec
		for _, a := range answers[i] {
			a.client.Done(now, a.outcome)
		}
		for range poisson(r, f.calls*step.Seconds()) {
			l.calls[second]++
			c := clients[r.IntN(len(clients))]
			wait, ok := c.Start(now, r.Uint64)
			if !ok {
				l.refused[second]++
				continue
			}
			if goes := i + int((wait+step-1)/step); goes <= n {
				sends[goes] = append(sends[goes], c)
			}
		}
		// Up to a tenth of a second's work can wait at the backend.
		capacity := f.capacity(now)
		room = min(room+capacity*step.Seconds(), max(1, capacity/10))
		for _, c := range sends[i] {
			l.sent[second]++
			o := RateLimited
			switch {
			case f.down != nil && f.down(now):
				o = Unanswered
			case room >= 1:
				room--
				o = Accepted
				l.accepted[second]++
			}
			answers[i+latency] = append(answers[i+latency], answer{c, o})
		}
		sends[i], answers[i] = nil, nil
	}
	return l
}

func poisson(r *rand.Rand, mean float64) int {
	n := 0
	for left := r.ExpFloat64(); left < mean; left += r.ExpFloat64() {
		n++
	}
	return n
}

func always(c float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return c }
}

func total(s []int, from, to int) (n float64) {
	for _, x := range s[from:to] {
		n += float64(x)
	}
	return n
}

// back is how many seconds after from it took until 95 % of the calls of five
// seconds were accepted.
func (l log) back(from int) int {
	for at := from; at+5 <= len(l.calls); at++ {
		if total(l.accepted, at, at+5) >= 0.95*total(l.calls, at, at+5) {
			return at - from
		}
	}
	return math.MaxInt32
}

// An overloaded backend gets about K attempts for each that it accepts, and accepts
// as many as it can.
func TestAdaptiveSendsKTimesTheAccepts(t *testing.T) {
	if raced {
		t.Skip("one goroutine: nothing for the race detector")
	}
	for _, c := range []struct {
		config    Config
		clients   int
		low, high float64 // attempts for each accept
	}{
		{Config{}, 1, 4.8, 5.2},
		{Config{Mode: Adaptive}, 1, 1.95, 2.05},
		{Config{Mode: Adaptive}, 1000, 1.95, 2.5}, // of 2.5 calls/s each
		{Config{Mode: Adaptive, K: 1.1}, 1, 1.09, 1.15},
		{Config{Mode: Adaptive, K: 3}, 10, 2.9, 3.15},
		{Config{Mode: Adaptive, Recent: DefaultWindow}, 1000, 1.97, 2.03},
	} {
		l := flight{config: c.config, clients: c.clients, calls: 2500, capacity: always(500)}.fly(t, 4*time.Minute, 1)
		got := total(l.sent, 180, 240) / total(l.accepted, 180, 240)
		used := total(l.accepted, 180, 240) / 60 / 500
		t.Logf("%+v, %d clients: %.3f attempts for each accept, %.3f of the capacity", c.config, c.clients, got, used)
		if got < c.low || got > c.high || used < 0.99 {
			t.Errorf("%+v, %d clients: %.3f attempts for each accept, want %v to %v, at %.3f of the capacity", c.config, c.clients, got, c.low, c.high, used)
		}
	}
}

// outage is a flight in which nobody answers for length seconds after 150.
func outage(c Config, clients int, calls float64, length int) flight {
	return flight{config: c, clients: clients, calls: calls, capacity: always(math.Inf(1)), down: func(now time.Duration) bool {
		return now >= 150*sec && now < time.Duration(150+length)*sec
	}}
}

// How soon a client is back after a total outage, as in the package comment:
// the first attempt passes within ProbeEvery, and their rate grows by e in about
// 1/1.6 of Recent. The floor of attempts while it lasts, as well.
func TestAdaptiveIsBackSoon(t *testing.T) {
	if raced {
		t.Skip("one goroutine: nothing for the race detector")
	}
	for _, c := range []struct {
		clients int
		calls   float64
		length  int
	}{{1, 5, 600}, {1, 500, 150}, {100, 500, 600}} {
		to := 150 + c.length
		l := outage(Config{Mode: Adaptive}, c.clients, c.calls, c.length).fly(t, time.Duration(to+180)*sec, 2)
		each := c.calls / float64(c.clients)
		back, limit := l.back(to), 30+10/1.6*math.Log(10*each)+10
		floor := total(l.sent, to-60, to) / 60 / float64(c.clients)
		t.Logf("%d clients, %v calls/s, outage of %d s: back after %d s, promised within %.0f; floor %.3f/s each", c.clients, c.calls, c.length, back, limit, floor)
		if float64(back) > limit {
			t.Errorf("%d clients, %v calls/s, outage of %d s: back after %d s, want %.0f at most", c.clients, c.calls, c.length, back, limit)
		}
		if c.length == 600 && (floor < 1./35 || floor > 0.25) {
			t.Errorf("%d clients, %v calls/s: %.3f attempts/s each in the outage", c.clients, c.calls, floor)
		}
	}
}

// Cubic comes near the capacity without knowing it, with few attempts in vain. With
// the fall of the SDKs at each rate-limited answer it stays far below.
func TestCubicComesNearTheCapacity(t *testing.T) {
	if raced {
		t.Skip("one goroutine: nothing for the race detector")
	}
	for _, c := range []struct {
		every   time.Duration
		clients int
		calls   float64
		low     float64 // share of the capacity
		high    float64
		vain    float64 // attempts for each accept, at most
	}{
		{0, 1, 5000, 0.7, 1, 1.1},
		{0, 10, 5000, 0.85, 1, 1.2},
		{0, 1000, 5000, 0.98, 1, 2.3}, // MinRate × clients is the capacity
		{-1, 1, 5000, 0, 0.4, 1.3},
		{-1, 1000, 5000, 0.98, 1, 2.1},
	} {
		f := flight{config: Config{Mode: Cubic, FallEvery: c.every}, clients: c.clients, calls: c.calls, capacity: always(500)}
		l := f.fly(t, 4*time.Minute, 4)
		used := total(l.accepted, 60, 240) / 180 / 500
		vain := total(l.sent, 60, 240) / total(l.accepted, 60, 240)
		t.Logf("FallEvery %v, %d clients, %v calls/s: %.3f of the capacity, %.3f attempts for each accept", c.every, c.clients, c.calls, used, vain)
		if used < c.low || used > c.high+0.01 || vain > c.vain {
			t.Errorf("FallEvery %v, %d clients, %v calls/s: %.3f of the capacity, %.3f attempts for each accept", c.every, c.clients, c.calls, used, vain)
		}
	}
}
