package demo

import "time"

// A snapshot is the state of a run at one moment, for views.
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

// A phase is the state of the backends.
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
