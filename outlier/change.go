package outlier

import (
	"fmt"
	"time"
)

// A Change is the event that listeners get: an endpoint was ejected, returned, or spared.
type Change struct {
	Key    string
	Kind   ChangeKind
	Reason ChangeReason
	// At is when it took effect. For a sweep that is when it was due; it runs when the next
	// call comes.
	At time.Duration
	// Until is the end of the ejection; zero unless Kind is Ejected. The next sweep takes
	// the endpoint back.
	Until time.Duration
	// Ejections is how often the endpoint was ejected since it came into the set, including
	// this time.
	Ejections int64
	// Calls and Failures are the evidence against it: the calls of the last interval, or
	// the failures in a row. Zero when it comes back.
	Calls, Failures int64
	// Usual is the success rate that it was compared with: the median of the others, the
	// mean, or for a row the rate of the others meanwhile. Threshold is the least rate that
	// is no outlier. Zero: there is none.
	Usual, Threshold float64
}

// String returns a line for a log, such as
// "10.0.0.7:80 ejected: success rate (31 of 60 failed)".
func (c Change) String() string {
	s := fmt.Sprintf("%s %v: %v", c.Key, c.Kind, c.Reason)
	if c.Calls > 0 {
		s += fmt.Sprintf(" (%d of %d failed)", c.Failures, c.Calls)
	}
	return s
}
