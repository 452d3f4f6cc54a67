package demo

import (
	"fmt"
	"io"
	"slices"

	"github.com/lullgo/lull/cmd/lull/internal/term"
)

// tailDefinitions describe what tail_figures.go computes.
const tailDefinitions = `What the figures mean
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

func (tailScenario) describe(s setting) [][2]string {
	lines := [][2]string{
		{"backend", fmt.Sprintf("%d workers, queue of %d (more: 503); serves even who has gone", s.workers(), s.Queue)},
		{"requests", fmt.Sprintf("take %v ± %.0f %%; %v %% of them %d times as long",
			tailMedian, 100*tailSpread, round(100*s.Tail, 2), tailFactor)},
	}
	if s.Outage == 0 {
		lines = append(lines, [2]string{"slow", "at no time is everything"})
	} else {
		lines = append(lines,
			[2]string{"slow", fmt.Sprintf("%v, from second %v: all requests take %d times as long;", s.Outage, round(s.OutageAt.Seconds(), 1), tailFactor)},
			[2]string{"", fmt.Sprintf("a backend can then serve %d a second (%.2f in use)", s.Capacity, s.Load)})
	}
	return append(lines, [2]string{"timeout", fmt.Sprintf("%v for each request", s.Timeout)})
}

const (
	tailHead = `
                        p50     p99   p99.9    requests   worst
                calls    ms      ms      ms    per call  second  failed
`
	tailRow = "  %-12s %6d %5s %7s %7s %11.2f %+6.0f%% %6.1f%%\n"
)

func (tailScenario) table(out io.Writer, r result) {
	fmt.Fprint(out, tailHead)
	for _, part := range []struct {
		title string
		of    func(tailFigures) *periodFigures
	}{
		{"before", func(f tailFigures) *periodFigures { return f.Before }},
		{"everything is slow", func(f tailFigures) *periodFigures { return f.Slow }},
		{"after", func(f tailFigures) *periodFigures { return f.After }},
		{"the whole run", func(f tailFigures) *periodFigures { return f.Whole }},
	} {
		if part.title == "the whole run" && r.setting.Outage > 0 && r.measured <= r.setting.beforeEnd() {
			continue // it is all "before"
		}
		title := part.title + "\n"
		for _, f := range r.hedgers {
			p := part.of(f)
			if p == nil {
				continue
			}
			fmt.Fprint(out, title)
			title = ""
			fmt.Fprintf(out, tailRow, f.Name, p.Calls, cell(p.P50), cell(p.P99), cell(p.P999),
				p.AttemptsPerCall, 100*p.WorstSecond, 100*p.FailureRate)
		}
	}
}

func cell(ms *float64) string {
	if ms == nil {
		return "never"
	}
	return fmt.Sprintf("%.0f", *ms)
}

// findings are how quick the clients were before, how many of their calls failed while
// everything was slow, how they hedged then, and whose hedges the backend could not bear.
func (tailScenario) findings(r result) []string {
	s := r.setting
	if s.Outage > 0 && r.measured < s.outageEnd() {
		return []string{"The run ended too early to tell who harms a backend that is slow."}
	}
	calm, intro := func(f tailFigures) *periodFigures { return f.Before }, "Before, 99 % of the calls succeeded within (requests per call): "
	if s.Outage == 0 {
		calm, intro = func(f tailFigures) *periodFigures { return f.Whole }, "99 % of the calls succeeded within (requests per call): "
	}
	var lines term.Sentences
	lines.List(intro, term.Ranked(r.hedgers, func(f tailFigures) (float64, string, bool) {
		p := calm(f)
		if p == nil {
			return 0, "", false
		}
		p99 := cell(p.P99)
		if p.P99 != nil {
			p99 += " ms"
		}
		return timeOr(p.P99), fmt.Sprintf("%s %s (%.2f)", f.Name, p99, p.AttemptsPerCall), true
	})...)
	if s.Outage == 0 {
		return lines
	}
	lines.List("While everything was slow, so many failed: ", term.Ranked(r.hedgers, func(f tailFigures) (float64, string, bool) {
		if f.Slow == nil {
			return 0, "", false
		}
		return f.Slow.FailureRate, fmt.Sprintf("%s %.1f%%", f.Name, 100*f.Slow.FailureRate), true
	})...)
	for _, f := range r.hedgers {
		if f.Slow != nil && f.Before != nil && f.Before.AttemptsPerCall > 1 {
			lines.List(fmt.Sprintf("%s: meanwhile up to %.0f%% more requests in a second, ", f.Name, 100*f.Slow.WorstSecond), stopping(f)...)
		}
	}
	verdict(&lines, r.hedgers)
	return lines
}

// stopping describes how a client hedged while everything was slow, and after.
func stopping(f tailFigures) (parts []string) {
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
	return parts
}

// Shares of calls that count as little and as much.
const (
	littleFails = 0.01
	muchFails   = 0.05
)

// verdict names the clients whose hedges the backend could not bear, if it could bear the
// calls without them.
func verdict(lines *term.Sentences, all []tailFigures) {
	i := slices.IndexFunc(all, func(f tailFigures) bool { return f.Name == tailClients[0].name })
	if i < 0 || all[i].Slow == nil {
		return
	}
	alone := all[i].Slow.FailureRate
	if alone > littleFails {
		lines.List("The backend could not bear the calls even without hedges, ", fmt.Sprintf("%.1f%% of which failed", 100*alone))
		return
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
	if lines.List("The backend bore the calls alone, but not the second requests of: ", guilty...) {
		lines.List("It bore those of: ", innocent...)
	} else {
		lines.List("The backend bore the calls, and the second requests of: ", innocent...)
	}
}

func (tailScenario) json(r result) (setting object, clients any) {
	s := r.setting
	return object{
		{"scenario", "tail"}, {"duration_ms", milliseconds(s.Duration)}, {"load", s.Load}, {"calls_per_second", round(s.offered(), 3)},
		{"slow_capacity_rps", s.Capacity}, {"workers", s.workers()}, {"queue", s.Queue},
		{"median_ms", milliseconds(tailMedian)}, {"spread", tailSpread}, {"tail", s.Tail}, {"tail_factor", tailFactor},
		{"slow_at_ms", milliseconds(s.OutageAt)}, {"slow_ms", milliseconds(s.Outage)}, {"attempt_timeout_ms", milliseconds(s.Timeout)},
		{"naive_hedge_delay_ms", milliseconds(s.HedgeDelay)}, {"seed", s.Seed}, {"lull_policy", s.hedgePolicyText()},
	}, r.hedgers
}
