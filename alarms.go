package lull

import (
	"sync"
	"time"

	"github.com/lullgo/lull/engine"
)

// alarms ring when a call of one dependency is late, and stand for a timer for each
// of them: most calls end in time, and to join a line and to leave it costs a
// quarter of what a timer does. Those who join have mostly the longest to wait, so
// the line is in order at little cost.
type alarms struct {
	d           *Dependency
	mu          sync.Mutex // guards what follows, and the alarm of those in line
	first, last *race
	timer       *time.Timer
	rings       time.Duration // never if not
}

// alarm is a place in line.
type alarm struct {
	at         time.Duration
	prev, next *race
	set        bool
}

// add puts r in line, to ring at the given time.
func (a *alarms) add(r *race, now, at time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	after := a.last
	for after != nil && after.alarm.at > at {
		after = after.alarm.prev
	}
	r.alarm = alarm{at: at, prev: after, set: true}
	if after == nil {
		r.alarm.next, a.first = a.first, r
	} else {
		r.alarm.next, after.alarm.next = after.alarm.next, r
	}
	if r.alarm.next == nil {
		a.last = r
	} else {
		r.alarm.next.alarm.prev = r
	}
	if at < a.rings {
		a.ring(now, at)
	}
}

// remove takes r out of line, if it is in it.
func (a *alarms) remove(r *race) {
	a.mu.Lock()
	if r.alarm.set {
		a.unlink(r)
	}
	a.mu.Unlock()
}

// unlink, as ring, is called with the lock held.
func (a *alarms) unlink(r *race) {
	l := &r.alarm
	if l.prev == nil {
		a.first = l.next
	} else {
		l.prev.alarm.next = l.next
	}
	if l.next == nil {
		a.last = l.prev
	} else {
		l.next.alarm.prev = l.prev
	}
	*l = alarm{}
}

func (a *alarms) ring(now, at time.Duration) {
	a.rings = at
	if a.timer == nil {
		a.timer = time.AfterFunc(at-now, a.fire)
	} else {
		a.timer.Reset(at - now)
	}
}

// fire is called by the timer. It rings for those whose time has come, each on a goroutine of
// its own, and then for the next in line.
func (a *alarms) fire() {
	now := a.d.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.first != nil && a.first.alarm.at <= now {
		r := a.first
		a.unlink(r)
		go r.hedgeDue()
	}
	if a.rings = engine.Never; a.first != nil {
		a.ring(now, a.first.alarm.at)
	}
}
