package consumers

// A Crowd decides which messages one consumer handles at the same time. All that were in flight
// in a crash come back, and nobody knows which of them caused it. So a message that has crashed
// once is handled beside few others, then beside fewer, and at last alone. Apart from Most, the
// zero Crowd is ready for use.
type Crowd struct {
	Most int // how many messages are handled at a time
	// FreeDefer: a message that has to wait is given back at no cost. Elsewhere each message that
	// is fetched stays with the consumer, and may crash with it. So few are fetched at a time
	// while there may be messages that have crashed.
	FreeDefer bool

	running     int
	suspects    [CrashesUntilAlone]int // those that have crashed: once, twice, more often
	hasNext     bool                   // a message waits for those that run
	nextCrashes int                    // its crashes
	batch       int                    // the most that are fetched at a time, if not FreeDefer; zero: 1
	sinceChange int                    // messages without crashes since batch changed
}

// CrashesUntilAlone: after so many crashes a message is handled alone.
const CrashesUntilAlone = 3

// crowdShares: Most divided by this many messages are handled at the same time after one crash,
// and after two. After three it is one.
var crowdShares = [CrashesUntilAlone]int{4, 16, 0}

// roomBeside returns how many messages may run at the same time if one of them has made so many
// crashes.
func (c *Crowd) roomBeside(crashes int) int {
	if crashes <= 0 {
		return c.Most
	}
	if share := crowdShares[min(crashes, CrashesUntilAlone)-1]; share > 0 {
		return max(c.Most/share, 1)
	}
	return 1
}

// limit returns how many messages may run at the same time beside those that run.
func (c *Crowd) limit() int {
	most := c.Most
	for i, n := range c.suspects {
		if n > 0 {
			most = min(most, c.roomBeside(i+1))
		}
	}
	return most
}

// Arrive decides about a message that was fetched and has made so many crashes: begin it; let it
// wait for those that run; or let it wait for its turn behind the one that does. If FreeDefer,
// the last should be given back.
func (c *Crowd) Arrive(crashes int) (begin, wait bool) {
	if crashes > 0 {
		c.batch, c.sinceChange = 1, 0
	} else if c.sinceChange++; c.sinceChange >= max(c.batch, 1) {
		c.batch, c.sinceChange = min(2*max(c.batch, 1), max(c.Most, 1)), 0
	}
	if crashes == 0 && !c.hasNext && c.running < c.limit() {
		c.begin(0)
		return true, false
	}
	if c.hasNext || crashes == 0 && c.FreeDefer {
		return false, false
	}
	c.SetNext(crashes)
	return false, true
}

// SetNext makes the first message that waits for its turn wait for those that run.
func (c *Crowd) SetNext(crashes int) { c.hasNext, c.nextCrashes = true, crashes }

// DropNext is for the message that waits for those that run, when it stops waiting.
func (c *Crowd) DropNext() { c.hasNext = false }

// BeginNext reports whether the message that waits for those that run may begin, and begins it.
func (c *Crowd) BeginNext() bool {
	if !c.hasNext || c.running >= min(c.limit(), c.roomBeside(c.nextCrashes)) {
		return false
	}
	c.begin(c.nextCrashes)
	c.hasNext = false
	return true
}

func (c *Crowd) begin(crashes int) {
	c.running++
	if crashes > 0 {
		c.suspects[min(crashes, CrashesUntilAlone)-1]++
	}
}

// End is for a message that has begun with so many crashes, and is over.
func (c *Crowd) End(crashes int) {
	c.running--
	if crashes > 0 {
		c.suspects[min(crashes, CrashesUntilAlone)-1]--
	}
}

// Fetch returns how many of the wanted messages may be fetched.
func (c *Crowd) Fetch(want int) int {
	if !c.FreeDefer {
		want = min(want, max(c.batch, 1))
	}
	switch {
	case c.hasNext:
		return 0
	case c.suspects != [CrashesUntilAlone]int{}:
		return min(want, max(c.limit()-c.running, 0))
	}
	return want
}
