package demo

import (
	"math"
	"slices"
	"time"
)

// never is the time within which a share of the calls succeeded, if fewer did.
const never time.Duration = math.MaxInt64

// peakSecond is the window of the highest extra load.
const peakSecond = time.Second

// tailFigures are the figures of one client, as they are in JSON. tailDefinitions describe
// them; change both.
type tailFigures struct {
	Name     string         `json:"name"`
	Calls    int            `json:"calls"`
	Attempts int            `json:"attempts"`
	Before   *periodFigures `json:"before"` // nil if no calls began then
	Slow     *periodFigures `json:"slow"`
	After    *periodFigures `json:"after"`
	Whole    *periodFigures `json:"whole"`
	Stopped  *float64       `json:"stopped_ms"`   // nil if it did not
	CutAgain *float64       `json:"cut_again_ms"` // nil if not within the run
}

// periodFigures are of the calls that began in a part of the run.
type periodFigures struct {
	Calls           int      `json:"calls"`
	P50             *float64 `json:"p50_ms"` // nil if fewer succeeded
	P99             *float64 `json:"p99_ms"`
	P999            *float64 `json:"p999_ms"`
	AttemptsPerCall float64  `json:"attempts_per_call"`
	WorstSecond     float64  `json:"worst_second_extra"`
	HeldBack        int      `json:"held_back"`
	FailureRate     float64  `json:"failure_rate"`
}

// beforeEnd is the end of the time that counts as normal: calls that begin later may
// still be under way when everything turns slow.
func (s setting) beforeEnd() time.Duration { return s.OutageAt - slowest }

func (tailScenario) measure(r *result, l *lane) {
	r.hedgers = append(r.hedgers, measureTail(r.setting, r.measured, l.name, l.ended, l.backend.counts.copy()))
}

// measureTail returns the figures of one client. end is when the last call could begin.
func measureTail(s setting, end time.Duration, name string, ended []callRecord, n counts) tailFigures {
	end = max(end, tick*time.Duration(len(n[begun]))) // on a busy machine calls begin late
	f := tailFigures{
		Name: name, Calls: total(n[begun]), Attempts: total(n[seen]), Whole: period(ended, n, 0, end),
	}
	if s.Outage == 0 {
		return f
	}
	f.Before = period(ended, n, 0, min(s.beforeEnd(), end))
	f.Slow = period(ended, n, s.OutageAt, min(s.outageEnd(), end))
	f.After = period(ended, n, s.outageEnd(), end)
	f.Stopped = knownMilliseconds(stopTime(s, end, n))
	f.CutAgain = knownMilliseconds(tailCutTime(s, end, ended))
	return f
}

// period measures the calls that began from one time to another. Without any it returns
// nil.
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
		P50:             timeOrNever(successPercentile(calls, 500)),
		P99:             timeOrNever(successPercentile(calls, 990)),
		P999:            timeOrNever(successPercentile(calls, 999)),
		AttemptsPerCall: round(ratio(float64(sent), float64(len(calls))), 4),
		WorstSecond:     round(worstSecond(n, from, to), 4),
		HeldBack:        sum(n[held], from, to),
		FailureRate:     round(ratio(float64(failed), float64(len(calls))), 4),
	}
}

func timeOrNever(d time.Duration) *float64 { return knownMilliseconds(d, d != never) }

// successPercentile returns the time within which so many of a thousand calls succeeded. A call that
// failed counts as one that takes for ever, so that failing makes nobody look quick.
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

// worstSecond returns the highest extraLoad of any second between two times, in steps of a
// tick; of all that time if it is shorter.
func worstSecond(n counts, from, to time.Duration) float64 {
	from, to = (from + tick - 1).Truncate(tick), to.Truncate(tick)
	width := min(peakSecond, to-from)
	worst := 0.0
	for ; width > 0 && from+width <= to; from += tick {
		worst = max(worst, extraLoad(n, from, from+width))
	}
	return worst
}

// extraLoad returns the extra requests that were sent between two times, for each call that
// began then.
func extraLoad(n counts, from, to time.Duration) float64 {
	return ratio(float64(sum(n[extra], from, to)), float64(sum(n[begun], from, to)))
}

// stopTime returns how long after everything turned slow a second began in which no extra
// request was sent. False if there is none while everything is slow.
func stopTime(s setting, end time.Duration, n counts) (time.Duration, bool) {
	first := (s.OutageAt + tick - 1).Truncate(tick)
	for from := first; from+peakSecond <= min(s.outageEnd(), end); from += tick {
		if sum(n[extra], from, from+peakSecond) == 0 {
			return max(0, from-s.OutageAt), true
		}
	}
	return 0, false
}

// tailCutTime returns the time from the end of the slow time until, of the calls that begin in
// any three seconds, 99 % succeed sooner than a slow request does.
func tailCutTime(s setting, end time.Duration, ended []callRecord) (time.Duration, bool) {
	return s.recovered(end, recentP99, ended,
		func(c callRecord) bool { return c.ok && c.took < quickestSlow },
		func(succeeded, all int) bool { return 100*succeeded >= 99*all })
}

// timeOr returns a time in milliseconds, or never.
func timeOr(ms *float64) float64 {
	if ms == nil {
		return float64(never)
	}
	return *ms
}
