package demo

import "time"

// A snapshot is the state of a run at one moment, for views.
type snapshot struct {
	setting setting
	now     time.Duration
	lanes   []laneSnapshot
}

// laneSnapshot is the state of one client and its backend. The counts are per
// tick since the start of the run.
type laneSnapshot struct {
	name      string
	calls     int
	queue     int   // requests waiting at the backend
	seen      []int // attempts, when the backend saw them
	succeeded []int // calls that succeeded, when they ended
	bad       []int // calls that failed, when they ended
	served    int
	wasted    int // served, but the caller had hung up

	flow    // tail
	recents []recent
}

func snap(s setting, lanes []*lane, now time.Duration) snapshot {
	shot := snapshot{setting: s, now: now}
	for _, l := range lanes {
		shot.lanes = append(shot.lanes, laneSnapshot{
			name:      l.name,
			calls:     int(l.began.Load()),
			queue:     len(l.backend.queue),
			seen:      l.backend.attempts.copy(),
			succeeded: l.succeeded.copy(),
			bad:       l.bad.copy(),
			served:    int(l.backend.served.Load()),
			wasted:    int(l.backend.wasted.Load()),
		})
		if s.Scenario == tail {
			last := &shot.lanes[len(shot.lanes)-1]
			last.flow, last.recents = l.flow(), l.recentUntil(now)
		}
	}
	return shot
}

// A phase is the state of the backends.
type phase int

const (
	before phase = iota
	during
	after
	lastCalls // no call begins any more
)

func (s snapshot) phase() phase {
	switch {
	case s.now < s.setting.OutageAt:
		return before
	case s.now < s.setting.outageEnd():
		return during
	case s.now < s.setting.Duration:
		return after
	}
	return lastCalls
}
