package breaker

import (
	"cmp"
	"time"
)

// The share rule of the tests that set no other.
const (
	openFor  = 5 * time.Second
	halfFail = 0.5
)

// rated is c with the share rule and growing open times, and without the streak
// rule unless c names it.
func rated(c Config) Config {
	c.FailureRate = cmp.Or(c.FailureRate, halfFail)
	c.OpenFor = cmp.Or(c.OpenFor, openFor)
	c.Consecutive = cmp.Or(c.Consecutive, -1)
	return c
}

// first is a configuration under which the first failure opens, for openFor.
func first(c Config) Config {
	c.Consecutive, c.ConsecutiveFor = 1, -1
	c.OpenFor = cmp.Or(c.OpenFor, openFor)
	return c
}

// flights are calls under way that all take the same time, in the order of their
// starts.
type flights []Ticket

// land reports those that have taken so long by now.
func (f *flights) land(b *Breaker, now, so time.Duration, o Evidence) {
	for len(*f) > 0 && (*f)[0].start+so <= now {
		b.Done(now, (*f)[0], o, nil)
		*f = (*f)[1:]
	}
}
