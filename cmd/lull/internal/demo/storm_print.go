package demo

import (
	"fmt"
	"io"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/term"
)

// stormDefinitions describe what storm_figures.go computes.
const stormDefinitions = `What the figures mean
  attempts    requests that reached the backend, counted there; the rest is what
              callers saw
  normal      attempts per second before the outage; peak: in the busiest 500 ms
  success     share of calls that ended with a 200, whatever it took
  p50, p99    time until a caller had a result, be it a success or a failure
  back after  time from the end of the outage to the moment from which on each
              second of calls succeeds 95 % as often as before the outage, and
              does so up to the end of the run
`

func (stormScenario) describe(s setting) [][2]string {
	outage := "none"
	switch {
	case s.Outage == 0:
	case s.Kind == stall:
		outage = fmt.Sprintf("%v, from second %v: workers freeze, requests queue", s.Outage, s.OutageAt.Seconds())
	default:
		outage = fmt.Sprintf("%v, from second %v: every request gets a 503 at once", s.Outage, s.OutageAt.Seconds())
	}
	return [][2]string{
		{"backend", fmt.Sprintf("capacity %d a second (%.2f in use): %d workers, %v a request", s.Capacity, s.Load, workers, s.service().Round(time.Microsecond))},
		{"", fmt.Sprintf("on average, queue of %d (beyond: 503); serves even who has gone", s.Queue)},
		{"outage", outage},
		{"attempts", fmt.Sprintf("time out after %v", s.Timeout)},
	}
}

const (
	stormHead = `
                              per   attempts/s                p50   p99   back
client         calls attempts call normal  peak ratio success  ms    ms  after
`
	stormRow = "%-14s %5d %8d %4.2f %6.0f %5.0f %5.1f %6.1f%% %5.0f %5.0f %6s\n"
)

func (stormScenario) table(out io.Writer, r result) {
	fmt.Fprint(out, stormHead)
	for _, f := range r.retriers {
		back := "never"
		if f.Recovery != nil {
			back = fmt.Sprintf("%.1f s", *f.Recovery/1000)
		} else if r.tooShort() {
			back = "?"
		}
		fmt.Fprintf(out, stormRow, f.Name, f.Calls, f.Attempts, f.Amplification, f.NormalRPS, f.PeakRPS, f.PeakRatio,
			100*f.SuccessRate, f.P50, f.P99, back)
	}
}

// tooShort reports whether the run ended before any client could have recovered.
func (r result) tooShort() bool { return r.measured < r.setting.outageEnd()+recoveryWindow }

// findings are who recovered, the quickest first, and who did not.
func (stormScenario) findings(r result) []string {
	if r.tooShort() {
		return []string{"The run ended too early to tell who recovers."}
	}
	var lines term.Sentences
	lines.List("Back to normal, the soonest first: ", term.Ranked(r.retriers, func(f stormFigures) (float64, string, bool) {
		if f.Recovery == nil {
			return 0, "", false
		}
		return *f.Recovery, fmt.Sprintf("%s (%.1f s)", f.Name, *f.Recovery/1000), true
	})...)
	lines.List("Not back when the run ended: ", term.Ranked(r.retriers, func(f stormFigures) (float64, string, bool) {
		return 0, f.Name, f.Recovery == nil
	})...)
	return lines
}

func (stormScenario) json(r result) (setting object, clients any) {
	s := r.setting
	return object{
		{"duration_ms", milliseconds(s.Duration)}, {"load", s.Load}, {"calls_per_second", round(s.offered(), 3)}, {"capacity_rps", s.Capacity},
		{"workers", workers}, {"service_ms", milliseconds(s.service())}, {"queue", s.Queue},
		{"outage_at_ms", milliseconds(s.OutageAt)}, {"outage_ms", milliseconds(s.Outage)}, {"outage_kind", s.Kind},
		{"attempt_timeout_ms", milliseconds(s.Timeout)}, {"attempts", s.Attempts}, {"seed", s.Seed}, {"lull_policy", s.policyText()},
		{"peak_window_ms", milliseconds(peakWindow)}, {"recovery_window_ms", milliseconds(recoveryWindow)}, {"recovery_share", recoveryShare},
	}, r.retriers
}
