package admission

import (
	"math/bits"
	"time"

	"github.com/lullgo/lull/internal/chance"
	"github.com/lullgo/lull/internal/saturating"
)

const (
	leastWait = 5 * time.Millisecond // PressedWait, where it is learned
	mostWait  = time.Second          // MaxWait, where it is learned
	lasting   = 10                   // times MaxWait: pressure that lasts longer is no burst
	mostAfter = 30 * time.Second     // Retry-After
	unknown   = 100 * time.Millisecond
)

// pressure records whether requests have waited, or were refused, for a while.
type pressure struct {
	on      bool
	since   time.Duration // of on
	waiting time.Duration // since when the queue is not empty
	shed    time.Duration // when a first attempt was last refused for want of room
	ever    bool          // shed is set
}

// top returns the highest rank in use.
func top(used uint32) int { return bits.Len32(used) - 1 }

// calm returns MaxWait, set or learned.
func (c *Controller) calm() time.Duration {
	if c.maxWait > 0 {
		return c.maxWait
	}
	return min(max(DefaultMaxWait, 2*c.times.mean), mostWait)
}

// bound returns how long a request that comes now may wait.
func (c *Controller) bound(pressed bool) time.Duration {
	calm := c.calm()
	switch {
	case !pressed:
		return calm
	case c.pressedWait > 0:
		return min(c.pressedWait, calm)
	}
	return min(max(leastWait, 2*c.times.mean), calm)
}

// pressed reports whether there is pressure, and records when that changes. There is
// pressure if the queue has not been empty for MaxWait, or if a first attempt was refused
// for want of room within the last MaxWait. (CoDel's rule, RFC 8289, is of the same kind:
// a queue that drains within the interval is a good one.)
func (c *Controller) pressed(now time.Duration) bool {
	on := c.looksPressed(now)
	if p := &c.pressure; on != p.on {
		p.on, p.since = on, now
	}
	return on
}

// looksPressed is pressed without recording it.
func (c *Controller) looksPressed(now time.Duration) bool {
	p, interval := &c.pressure, c.calm()
	return c.queue.len > 0 && now-p.waiting >= interval || p.ever && now-p.shed < interval
}

func (c *Controller) shed(now time.Duration) {
	c.pressure.shed, c.pressure.ever = now, true
}

// advise returns the refusal: what its caller should do.
//
// Each caller that should come back gets a place in a line. Places are as far apart as the
// server needs for one request, so a burst does not come back as a burst. There is no line
// while pressure lasts: then first attempts alone are too many, retries are refused anyway,
// and callers should not come back.
func (c *Controller) advise(now time.Duration, class AttemptKind, why RefusalReason) Decision {
	d := Decision{Outcome: Refused, Reason: why}
	if why == Gone {
		return d
	}
	mean := c.times.mean
	if mean == 0 {
		mean = unknown
	}
	each := max(mean/time.Duration(c.bounded(c.knee.limit)), 1)
	line := max(c.comeback, saturating.Add(now, each*time.Duration(c.queue.len)))
	pressedFor := time.Duration(0)
	if c.pressure.on {
		pressedFor = now - c.pressure.since
	}
	d.DontRetry = class != First || pressedFor >= lasting*c.calm()
	wait := line - now
	if d.DontRetry {
		wait = max(wait, pressedFor)
	} else {
		line = saturating.Add(line, each)
		wait = line - now
		c.comeback = min(line, saturating.Add(now, mostAfter))
	}
	wait = max(min(wait, mostAfter*2/3), time.Millisecond)
	d.RetryAfter = wait + time.Duration(chance.UpTo(uint64(wait/2), c.random))
	return d
}
