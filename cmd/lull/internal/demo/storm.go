package demo

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/term"
)

// What every backend and every naive client of the storm has in common.
const (
	workers   = 4                      // of each backend; a request takes workers/capacity on average
	naiveBase = 100 * time.Millisecond // the first wait of naive clients, and lull's default base
)

// stormScenario: backends go down and come back, and calls are retried.
type stormScenario struct{}

func (stormScenario) clients() []client { return stormClients }

// usualAttempts is what a loop written by hand makes.
const usualAttempts = 3

func (stormScenario) defaults() defaults {
	return defaults{"25s", "100", cli.Text(strconv.Itoa(usualAttempts)), "500ms", 5 * time.Second, 4 * time.Second, 4, 5}
}

func (stormScenario) words() words {
	return words{
		outage: "down", note: "the backends were down", bars: [2]string{"load", "ok"}, nameWidth: 15,
		unfinished: "not ended and count as calls, but neither in the success rate nor in the times.",
		late:       50 * time.Millisecond, affected: "the figures", requests: "attempts", definitions: stormDefinitions,
	}
}

func (stormScenario) workers(setting) int { return workers }

func (stormScenario) service(s setting, random *rand.Rand, _ bool) time.Duration {
	return time.Duration(random.ExpFloat64() * float64(s.service()))
}

func (s setting) service() time.Duration {
	return time.Duration(float64(workers) / float64(s.Capacity) * float64(time.Second))
}

var stormClients = []client{
	{"no retry", func(setting) string { return "one attempt" }, once},
	{"immediate", func(s setting) string { return fmt.Sprintf("%d attempts, no wait between them", s.Attempts) },
		retries(func(int) time.Duration { return 0 })},
	{"fixed interval", func(s setting) string { return fmt.Sprintf("%d attempts, %v between them", s.Attempts, naiveBase) },
		retries(func(int) time.Duration { return naiveBase })},
	{"exponential", func(s setting) string {
		return fmt.Sprintf("%d attempts, waits of %v, doubling, no jitter", s.Attempts, naiveBase)
	}, retries(doubling)},
	{"full jitter", func(s setting) string {
		return fmt.Sprintf("%d attempts, random waits of up to %v, doubling, no budget", s.Attempts, naiveBase)
	}, retries(func(n int) time.Duration { return rand.N(doubling(n) + 1) })},
	{"lull", func(s setting) string {
		return fmt.Sprintf("lullhttp with lull's zero policy, the demo's attempt timeout:\n%s", s.policyText())
	}, newLull(setting.policy)},
}

func doubling(n int) time.Duration { return naiveBase << (n - 1) }

// policy is lull's in the storm: the zero policy, but for what the demo sets for every client.
func (s setting) policy() lull.Policy {
	p := lull.Policy{AttemptTimeout: s.Timeout}
	if s.Attempts != usualAttempts {
		p.Attempts = s.Attempts
	}
	return p
}

func (s setting) policyText() string {
	attempts := ""
	if n := s.policy().Attempts; n != 0 {
		attempts = fmt.Sprintf(", Attempts: %d", n)
	}
	return fmt.Sprintf("lull.Policy{AttemptTimeout: %v%s}", s.Timeout, attempts)
}

func (stormScenario) heading(s setting, p phase, seconds float64) string {
	switch p {
	case before:
		return fmt.Sprintf("outage in %.1f s", seconds)
	case during:
		if s.Kind == errors503 {
			return "OUTAGE: every backend answers 503 "
		}
		return "OUTAGE: every backend is frozen "
	case after:
		return fmt.Sprintf("the outage ended %.1f s ago", seconds)
	}
	return "no outage"
}

func (s setting) maxRate() float64 { return float64(s.Attempts) * s.offered() }

func (stormScenario) legend(s snapshot) [2]string {
	return [2]string{
		fmt.Sprintf("load: attempts/s at the backend, %c is %.0f, calls are %.0f, capacity is %d",
			term.Blocks.Highest(), s.setting.maxRate(), s.setting.offered(), s.setting.Capacity),
		"ok:   share of calls that succeeded, of those that ended then",
	}
}

func (stormScenario) status(s snapshot, l laneSnapshot) string {
	calls, attempts := total(l.counts[begun]), total(l.counts[seen])
	return fmt.Sprintf("%-15s%6d attempts for %5d calls (%.2f)   queue %4d   ok now %s",
		l.name, attempts, calls, ratio(float64(attempts), float64(calls)), l.queue, l.okBetween(s.now-time.Second, s.now))
}

