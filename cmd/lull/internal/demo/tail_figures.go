package demo

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/term"
)

const peakSecond = time.Second

// tailFigures are the figures of one client. tailDefinitions describe them; change both.
type tailFigures struct {
	Name     string
	Calls    int
	Attempts int
	Before   *periodFigures // nil if no calls began then
	Slow     *periodFigures
	After    *periodFigures
	Whole    *periodFigures
	Stopped  time.Duration
	CutAgain time.Duration
}

type periodFigures struct {
	Calls           int
	P50             time.Duration // never if fewer succeeded
	P99             time.Duration
	P999            time.Duration
	AttemptsPerCall float64
	WorstSecond     float64
	HeldBack        int
	FailureRate     float64
}

// beforeEnd is the end of what counts as normal: calls that begin later may be under way when everything turns slow.
func (s setting) beforeEnd() time.Duration { return s.OutageAt - slowest }

func (tailScenario) measure(r *result, l *lane) {
	r.hedgers = append(r.hedgers, measureTail(r.setting, r.measured, l.name, l.ended, l.backend.counts.copy()))
}

// measureTail returns the figures of one client. end is when the last call could begin.
func measureTail(s setting, end time.Duration, name string, ended []callRecord, n counts) tailFigures {
	end = max(end, tick*time.Duration(len(n[begun]))) // on a busy machine calls begin late
	f := tailFigures{
		Name: name, Calls: total(n[begun]), Attempts: total(n[seen]), Whole: period(ended, n, 0, end), Stopped: never, CutAgain: never,
	}
	if s.Outage == 0 {
		return f
	}
	f.Before = period(ended, n, 0, min(s.beforeEnd(), end))
	f.Slow = period(ended, n, s.OutageAt, min(s.outageEnd(), end))
	f.After = period(ended, n, s.outageEnd(), end)
	f.Stopped = stopTime(s, end, n)
	f.CutAgain = tailCutTime(s, end, ended)
	return f
}

// period measures the calls that began from one time to another. Without any it returns nil.
func period(ended []callRecord, n counts, from, to time.Duration) *periodFigures {
	var calls []callRecord
	failed, sent := 0, 0
	for _, c := range ended {
		if c.start < from || c.start >= to {
			continue
		}
		calls = append(calls, c)
		sent += c.sent
		if !c.ok {
			failed++
		}
	}
	if len(calls) == 0 {
		return nil
	}
	return &periodFigures{
		Calls:           len(calls),
		P50:             successPercentile(calls, 500),
		P99:             successPercentile(calls, 990),
		P999:            successPercentile(calls, 999),
		AttemptsPerCall: round(ratio(float64(sent), float64(len(calls))), 4),
		WorstSecond:     round(worstSecond(n, from, to), 4),
		HeldBack:        sum(n[held], from, to),
		FailureRate:     round(ratio(float64(failed), float64(len(calls))), 4),
	}
}

// successPercentile is the time within which so many of a thousand calls succeeded. A call that failed takes for ever.
func successPercentile(calls []callRecord, permille int) time.Duration {
	var took []time.Duration
	for _, c := range calls {
		if c.ok {
			took = append(took, c.took)
		}
	}
	rank := max(1, (len(calls)*permille+999)/1000)
	if rank > len(took) {
		return never
	}
	slices.Sort(took)
	return took[rank-1]
}

// worstSecond returns the highest extraLoad of any second between two times, or of all that time if it is shorter.
func worstSecond(n counts, from, to time.Duration) float64 {
	from, to = (from + tick - 1).Truncate(tick), to.Truncate(tick)
	width := min(peakSecond, to-from)
	worst := 0.0
	for ; width > 0 && from+width <= to; from += tick {
		worst = max(worst, extraLoad(n, from, from+width))
	}
	return worst
}

func extraLoad(n counts, from, to time.Duration) float64 {
	return ratio(float64(sum(n[extra], from, to)), float64(sum(n[begun], from, to)))
}

// stopTime is how long after everything turned slow a second without extra requests began; never if none did while it was slow.
func stopTime(s setting, end time.Duration, n counts) time.Duration {
	first := (s.OutageAt + tick - 1).Truncate(tick)
	for from := first; from+peakSecond <= min(s.outageEnd(), end); from += tick {
		if sum(n[extra], from, from+peakSecond) == 0 {
			return max(0, from-s.OutageAt)
		}
	}
	return never
}

// tailCutTime is the time until, of the calls of any three seconds, 99 % succeed sooner than a slow request does.
func tailCutTime(s setting, end time.Duration, ended []callRecord) time.Duration {
	return s.recovered(end, recentP99, ended,
		func(c callRecord) bool { return c.ok && c.took < quickestSlow },
		func(succeeded, all int) bool { return 100*succeeded >= 99*all })
}

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

// cell returns a time in milliseconds.
func cell(d time.Duration) string {
	if d == never {
		return "never"
	}
	return fmt.Sprintf("%.0f", milliseconds(d))
}

// findings are how quick clients were before, how they failed and hedged while all was slow, and whose hedges were too many.
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
		if p.P99 != never {
			p99 += " ms"
		}
		return p.P99.Seconds(), fmt.Sprintf("%s %s (%.2f)", f.Name, p99, p.AttemptsPerCall), true
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

func stopping(f tailFigures) (parts []string) {
	if f.Slow.HeldBack > 0 {
		parts = append(parts, fmt.Sprintf("%d held back", f.Slow.HeldBack))
	}
	if f.Stopped != never {
		parts = append(parts, fmt.Sprintf("stopped after %.1f s", f.Stopped.Seconds()))
	} else {
		parts = append(parts, "not stopped for a second")
	}
	if f.CutAgain != never {
		parts = append(parts, fmt.Sprintf("cut the tail again %.1f s after it was over", f.CutAgain.Seconds()))
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

// verdict names the clients whose hedges the backend could not bear, if it could bear the calls without them.
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
