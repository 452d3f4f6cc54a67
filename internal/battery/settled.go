package battery

import (
	"math"
	"time"

	"github.com/lullgo/lull/sim"
)

// settled is how long after the outage it took until of the calls of any five seconds from
// then on 95 % of the normal share succeeded, as far as chance allows to say.
func settled(s *sim.Series, from, to time.Duration) (time.Duration, bool) {
	const (
		share  = 0.95
		window = 5
		unsure = 15 // at the end of a run: calls that may not have ended
		chance = 4  // standard deviations
	)
	normal := usual(s, from)
	step := s.Step
	first := int((to + step - 1) / step)
	back := first
	last := len(s.Calls) - unsure
	for i := first; i+window <= last; i++ {
		var calls, good float64
		for k := i; k < i+window; k++ {
			calls += s.Calls[k]
			good += s.Calls[k] * s.Good[k]
		}
		if good+chance*math.Sqrt(calls*normal*(1-normal)) < share*normal*calls {
			back = i + 1
		}
	}
	if back+window > last {
		return 0, false
	}
	return max(time.Duration(back)*step-to, 0), true
}

// usual is the share of calls that succeed before the outage, by the rule of succession.
func usual(s *sim.Series, from time.Duration) float64 {
	calls, good := 2.0, 1.0
	for i := 0; i < min(int(from/s.Step), len(s.Calls)); i++ {
		calls += s.Calls[i] * s.Step.Seconds()
		good += s.Calls[i] * s.Good[i] * s.Step.Seconds()
	}
	return good / calls
}
