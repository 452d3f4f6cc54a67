package demo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/term"
)

// definitionsOfTail says what the figures mean; tail_measure.go is what it
// describes.
const definitionsOfTail = `What the figures mean
  p50 ...     time within which 50, 99 and 99.9 % of the calls had succeeded; a
              call that fails has not, however soon. never: fewer succeeded. Of
              a few thousand calls 99.9 % are all but a few: that is mostly luck
  per call    requests that were sent for a call, the first included
  worst       extra load in the worst second: requests beyond the first of their
  second      call, for each call that began
  failed      share of the calls that ended without a 200
  stopped     from then on it sent no second request for a second or more; later
              maybe again, for what was late even by the measure of that time
  before      calls that began up to 650 ms before everything turned slow; the
              slowest of them had ended by then. slow, after: that began then
  cut again   from then on, up to the end of the run, 99 % of the calls of any
              three seconds succeeded sooner than a slow request does. Who goes
              by a percentile must learn anew what is usual, and hedges little
              until then
`

// tailLate is how late calls may begin before times are in doubt, of which most are
// tailMedian.
const tailLate = tailMedian

// tailSettingText is settingText for the scenario tail.
func tailSettingText(s setting) string {
	var b strings.Builder
	say := func(title, format string, args ...any) {
		fmt.Fprintf(&b, "  %-9s "+format+"\n", append([]any{title}, args...)...)
	}
	b.WriteString("The setting: a backend for each client, all alike, called at the same moments\n")
	say("calls", "%.0f a second for %v, at random (Poisson, seed %d)", s.offered(), s.Duration, s.Seed)
	say("backend", "%d workers, queue of %d (more: 503); serves even who has gone", s.workers(), s.Queue)
	say("requests", "take %v, give or take %.0f %%; %v %% of them %d times as long",
		tailMedian, 100*tailSpread, round(100*s.Tail, 2), tailFactor)
	if s.Outage == 0 {
		say("slow", "at no time is everything")
	} else {
		say("slow", "%v, from second %v: all requests take %d times as long;", s.Outage, round(s.OutageAt.Seconds(), 1), tailFactor)
		say("", "a backend can then serve %d a second (%.2f in use)", s.Capacity, s.Load)
	}
	say("timeout", "%v for each request", s.Timeout)
	b.WriteString("The clients\n")
	for _, c := range s.Clients {
		for i, line := range strings.Split(c.about(s), "\n") {
			name := c.name
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(&b, "  %-11s %s\n", name, line)
		}
	}
	return b.String()
}

// tailFindings says what the figures come to, whoever that favours.
func tailFindings(r result) []string {
	s := r.setting
	if s.Outage > 0 && r.measured < s.outageEnd() {
		return []string{"The run ended too early to tell who harms a backend that is slow."}
	}
	calm, intro := func(f tailFigures) *periodFigures { return f.Before }, "Before, 99 % of the calls succeeded within (requests per call): "
	if s.Outage == 0 {
		calm, intro = func(f tailFigures) *periodFigures { return f.Whole }, "99 % of the calls succeeded within (requests per call): "
	}
	lines := ranked(r.hedgers, intro, func(f tailFigures) (float64, string, bool) {
		p := calm(f)
		if p == nil {
			return 0, "", false
		}
		return timeOr(p.P99), fmt.Sprintf("%s %s (%.2f)", f.Name, inMilliseconds(p.P99), p.AttemptsPerCall), true
	})
	if s.Outage == 0 {
		return lines
	}
	lines = append(lines, ranked(r.hedgers, "While everything was slow, so many failed: ", func(f tailFigures) (float64, string, bool) {
		if f.Slow == nil {
			return 0, "", false
		}
		return f.Slow.FailureRate, fmt.Sprintf("%s %.1f%%", f.Name, 100*f.Slow.FailureRate), true
	})...)
	for _, f := range r.hedgers {
		if f.Slow != nil && f.Before != nil && f.Before.AttemptsPerCall > 1 {
			lines = append(lines, stopping(f)...)
		}
	}
	return append(lines, verdict(r.hedgers)...)
}

