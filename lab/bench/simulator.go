package main

import (
	"container/heap"
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/lab/sim"
)

// The simulator's workload: clients that all fail at first. Each makes its first
// attempt at a random moment of the first 200 ms, in which the service is down;
// then it admits half as many attempts a second as there are clients and refuses
// the others at once. Up to four retries, full jitter from 100 ms. An event is one
// attempt with all that follows from it: the verdict, the decision, the wait.
const (
	stormDown    = 200 * time.Millisecond
	stormHorizon = 4 * time.Second
	stormTries   = 5
)

// stormResult is the result of a simulator.
type stormResult struct {
	attempts, successes int64
	took                time.Duration
}

// lullStorm flies the engine through it.
func lullStorm(clients int) (stormResult, error) {
	policy := lull.Policy{
		Attempts: stormTries, Timeouts: lull.TimeoutsAlways, RateLimitedBase: 1, Deadline: lull.NoTimeout, AttemptTimeout: lull.NoTimeout,
		Budget: budget.Config{Unlimited: true}, Breaker: breaker.Config{Off: true},
	}
	scenario := sim.Scenario{
		Horizon: stormHorizon,
		Services: []sim.Service{{
			Name: "service", Rate: sim.Rate{PerSecond: float64(clients) / 2, Burst: max(clients/2000, 1)},
			Faults: []sim.Fault{{Kind: sim.Errors, For: stormDown}},
		}},
		Fleets: []sim.Fleet{{Calls: "service", Processes: clients, Arrivals: sim.Arrivals{Kind: sim.AtOnce, Within: stormDown}}},
	}
	start := time.Now()
	r, err := sim.Run(context.Background(), scenario, sim.Contender{Name: "storm", Policy: policy}, sim.Options{Seed: 1})
	return stormResult{r.Totals.Attempts, r.Totals.Succeeded, time.Since(start)}, err
}

// heapStorm is the loop that one writes first: container/heap, and a closure for
// each event. Its policy is a formula.
func heapStorm(clients int) (stormResult, error) {
	start := time.Now()
	w := &heapWorld{gap: time.Second * 2 / time.Duration(clients)}
	for i := range clients {
		c := &heapClient{w: w, key: uint64(i) * 0x9e3779b97f4a7c15}
		w.at(time.Duration(c.random()%uint64(stormDown)), c.attempt)
	}
	for w.events.Len() > 0 {
		e := heap.Pop(&w.events).(*heapEvent)
		if e.at > stormHorizon {
			break
		}
		w.now = e.at
		e.do()
	}
	return stormResult{w.attempts, w.successes, time.Since(start)}, nil
}

type heapWorld struct {
	events              heapEvents
	now, full           time.Duration
	gap                 time.Duration // between two attempts that are admitted
	seq                 int64
	attempts, successes int64
}

func (w *heapWorld) at(t time.Duration, do func()) {
	w.seq++
	heap.Push(&w.events, &heapEvent{t, w.seq, do})
}

type heapClient struct {
	w     *heapWorld
	key   uint64
	tries int
}

func (c *heapClient) attempt() {
	w := c.w
	w.attempts++
	c.tries++
	if w.now >= stormDown {
		// A bucket of a 1000th of a second, as a theoretical arrival time.
		if w.full = max(w.full, w.now); w.full-w.now <= time.Millisecond {
			w.full += w.gap
			w.successes++
			return
		}
	}
	if c.tries < stormTries {
		wait := 100 * time.Millisecond << (c.tries - 1)
		w.at(w.now+time.Duration(c.random()%uint64(wait)), c.attempt)
	}
}

// random is SplitMix64.
func (c *heapClient) random() uint64 {
	c.key += 0x9e3779b97f4a7c15
	z := c.key
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

type heapEvent struct {
	at  time.Duration
	seq int64
	do  func()
}

type heapEvents []*heapEvent

func (h heapEvents) Len() int { return len(h) }
func (h heapEvents) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h heapEvents) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *heapEvents) Push(x any)   { *h = append(*h, x.(*heapEvent)) }
func (h *heapEvents) Pop() any {
	old := *h
	e := old[len(old)-1]
	*h = old[:len(old)-1]
	return e
}

// flyStorms measures both, on one core, from small to large. The heap is left out
// where it would take minutes.
func flyStorms(stdout, progress io.Writer, rounds int, most int) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	// As lull simulate does: what a run allocates it keeps, so there is little to
	// collect, and each collection looks at all of it.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	fmt.Fprintf(stdout, "Simulator: %s, one core; clients that fail for 200 ms and retry, full jitter, at most %d attempts\n", runtime.Version(), stormTries)
	table := [][]string{{"clients", "simulator", "attempts", "succeeded", "seconds", "M events/s", "ns/event", "MiB"}}
	for _, clients := range []int{100_000, 1_000_000, 10_000_000, 25_000_000} {
		if clients > most {
			break
		}
		for _, s := range []struct {
			name string
			fly  func(int) (stormResult, error)
			upTo int
		}{{"lull", lullStorm, most}, {"container/heap", heapStorm, 1_000_000}} {
			if clients > s.upTo {
				continue
			}
			var best stormResult
			var memory uint64
			for round := range rounds {
				runtime.GC() // the next round takes the memory of this one, which the system has given already
				before := allocated()
				r, err := s.fly(clients)
				if err != nil {
					return err
				}
				memory = max(memory, allocated()-before)
				if round == 0 || r.took < best.took {
					best = r
				}
				fmt.Fprintf(progress, "%d clients, %s, round %d/%d: %v\n", clients, s.name, round+1, rounds, r.took.Round(time.Millisecond))
			}
			table = append(table, []string{
				fmt.Sprint(clients), s.name, fmt.Sprint(best.attempts), fmt.Sprint(best.successes), fmt.Sprintf("%.2f", best.took.Seconds()),
				fmt.Sprintf("%.1f", float64(best.attempts)/best.took.Seconds()/1e6), fmt.Sprintf("%.0f", float64(best.took.Nanoseconds())/float64(best.attempts)),
				fmt.Sprint(memory >> 20),
			})
		}
	}
	_, err := io.WriteString(stdout, align(table, 2))
	return err
}

// allocated is all that was ever allocated: of a run that keeps what it allocates,
// about what it needs.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
