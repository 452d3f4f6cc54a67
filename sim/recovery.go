package sim

import "time"

const (
	recoveredShare = 0.95 // of the normal share of successes
	recoveredFor   = 5    // windows
)

// disturbance is when the first fault or change of the arrival rate begins (the
// horizon if none does), and when the last ends: to is 0 if nothing happens, or if
// it lasts to the end.
func (s *Scenario) disturbance() (from, to time.Duration) {
	from = s.Horizon
	for i := range s.Services {
		for j := range s.Services[i].Faults {
			s.Services[i].Faults[j].occurrences(s.Horizon, func(a, b time.Duration) {
				from, to = min(from, a), max(to, b)
			})
		}
	}
	for i := range s.Fleets {
		ramp := s.Fleets[i].Arrivals.Ramp
		if len(ramp) > 1 {
			from, to = min(from, ramp[0].At), max(to, ramp[len(ramp)-1].At)
		}
	}
	for i := range s.Topics {
		c := &s.Topics[i].Consumers
		for k := range c.Kills {
			c.Kills[k].each(c, s.Horizon, func(_ int, at time.Duration) {
				from, to = min(from, at), max(to, at+c.Kills[k].For)
			})
		}
	}
	if to >= s.Horizon || to == 0 {
		return min(from, s.Horizon), 0
	}
	return from, to
}

// normal is the share of calls that succeed before the disturbance; 1 if there
// are none.
func (r *recorder) normal() float64 {
	var calls, succeeded int64
	for i := range r.bins {
		at := time.Duration(i) * r.window
		if at >= r.warm && at+r.window <= r.from {
			calls += r.bins[i].calls
			succeeded += r.bins[i].succeeded
		}
	}
	if calls == 0 {
		return 1
	}
	return float64(succeeded) / float64(calls)
}

// recovered finds the first window after the disturbance from which on things are
// normal, as far as is known now.
func (r *recorder) recovered(now time.Duration) (since time.Duration, ok bool) {
	enough := recoveredShare * r.normal()
	first := int((r.to + r.window - 1) / r.window)
	var calls, succeeded int64
	for i := first; i < len(r.bins) && time.Duration(i+1)*r.window <= now; i++ {
		b := &r.bins[i]
		calls += b.calls
		succeeded += b.succeeded
		if i < first+recoveredFor-1 {
			continue
		}
		if calls > 0 && float64(succeeded) >= float64(enough*float64(calls)) {
			if i == first+recoveredFor-1 {
				return r.to, true
			}
			return time.Duration(i-recoveredFor+1) * r.window, true
		}
		calls -= r.bins[i-recoveredFor+1].calls
		succeeded -= r.bins[i-recoveredFor+1].succeeded
	}
	return 0, false
}

// recovery is the whole of it, at the end of a run.
func (r *recorder) recovery(end time.Duration) Recovery {
	if r.to == 0 || end <= r.to {
		return Recovery{}
	}
	v := Recovery{Measured: true, From: r.to, Normal: r.normal()}
	// The last tenth; calls that have not ended count as they stand, but the last
	// windows of a run are left out until most of their calls have ended.
	last := int(end/r.window) - 1
	back := int((r.to + r.window - 1) / r.window)
	for last > back && r.bins[last].ended < r.bins[last].calls {
		last--
	}
	n := max(int((end-r.to)/r.window)/10, 1)
	since, ok := r.recovered(end)
	first := max(last-n+1, min(back, last), 0)
	if ok { // a run that was stopped early has not much to look at
		first = max(first, min(int(since/r.window), last))
	}
	var calls, succeeded int64
	for i := first; i <= last; i++ {
		calls += r.bins[i].calls
		succeeded += r.bins[i].succeeded
	}
	v.Final = v.Normal // if nobody called any more
	if calls > 0 {
		v.Final = float64(succeeded) / float64(calls)
	}
	if ok && v.Final >= recoveredShare*v.Normal {
		v.Recovered, v.Time = true, max(since-r.to, 0)
	}
	return v
}