// stopping says how a client that hedges did so while everything was slow, and after.
func stopping(f tailFigures) []string {
	var parts []string
	if f.Slow.HeldBack > 0 {
		parts = append(parts, fmt.Sprintf("%d held back", f.Slow.HeldBack))
	}
	if f.Stopped != nil {
		parts = append(parts, fmt.Sprintf("stopped after %.1f s", *f.Stopped/1000))
	} else {
		parts = append(parts, "not stopped for a second")
	}
	if f.CutAgain != nil {
		parts = append(parts, fmt.Sprintf("cut the tail again %.1f s after it was over", *f.CutAgain/1000))
	} else {
		parts = append(parts, "had not cut the tail again when the run ended")
	}
	return term.List(fmt.Sprintf("%s: meanwhile up to %.0f%% more requests in a second, ", f.Name, 100*f.Slow.WorstSecond), parts)
}

// What verdict takes for little and for much, of the calls.
const (
	littleFails = 0.01
	muchFails   = 0.05
)

// verdict says whose hedges were what the backend could not bear: it could without
// them, and could not with them.
func verdict(all []tailFigures) []string {
	i := slices.IndexFunc(all, func(f tailFigures) bool { return f.Name == tailClients[0].name })
	if i < 0 || all[i].Slow == nil {
		return nil
	}
	alone := all[i].Slow.FailureRate
	if alone > littleFails {
		return term.List("The backend could not bear the calls even without hedges, ",
			[]string{fmt.Sprintf("%.1f%% of which failed", 100*alone)})
	}
	var guilty, innocent []string
	for j, f := range all {
		switch {
		case j == i || f.Slow == nil:
		case f.Slow.FailureRate-alone >= muchFails:
			guilty = append(guilty, f.Name)
		case f.Slow.FailureRate-alone <= littleFails:
			innocent = append(innocent, f.Name)
		}
	}
	if len(guilty) == 0 && len(innocent) > 0 {
		return term.List("The backend bore the calls, and the second requests of: ", innocent)
	}
	var lines []string
	if len(guilty) > 0 {
		lines = term.List("The backend bore the calls alone, but not the second requests of: ", guilty)
	}
	if len(innocent) > 0 {
		lines = append(lines, term.List("It bore those of: ", innocent)...)
	}
	return lines
}

// ranked is a list of what is said of clients, the least first.
func ranked(all []tailFigures, intro string, of func(tailFigures) (float64, string, bool)) []string {
	type entry struct {
		value float64
		text  string
	}
	var entries []entry
	for _, f := range all {
		if value, text, ok := of(f); ok {
			entries = append(entries, entry{value, text})
		}
	}
	if len(entries) == 0 {
		return nil
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.value, b.value) })
	texts := make([]string, len(entries))
	for i, e := range entries {
		texts[i] = e.text
	}
	return term.List(intro, texts)
}

func timeOr(ms *float64) float64 {
	if ms == nil {
		return float64(never)
	}
	return *ms
}

func inMilliseconds(ms *float64) string {
	if ms == nil {
		return "never"
	}
	return fmt.Sprintf("%.0f ms", *ms)
}

// tailWarnings says what may have blurred the figures.
func tailWarnings(r result) []string {
	var w []string
	if late := r.late.p99(); late > tailLate {
		w = append(w, fmt.Sprintf("Doubt: this machine was busy. One call in a hundred began %v late or more,\n"+
			"so times are blurred. A lower --capacity or fewer --clients ask less.", late.Round(time.Millisecond)))
	}
	if r.troubles > 0 {
		w = append(w, fmt.Sprintf("Doubt: %d requests could not even connect, for want of ports or open files here.\n"+
			"A lower --capacity or fewer --clients ask less.", r.troubles))
	}
	return w
}
