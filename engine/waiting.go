package engine

import "math"

// A call that waits for a retry holds no place under the concurrency limit, but memory, a
// goroutine and somebody's patience. So few calls wait at a time:
//
//   - Under a limit, ten for each attempt that may be in flight. More retries than that would not
//     find room when their waits are over. The least is for small limits: their attempts are often
//     shorter than the shortest waits.
//   - Without one, as many as 1,000 calls a second have waiting if 30 % of them fail and each
//     waits for the whole DefaultDeadline.
const (
	waitingForEachAttempt   = 10
	leastWaiting            = 100
	mostWaitingWithoutLimit = 10_000
)

// mostWaiting returns how many calls may wait for a retry at a time.
func (p Policy) mostWaiting() int32 {
	if n := p.Limit.InFlight; n > 0 {
		return int32(max(leastWaiting, waitingForEachAttempt*min(n, math.MaxInt32/waitingForEachAttempt)))
	}
	return mostWaitingWithoutLimit
}

// waiting is what a call waits for.
type waiting uint8

const (
	forNothing waiting = iota
	forRetry
	forAnswers // to others, since its attempt may be queued; then maybe for a retry
)

// Waiting returns how many calls wait for a retry now, under this version and others. Messages of
// a queue are not counted. It allocates nothing.
func (s *State) Waiting() int {
	if m := s.Current().mem.Load(); !m.blank() {
		return int(m.waiting.Load())
	}
	return 0
}

// countWait returns step and counts the call until endWait, if it has a wait. If too many calls
// wait already, it returns a Step that is Done.
func (c *Call) countWait(step Step, with situation) Step {
	m := c.s.memory()
	if step.Wait == 0 || with.message || c.waits != forNothing || m.plan.empty {
		return step
	}
	for {
		n := m.waiting.Load()
		if n >= m.plan.mostWaiting {
			return done(TooManyWaiting)
		}
		if m.waiting.CompareAndSwap(n, n+1) {
			c.waits = forRetry
			return step
		}
	}
}

// endWait is called when the next attempt has begun, or the call is over.
func (c *Call) endWait() {
	if c.waits == forNothing {
		return
	}
	c.waits = forNothing
	if m := c.s.memory(); !m.plan.empty {
		m.waiting.Add(-1)
	}
}
