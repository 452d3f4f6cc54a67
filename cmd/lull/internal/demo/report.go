package demo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/term"
)

// definitions says what the figures mean; measure.go is what it describes.
const definitions = `What the figures mean
  attempts    requests that reached the backend, counted there; the rest is what
              callers saw
  normal      attempts per second before the outage; peak: in the busiest 500 ms
  success     share of calls that ended with a 200, whatever it took
  p50, p99    time until a caller had a result, be it a success or a failure
  back after  time from the end of the outage to the moment from which on each
              second of calls succeeds 95 % as often as before the outage, and
              does so up to the end of the run
`

// tooLate is how late calls may begin before the figures are in doubt.
const tooLate = 50 * time.Millisecond

// settingText describes what was run, so that it can be judged and repeated.
func settingText(s setting) string {
	var b strings.Builder
	say := func(title, format string, args ...any) {
		fmt.Fprintf(&b, "  %-9s "+format+"\n", append([]any{title}, args...)...)
	}
	b.WriteString("The setting: a backend for each client, all alike, called at the same moments\n")
	say("calls", "%.0f a second for %v, at random (Poisson, seed %d)", s.offered(), s.Duration, s.Seed)
	say("backend", "capacity %d a second (%.2f in use): %d workers, %v a request", s.Capacity, s.Load, workers, s.service().Round(time.Microsecond))
	say("", "on average, queue of %d (beyond: 503); serves even who has gone", s.Queue)
	switch {
	case s.Outage == 0:
		say("outage", "none")
	case s.Kind == stall:
		say("outage", "%v, from second %v: workers freeze, requests queue", s.Outage, s.OutageAt.Seconds())
	default:
		say("outage", "%v, from second %v: every request gets a 503 at once", s.Outage, s.OutageAt.Seconds())
	}
	say("attempts", "time out after %v", s.Timeout)
	b.WriteString("The clients\n")
	for _, c := range s.Clients {
		for i, line := range strings.Split(c.about(s), "\n") {
			name := c.name
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(&b, "  %-15s %s\n", name, line)
		}
	}
	return b.String()
}

// tooShort tells that the run ended before anybody could have recovered.
func (r result) tooShort() bool { return r.measured < r.setting.outageEnd()+recoveryWindow }

// findings says who was back first and who not at all, whoever that is.
func findings(r result) []string {
	if r.tooShort() {
		return []string{"The run ended too early to tell who recovers."}
	}
	var back, not []figures
	for _, f := range r.clients {
		if f.Recovery != nil {
			back = append(back, f)
		} else {
			not = append(not, f)
		}
	}
	slices.SortStableFunc(back, func(a, b figures) int { return cmp.Compare(*a.Recovery, *b.Recovery) })
	var lines []string
	if len(back) > 0 {
		names := make([]string, len(back))
		for i, f := range back {
			names[i] = fmt.Sprintf("%s (%.1f s)", f.Name, *f.Recovery/1000)
		}
		lines = append(lines, term.List("Back to normal, the soonest first: ", names)...)
	}
	if len(not) > 0 {
		names := make([]string, len(not))
		for i, f := range not {
			names[i] = f.Name
		}
		lines = append(lines, term.List("Not back when the run ended: ", names)...)
	}
	return lines
}

// warnings says what may have blurred the figures.
func warnings(r result) []string {
	var w []string
	if late := r.late.p99(); late > tooLate {
		w = append(w, fmt.Sprintf("Doubt: this machine was busy. One call in a hundred began %v late or more,\n"+
			"so the figures are blurred. A lower --capacity or fewer --clients ask less.", late.Round(time.Millisecond)))
	}
	if r.troubles > 0 {
		w = append(w, fmt.Sprintf("Doubt: %d attempts could not even connect, for want of ports or open files here.\n"+
			"A lower --capacity or fewer --clients ask less.", r.troubles))
	}
	return w
}
