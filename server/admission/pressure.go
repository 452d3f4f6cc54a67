package admission

import (
	"cmp"
	"time"

	"github.com/lullgo/lull/internal/chance"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/saturating"
)

const (
	minLearnedWait = 5 * time.Millisecond // PressedWait, where it is learned
	maxLearnedWait = time.Second          // MaxWait, where it is learned
	lastingFactor  = 10                   // times MaxWait: pressure that lasts longer is no burst
	maxRetryAfter  = 30 * time.Second     // Retry-After
	unknownMean    = 100 * time.Millisecond
)

// pressure records whether requests have waited, or were refused, for a while.
type pressure struct {
	on          bool
	since       time.Duration // of on
	queuedSince time.Duration // since when the queue is not empty
	lastShed    time.Duration // when a first attempt was last refused for want of room
	everShed    bool          // lastShed is set
}

// maxWaitNow returns MaxWait, set or learned.
func (c *Controller) maxWaitNow() time.Duration {
	if c.maxWait > 0 {
		return c.maxWait
	}
	return min(max(DefaultMaxWait, 2*c.times.mean), maxLearnedWait)
}

// longestWait returns how long a request that comes now may wait.
func (c *Controller) longestWait(pressed bool) time.Duration {
	calm := c.maxWaitNow()
	switch {
	case !pressed:
		return calm
	case c.pressedWait > 0:
		return min(c.pressedWait, calm)
	}
	return min(max(minLearnedWait, 2*c.times.mean), calm)
}

// updatePressure reports whether there is pressure, and records when that changes. There is
// pressure if the queue has not been empty for MaxWait, or if a first attempt was refused
// for want of room within the last MaxWait. (CoDel's rule, RFC 8289, is of the same kind:
// a queue that drains within the interval is a good one.)
func (c *Controller) updatePressure(now time.Duration) bool {
	on := c.isPressed(now)
	if p := &c.pressure; on != p.on {
		p.on, p.since = on, now
	}
	return on
}

// isPressed reports whether there is pressure.
func (c *Controller) isPressed(now time.Duration) bool {
	p, interval := &c.pressure, c.maxWaitNow()
	return c.queue.len > 0 && now-p.queuedSince >= interval || p.everShed && now-p.lastShed < interval
}

// refusal returns the refusal: what its caller should do.
//
// Each caller that should come back gets a place in a line. Places are as far apart as the
// server needs for one request, so a burst does not come back as a burst. There is no line
// while pressure lasts: then first attempts alone are too many, retries are refused anyway,
// and callers should not come back.
func (c *Controller) refusal(now time.Duration, class AttemptKind, why RefusalReason) Decision {
	d := Decision{Outcome: Refused, Reason: why}
	if why == Gone {
		return d
	}
	mean := cmp.Or(c.times.mean, unknownMean)
	each := max(mean/time.Duration(c.boundedLimit(c.knee.limit)), 1)
	line := max(c.lastComeback, saturating.Add(now, each*time.Duration(c.queue.len)))
	pressedFor := choice.Either(c.pressure.on, now-c.pressure.since, time.Duration(0))
	d.DontRetry = class != First || pressedFor >= lastingFactor*c.maxWaitNow()
	wait := line - now
	if d.DontRetry {
		wait = max(wait, pressedFor)
	} else {
		line = saturating.Add(line, each)
		wait = line - now
		c.lastComeback = min(line, saturating.Add(now, maxRetryAfter))
	}
	wait = max(min(wait, maxRetryAfter*2/3), time.Millisecond)
	d.RetryAfter = wait + time.Duration(chance.UpTo(uint64(wait/2), c.random))
	return d
}
