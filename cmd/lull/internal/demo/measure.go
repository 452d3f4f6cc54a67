package demo

import (
	"math"
	"slices"
	"time"
)

// How the figures are defined. definitions says the same in words; change both.
const (
	peakWindow     = 500 * time.Millisecond
	recoveryWindow = time.Second
	recoveryShare  = 0.95
)

// A callRecord is one call that ended, as its caller saw it.
type callRecord struct {
	start time.Duration
	took  time.Duration
	ok    bool
	sent  int // requests
}

// figures are what the demo reports of one client. The names are those of the
// JSON output.
type figures struct {
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
	Recovery      *float64 `json:"recovery_ms"` // nil: not within the run
}

// measure works out the figures of one client: started calls, those of them
// that ended, and the attempts that its backend saw, in ticks. end is when the
// last call could begin.
func measure(s setting, end time.Duration, name string, started int, ended []callRecord, seen []int) figures {
	attempts := 0
	for _, n := range seen {
		attempts += n
	}
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
	normal := ratio(float64(sum(seen, 0, normalFor)), normalFor.Seconds())
	peak := peakRate(seen)
	f := figures{
		Name:          name,
		Calls:         started,
		Attempts:      attempts,
		Amplification: round(ratio(float64(attempts), float64(started)), 4),
		NormalRPS:     round(normal, 1),
		PeakRPS:       round(peak, 1),
		PeakRatio:     round(ratio(peak, normal), 2),
		SuccessRate:   round(ratio(float64(good), float64(len(ended))), 4),
		P50:           milliseconds(percentile(took, 50)),
		P99:           milliseconds(percentile(took, 99)),
	}
	if d, ok := recovery(s, end, ended); ok {
		ms := milliseconds(d)
		f.Recovery = &ms
	}
	return f
}

// percentile of sorted times, by nearest rank; 0 if there are none.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1]
}

// peakRate is the most attempts per second over any peakWindow, in steps of a tick.
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

// recovery is the time from the end of the outage to the first moment from which
// on every window of calls, up to the end of the run, is as good as before:
// recoveryShare of the share that succeeded before the outage. Windows hold the
// calls that began in them, and move on by a tick. Empty windows are no evidence,
// neither of good nor of bad. False if there is no such moment.
func recovery(s setting, end time.Duration, ended []callRecord) (time.Duration, bool) {
	n := max(0, int(end/tick))
	calls, good := make([]int, n), make([]int, n)
	before, goodBefore := 0, 0
	for _, c := range ended {
		if c.start < s.normalEnd() {
			before++
			if c.ok {
				goodBefore++
			}
		}
		if i := int(c.start / tick); i < n {
			calls[i]++
			if c.ok {
				good[i]++
			}
		}
	}
	if goodBefore == 0 {
		return 0, false
	}
	enough := recoveryShare * float64(goodBefore) / float64(before)
	last := end - recoveryWindow
	found, ok := time.Duration(0), false
	for from := last.Truncate(tick); from >= s.outageEnd(); from -= tick {
		all, fine := sum(calls, from, from+recoveryWindow), sum(good, from, from+recoveryWindow)
		if float64(fine) < enough*float64(all) {
			break
		}
		if all > 0 {
			found, ok = from-s.outageEnd(), true
		}
	}
	return found, ok
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func round(v float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(v*scale) / scale
}

func milliseconds(d time.Duration) float64 {
	return round(float64(d)/float64(time.Millisecond), 1)
}
