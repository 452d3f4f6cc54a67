package engine

// A Crowd is the messages that one consumer handles beside one another. All that were in flight
// in a crash come back, and nobody knows which it was. So a message that has crashed once is
// handled beside few others, then beside fewer, and at last alone. The zero Crowd is empty,
// where Most is set.
type Crowd struct {
	Most int // how many messages are handled at a time
	// Free: what has to wait can be given back at no cost. Elsewhere all that is fetched stays
	// with the consumer, and is taken for crashed with it. So little is fetched
	// at a time for as long as there may be messages that have crashed.
	FreeDefer bool

	running     int
	suspects    [crashesUntilAlone]int // of these, those that have crashed: once, twice, more often
	hasNext     bool                   // one waits for the others
	nextCrashes int                    // the crashes of that one
	batch       int                    // what is fetched at a time at most, if not Free; zero: 1
	sinceChange int                    // messages without crashes since batch has changed
}

// crowdShares are how many messages are handled beside one another, as a share of all that
// could be: after one crash, and two. Later it is one message.
var crowdShares = [crashesUntilAlone]int{4, 16, 0}

// room is how many messages are handled beside one that has made so many crashes, with it.
func (c *Crowd) roomBeside(crashes int) int {
	if crashes <= 0 {
		return c.Most
	}
	if share := crowdShares[min(crashes, crashesUntilAlone)-1]; share > 0 {
		return max(c.Most/share, 1)
	}
	return 1
}

// limit is how many may run beside what runs now.
func (c *Crowd) limit() int {
	most := c.Most
	for i, n := range c.suspects {
		if n > 0 {
			most = min(most, c.roomBeside(i+1))
		}
	}
	return most
}

// Come returns whether a message that was fetched, and has made so many crashes, may begin. If
// not, it waits for the others (wait), or for its turn behind the one that does; what has to wait
// for its turn should be given back if that is Free.
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

// Wait is for the first of those that wait for their turn: now it waits for the others.
func (c *Crowd) SetNext(crashes int) { c.hasNext, c.nextCrashes = true, crashes }

// Leave is for the one that waits for the others, when it does no more.
func (c *Crowd) DropNext() { c.hasNext = false }

// Turn reports whether the one that waits for the others may begin now.
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
		c.suspects[min(crashes, crashesUntilAlone)-1]++
	}
}

// End is for a message that has begun, and made so many crashes before.
func (c *Crowd) End(crashes int) {
	c.running--
	if crashes > 0 {
		c.suspects[min(crashes, crashesUntilAlone)-1]--
	}
}

// Fetch returns how many messages may be fetched, of as many as are wanted.
func (c *Crowd) Fetch(want int) int {
	if !c.FreeDefer {
		want = min(want, max(c.batch, 1))
	}
	switch {
	case c.hasNext:
		return 0
	case c.suspects != [crashesUntilAlone]int{}:
		return min(want, max(c.limit()-c.running, 0))
	}
	return want
}
