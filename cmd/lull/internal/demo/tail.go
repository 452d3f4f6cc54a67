package demo

import (
	"math/rand/v2"
	"time"
)

// What is common to all backends of the scenario tail. A request takes tailMedian,
// give or take tailSpread of it; a slow one tailFactor times as long. While a
// backend's gate is shut all are slow.
const (
	tailMedian = 10 * time.Millisecond
	tailSpread = 0.3
	tailFactor = 50
	slowMedian = tailFactor * tailMedian

	// The longest that a request takes where none must wait, and the least that a slow
	// one takes.
	slowest      = slowMedian * (10 + 10*tailSpread) / 10
	quickestSlow = slowMedian * (10 - 10*tailSpread) / 10
)

// workers of a backend.
func (s setting) workers() int {
	if s.Scenario != tail {
		return workers
	}
	// As many as serve Capacity requests a second when all are slow, for that is
	// when capacity counts: otherwise they serve 25 times as many.
	return max(1, int(float64(s.Capacity)*slowMedian.Seconds()+0.5))
}

// tailQueue is so short that whoever still finds room in it is served before its
// timeout, by default. So what is refused is refused at once, and what is not is
// a slow success: the two that a client must tell apart.
func (s setting) tailQueue() int { return s.workers() }

// tailService draws the time that a request takes.
func (s setting) tailService(luck *rand.Rand, allSlow bool) time.Duration {
	spread := 1 + tailSpread*(2*luck.Float64()-1)
	if luck.Float64() < s.Tail || allSlow {
		return time.Duration(spread * float64(slowMedian))
	}
	return time.Duration(spread * float64(tailMedian))
}
