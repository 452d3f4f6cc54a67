package demo

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

// arrivals returns the times at which calls begin: a Poisson process, as of many users who
// know nothing of each other. They do not wait for earlier calls to end. Every client gets
// the same arrivals.
func arrivals(s setting) []time.Duration {
	random := rand.New(rand.NewPCG(s.Seed, 0))
	mean := float64(time.Second) / s.offered()
	var times []time.Duration
	for at := 0.0; ; {
		at += random.ExpFloat64() * mean
		if at >= float64(s.Duration) {
			return times
		}
		times = append(times, time.Duration(at))
	}
}

// lateness is how long after its time each call began. It shows whether this machine could
// keep up with the demo.
type lateness []time.Duration

// p99 returns the lateness that one call in a hundred exceeds.
func (l lateness) p99() time.Duration {
	sorted := slices.Clone(l)
	slices.Sort(sorted)
	return percentile(sorted, 99)
}

// beginCalls calls begin at each of the times. It ends after the last one, or when ctx ends. It returns how late each call was.
func beginCalls(ctx context.Context, clock func() time.Duration, times []time.Duration, begin func()) lateness {
	late := make(lateness, 0, len(times))
	for _, at := range times {
		if !sleepUntil(ctx, clock, at) {
			break
		}
		late = append(late, max(0, clock()-at))
		begin()
	}
	return late
}
