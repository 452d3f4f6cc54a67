package bulkhead

import (
	"fmt"
	"math"
	"time"

	"github.com/lullgo/lull/internal/problem"
)

// MaxLimit is the largest InFlight and the largest MaxQueue that can be set.
const MaxLimit = math.MaxInt32

// Config sets how many calls may be in flight, and how long others may wait. The zero
// Config limits nothing.
type Config struct {
	// InFlight is the number of calls that may be in flight. Zero: no limit.
	InFlight int
	// MaxWait is how long a call may wait for a permit. Zero: it is refused at once.
	MaxWait time.Duration
	// MaxQueue is how many calls may wait at a time. Zero: as many as InFlight.
	MaxQueue int
}

// Validate returns every mistake in one error, each with its field, or nil. A field without
// an effect must be zero.
func (c Config) Validate() error {
	var l problem.List
	number := fmt.Sprintf("zero or a positive number of at most %d", MaxLimit)
	l.Check(c.InFlight >= 0 && c.InFlight <= MaxLimit, "InFlight", c.InFlight, number)
	switch {
	case c.MaxWait < 0:
		l.Add("MaxWait", c.MaxWait, "zero or a positive duration")
	case c.MaxWait > 0 && c.InFlight == 0:
		l.Add("MaxWait", c.MaxWait, "zero, because nobody waits where InFlight is zero")
	}
	switch {
	case c.MaxQueue < 0 || c.MaxQueue > MaxLimit:
		l.Add("MaxQueue", c.MaxQueue, number)
	case c.MaxQueue > 0 && c.MaxWait == 0:
		l.Add("MaxQueue", c.MaxQueue, "zero, because without a MaxWait nobody waits")
	}
	return l.Err()
}
