package demo

import (
	"slices"
	"time"
)

// stormDefinitions describe the figures; change both.
const (
	peakWindow     = 500 * time.Millisecond
	recoveryWindow = time.Second
	recoveryShare  = 0.95
)

// stormFigures are the figures of one client, as they are in JSON.
type stormFigures struct {
	Name          string   `json:"name"`
	Calls         int      `json:"calls"`
	Attempts      int      `json:"attempts"`
	Amplification float64  `json:"amplification"`
	NormalRPS     float64  `json:"normal_rps"`
	PeakRPS       float64  `json:"peak_rps"`
	PeakRatio     float64  `json:"peak_ratio"`
	SuccessRate   float64  `json:"success_rate"`
	P50           float64  `json:"p50_ms"`
	P99           float64  `json:"p99_ms"`
	Recovery      *float64 `json:"recovery_ms"` // nil if not within the run
}

func (stormScenario) measure(r *result, l *lane) {
	r.retriers = append(r.retriers, measure(r.setting, r.measured, l.name, l.ended, l.backend.counts.copy()))
}

// measure returns the figures of one client. end is when the last call could begin.
func measure(s setting, end time.Duration, name string, ended []callRecord, n counts) stormFigures {
	calls, attempts := total(n[begun]), total(n[seen])
	took := make([]time.Duration, len(ended))
	good := 0
	for i, c := range ended {
		took[i] = c.took
		if c.ok {
			good++
		}
	}
	slices.Sort(took)
	normalFor := min(s.normalEnd(), end).Truncate(tick)
	normal := ratio(float64(sum(n[seen], 0, normalFor)), normalFor.Seconds())
	peak := peakRate(n[seen])
	return stormFigures{
		Name:          name,
		Calls:         calls,
		Attempts:      attempts,
		Amplification: round(ratio(float64(attempts), float64(calls)), 4),
		NormalRPS:     round(normal, 1),
		PeakRPS:       round(peak, 1),
		PeakRatio:     round(ratio(peak, normal), 2),
		SuccessRate:   round(ratio(float64(good), float64(len(ended))), 4),
		P50:           milliseconds(percentile(took, 50)),
		P99:           milliseconds(percentile(took, 99)),
		Recovery:      knownMilliseconds(recovery(s, end, ended)),
	}
}

// percentile returns a percentile of sorted times by nearest rank, 0 if there are none.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1]
}

// peakRate returns the most attempts per second in any peakWindow, in steps of a tick.
func peakRate(seen []int) float64 {
	width := int(peakWindow / tick)
	most, inside := 0, 0
	for i, n := range seen {
		inside += n
		if i >= width {
			inside -= seen[i-width]
		}
		most = max(most, inside)
	}
	return float64(most) / peakWindow.Seconds()
}

// recovery returns the time to recover: until calls succeed at least recoveryShare as often
// as before the outage.
func recovery(s setting, end time.Duration, ended []callRecord) (time.Duration, bool) {
	before, succeeded := 0, 0
	for _, c := range ended {
		if c.start < s.normalEnd() {
			before++
			if c.ok {
				succeeded++
			}
		}
	}
	if succeeded == 0 {
		return 0, false
	}
	share := recoveryShare * float64(succeeded) / float64(before)
	return s.recovered(end, recoveryWindow, ended,
		func(c callRecord) bool { return c.ok },
		func(succeeded, all int) bool { return float64(succeeded) >= share*float64(all) })
}