func (stormScenario) bars(s snapshot, l laneSnapshot, from, to time.Duration) (colour string, bars [2]string) {
	good, failed := rateIn(l.counts[succeeded], from, to), rateIn(l.counts[bad], from, to)
	colour, ok := term.Reset, " " // nothing ended: nothing known
	if good+failed > 0 {
		share := good / (good + failed)
		ok = term.Blocks.Of(share)
		switch {
		case share >= recoveryShare:
			colour = term.Green
		case share >= 0.5:
			colour = term.Yellow
		default:
			colour = term.Red
		}
	}
	return colour, [2]string{term.Blocks.Of(rateIn(l.counts[seen], from, to) / s.setting.maxRate()), ok}
}

func (stormScenario) plainHead(s snapshot) string {
	head := "Each second: calls that succeeded, of those that ended; attempts a second at the backend.\n" + fmt.Sprintf("%-7s", "")
	for _, l := range s.lanes {
		short := strings.TrimSuffix(strings.TrimSuffix(l.name, " interval"), " jitter") // fits the column
		head += fmt.Sprintf(" %11s", short)
	}
	return head + "\n"
}

func (stormScenario) plainLine(s snapshot, from, to time.Duration) (line string) {
	for _, l := range s.lanes {
		line += fmt.Sprintf(" %5s %5.0f", l.okBetween(from, to), ratio(float64(sum(l.counts[seen], from, to)), (to-from).Seconds()))
	}
	return line
}

// okBetween returns the share of calls that succeeded, of those that ended between two times.
func (l laneSnapshot) okBetween(from, to time.Duration) string {
	good := sum(l.counts[succeeded], from, to)
	return percent(good, good+sum(l.counts[bad], from, to))
}

// percent never rounds to 100 or 0 what is not all or nothing.
func percent(part, whole int) string {
	if whole == 0 {
		return "-"
	}
	n := (100*part + whole/2) / whole
	switch {
	case part == whole:
		n = 100
	case part > 0:
		n = min(max(n, 1), 99)
	}
	return fmt.Sprintf("%d%%", n)
}

// stormDefinitions describe the figures; change both.
const (
	peakWindow     = 500 * time.Millisecond
	recoveryWindow = time.Second
	recoveryShare  = 0.95
)

type stormFigures struct {
	Name          string
	Calls         int
	Attempts      int
	Amplification float64
	NormalRPS     float64
	PeakRPS       float64
	PeakRatio     float64
	SuccessRate   float64
	P50           float64
	P99           float64
	Recovery      time.Duration
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
		Recovery:      recovery(s, end, ended),
	}
}

func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1]
}

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

// recovery returns the time to recover: until calls succeed at least recoveryShare as often as before the outage.
func recovery(s setting, end time.Duration, ended []callRecord) time.Duration {
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
		return never
	}
	share := recoveryShare * float64(succeeded) / float64(before)
	return s.recovered(end, recoveryWindow, ended,
		func(c callRecord) bool { return c.ok },
		func(succeeded, all int) bool { return float64(succeeded) >= share*float64(all) })
}

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
		if f.Recovery != never {
			back = fmt.Sprintf("%.1f s", f.Recovery.Seconds())
		} else if r.tooShort() {
			back = "?"
		}
		fmt.Fprintf(out, stormRow, f.Name, f.Calls, f.Attempts, f.Amplification, f.NormalRPS, f.PeakRPS, f.PeakRatio,
			100*f.SuccessRate, f.P50, f.P99, back)
	}
}

// tooShort reports whether the run ended before any client could have recovered.
func (r result) tooShort() bool { return r.measured < r.setting.outageEnd()+recoveryWindow }

func (stormScenario) findings(r result) []string {
	if r.tooShort() {
		return []string{"The run ended too early to tell who recovers."}
	}
	var lines term.Sentences
	lines.List("Back to normal, the soonest first: ", term.Ranked(r.retriers, func(f stormFigures) (float64, string, bool) {
		return f.Recovery.Seconds(), fmt.Sprintf("%s (%.1f s)", f.Name, f.Recovery.Seconds()), f.Recovery != never
	})...)
	lines.List("Not back when the run ended: ", term.Ranked(r.retriers, func(f stormFigures) (float64, string, bool) {
		return 0, f.Name, f.Recovery == never
	})...)
	return lines
}
