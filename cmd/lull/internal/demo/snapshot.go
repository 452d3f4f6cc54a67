package demo

import (
	"slices"
	"time"
)

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

// recent are times within which calls succeeded, of those that ended lately; never if too
// few did.
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

// recentAt looks back from a time. The calls are in the order in which they ended, except
// those that ended within moments of each other.
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
