package demo

import (
	"math"
	"slices"
	"sync"
	"time"
)

// tick is the width of a bucket. All counts over time are in buckets of this width.
const tick = 100 * time.Millisecond

type kind int

const (
	begun     kind = iota // calls, when they began
	succeeded             // calls, when they ended
	bad                   // calls that failed, when they ended
	seen                  // requests, when the backend saw them
	extra                 // requests beyond the first of their call, when they were sent
	held                  // requests that the client's policy did not send
	kinds
)

// counts are those of each kind per tick since the start of the run, oldest first.
type counts [kinds][]int

// buckets count events by their time. They are safe for concurrent use.
type buckets struct {
	mu sync.Mutex
	of counts
}

func (b *buckets) add(what kind, at time.Duration) {
	i := int(max(0, at) / tick)
	b.mu.Lock()
	defer b.mu.Unlock()
	if more := i + 1 - len(b.of[what]); more > 0 {
		b.of[what] = append(b.of[what], make([]int, more)...)
	}
	b.of[what][i]++
}

func (b *buckets) copy() (c counts) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for what := range c {
		c[what] = slices.Clone(b.of[what])
	}
	return c
}

func total(counts []int) int { return sum(counts, 0, time.Duration(len(counts))*tick) }

// sum adds up the counts between two times, both rounded down to ticks.
func sum(counts []int, from, to time.Duration) int {
	n := 0
	for i := int(max(0, from) / tick); i < int(to/tick) && i < len(counts); i++ {
		n += counts[i]
	}
	return n
}

type callRecord struct {
	start time.Duration
	took  time.Duration
	ok    bool
	sent  int // requests
}

// never is the time of what does not happen within the run.
const never time.Duration = math.MaxInt64

// recovered returns the time from the end of the outage until every later window of calls is good enough, or never. Windows hold
// the calls that began in them, and move by a tick. Empty ones are no evidence.
func (s setting) recovered(end, window time.Duration, ended []callRecord, succeeded func(callRecord) bool, enough func(succeeded, all int) bool) time.Duration {
	n := max(0, int(end/tick))
	calls, fine := make([]int, n), make([]int, n)
	for _, c := range ended {
		if i := int(c.start / tick); i < n {
			calls[i]++
			if succeeded(c) {
				fine[i]++
			}
		}
	}
	found := never
	for from := (end - window).Truncate(tick); from >= s.outageEnd(); from -= tick {
		all := sum(calls, from, from+window)
		if !enough(sum(fine, from, from+window), all) {
			break
		}
		if all > 0 {
			found = from - s.outageEnd()
		}
	}
	return found
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

func milliseconds(d time.Duration) float64 { return round(float64(d)/float64(time.Millisecond), 1) }

type snapshot struct {
	setting setting
	now     time.Duration
	lanes   []laneSnapshot
}

type laneSnapshot struct {
	name string
	counts
	queue   int      // requests waiting at the backend
	recents []recent // tail
}

func takeSnapshot(s setting, lanes []*lane, now time.Duration) snapshot {
	shot := snapshot{setting: s, now: now}
	for _, l := range lanes {
		one := laneSnapshot{name: l.name, counts: l.backend.counts.copy(), queue: len(l.backend.queue)}
		if s.Scenario == tail {
			one.recents = l.recentUntil(now)
		}
		shot.lanes = append(shot.lanes, one)
	}
	return shot
}

type phase int

const (
	calm phase = iota // there is no outage
	before
	during
	after
	lastCalls // no call begins any more
)

func (s snapshot) phase() phase {
	switch {
	case s.now >= s.setting.Duration:
		return lastCalls
	case s.setting.Outage == 0:
		return calm
	case s.now < s.setting.OutageAt:
		return before
	case s.now < s.setting.outageEnd():
		return during
	}
	return after
}

func (s snapshot) heading() string {
	switch p := s.phase(); p {
	case lastCalls:
		return "waiting for the last calls"
	case after:
		return s.setting.Scenario.heading(s.setting, p, (s.now - s.setting.outageEnd()).Seconds())
	default:
		return s.setting.Scenario.heading(s.setting, p, (s.setting.OutageAt - s.now).Seconds())
	}
}

// How recent is recent. The p99 takes more calls than there are in a second.
const (
	recentStep = 500 * time.Millisecond
	recentP50  = time.Second
	recentP99  = 3 * time.Second
)

// recent are times within which calls succeeded, of those that ended lately; never if too few did.
type recent struct {
	p50, p99 time.Duration
}

// recentUntil returns the recents at every step up to now, the first after one step.
func (l *lane) recentUntil(now time.Duration) []recent {
	l.mu.Lock()
	defer l.mu.Unlock()
	for at := recentStep * time.Duration(len(l.recents)+1); at <= now; at += recentStep {
		l.recents = append(l.recents, recentAt(l.ended, at))
	}
	return slices.Clone(l.recents)
}

// recentAt looks back from a time. Calls that ended within moments of each other may be in any order.
func recentAt(ended []callRecord, at time.Duration) recent {
	const moments = time.Second
	var last, lately []callRecord
	for _, c := range slices.Backward(ended) {
		end := c.start + c.took
		switch {
		case end > at:
			continue
		case end <= at-recentP99-moments:
			return recent{successPercentile(last, 500), successPercentile(lately, 990)}
		}
		if end > at-recentP50 {
			last = append(last, c)
		}
		if end > at-recentP99 {
			lately = append(lately, c)
		}
	}
	return recent{successPercentile(last, 500), successPercentile(lately, 990)}
}

// recentBy returns the latest recent at or before a time. False means that there is none.
func (l laneSnapshot) recentBy(at time.Duration) (recent, bool) {
	i := min(int(at/recentStep), len(l.recents)) - 1
	if i < 0 {
		return recent{}, false
	}
	return l.recents[i], true
}
