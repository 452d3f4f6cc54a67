package demo

import (
	"math"
	"slices"
	"time"
)

// never is the time within which a share of the calls succeeded if fewer did.
const never time.Duration = math.MaxInt64

// peakSecond is the width of the second of which the worst is looked for.
const peakSecond = time.Second

// flow is what a lane counts in ticks.
type flow struct {
	begun []int // calls
	extra []int // requests beyond the first of their call
	held  []int // requests that the client's policy has held back
}

// tailFigures are what the demo reports of one client in the scenario tail. The
// names are those of the JSON output. definitionsOfTail says the same in words.
type tailFigures struct {
	Name     string         `json:"name"`
	Calls    int            `json:"calls"`
	Attempts int            `json:"attempts"`
	Before   *periodFigures `json:"before"` // nil: no such time in this run
	Slow     *periodFigures `json:"slow"`
	After    *periodFigures `json:"after"`
	Whole    *periodFigures `json:"whole"`
	Stopped  *float64       `json:"stopped_ms"`   // nil: did not stop
	CutAgain *float64       `json:"cut_again_ms"` // nil: not within the run
}

// periodFigures are those of the calls that began in a part of the run.
type periodFigures struct {
	Calls           int      `json:"calls"`
	P50             *float64 `json:"p50_ms"` // nil: fewer succeeded
	P99             *float64 `json:"p99_ms"`
	P999            *float64 `json:"p999_ms"`
	AttemptsPerCall float64  `json:"attempts_per_call"`
	WorstSecond     float64  `json:"worst_second_extra"`
	HeldBack        int      `json:"held_back"`
	FailureRate     float64  `json:"failure_rate"`
}

// beforeEnd is the end of the time that stands for normal: whoever began later may
// still be under way when everything turns slow.
func (s setting) beforeEnd() time.Duration { return s.OutageAt - slowest }

// measureTail works out the figures of one client: the requests that its backend
// saw, the calls that ended, and what was counted in ticks. end is when the last
// call could begin.
func measureTail(s setting, end time.Duration, name string, seen int, ended []callRecord, n flow) tailFigures {
	end = max(end, tick*time.Duration(len(n.begun))) // on a busy machine calls begin late
	f := tailFigures{
		Name: name, Calls: total(n.begun), Attempts: seen, Whole: period(ended, n, 0, end),
	}
	if s.Outage == 0 {
		return f
	}
	f.Before = period(ended, n, 0, min(s.beforeEnd(), end))
	f.Slow = period(ended, n, s.OutageAt, min(s.outageEnd(), end))
	f.After = period(ended, n, s.outageEnd(), end)
	if at, ok := stopped(s, end, n); ok {
		ms := milliseconds(at)
		f.Stopped = &ms
	}
	if at, ok := cutAgain(s, end, ended); ok {
		ms := milliseconds(at)
		f.CutAgain = &ms
	}
	return f
}

// period measures the calls that began from one time to another; nil if there are
// none.
func period(ended []callRecord, n flow, from, to time.Duration) *periodFigures {
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
		P50:             timeOrNever(within(calls, 500)),
		P99:             timeOrNever(within(calls, 990)),
		P999:            timeOrNever(within(calls, 999)),
		AttemptsPerCall: round(ratio(float64(sent), float64(len(calls))), 4),
		WorstSecond:     round(worstSecond(n, from, to), 4),
		HeldBack:        sum(n.held, from, to),
		FailureRate:     round(ratio(float64(failed), float64(len(calls))), 4),
	}
}

func timeOrNever(d time.Duration) *float64 {
	if d == never {
		return nil
	}
	ms := milliseconds(d)
	return &ms
}

// within is the time within which so many of a thousand calls had succeeded. A call
// that failed has not succeeded within any. So it cannot be made shorter by failing.
func within(calls []callRecord, permille int) time.Duration {
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

// worstSecond is the most extra requests for each call in any second between two
// times, in steps of a tick; in all of that time if it is shorter.
func worstSecond(n flow, from, to time.Duration) float64 {
	from, to = (from + tick - 1).Truncate(tick), to.Truncate(tick)
	width := min(peakSecond, to-from)
	worst := 0.0
	for ; width > 0 && from+width <= to; from += tick {
		worst = max(worst, extraLoad(n, from, from+width))
	}
	return worst
}

// extraLoad is the extra requests that were sent between two times, for each call
// that began then.
func extraLoad(n flow, from, to time.Duration) float64 {
	return ratio(float64(sum(n.extra, from, to)), float64(sum(n.begun, from, to)))
}

// stopped is how long after everything has turned slow a second began in which no
// extra request was sent; false if there is none while all is slow.
func stopped(s setting, end time.Duration, n flow) (time.Duration, bool) {
	first := (s.OutageAt + tick - 1).Truncate(tick)
	for from := first; from+peakSecond <= min(s.outageEnd(), end); from += tick {
		if sum(n.extra, from, from+peakSecond) == 0 {
			return max(0, from-s.OutageAt), true
		}
	}
	return 0, false
}

// cutAgain is the time from the end of the slow time to the first moment from which
// on, up to the end of the run, of the calls that begin in any three seconds 99 %
// succeed sooner than a slow request does. False if there is no such moment.
func cutAgain(s setting, end time.Duration, ended []callRecord) (time.Duration, bool) {
	n := max(0, int(end/tick))
	calls, quick := make([]int, n), make([]int, n)
	for _, c := range ended {
		if i := int(c.start / tick); i < n {
			calls[i]++
			if c.ok && c.took < quickestSlow {
				quick[i]++
			}
		}
	}
	found, ok := time.Duration(0), false
	for from := (end - recentP99).Truncate(tick); from >= s.outageEnd(); from -= tick {
		all, fine := sum(calls, from, from+recentP99), sum(quick, from, from+recentP99)
		if 100*fine < 99*all {
			break
		}
		if all > 0 { // no calls are no evidence
			found, ok = from-s.outageEnd(), true
		}
	}
	return found, ok
}
