package admission

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/lullgo/lull/internal/problem"
)

// What the zero Config means.
const (
	DefaultMax        = 10_000
	DefaultMaxWait    = 100 * time.Millisecond
	DefaultMaxQueue   = 1000
	DefaultRetryRatio = 0.2
)

// MaxLimit is the largest number of requests in flight, or waiting, that can be set.
const MaxLimit = 1_000_000

// maxRatio is the largest RetryRatio: no client sends more retries.
const maxRatio = 10

// Config sets how many requests are worked on at a time, how long others may wait,
// and how many of them may be retries. It is plain, comparable data; the zero Config
// is the recommended one.
type Config struct {
	// Limit is the number of requests in flight. Zero, the recommended value: the limit is
	// Max until there is evidence of overload, and then adapts by comparing throughputs. Min and
	// Max bound it.
	Limit int
	// Min is the least adaptive limit. Zero: 1. A connection pool of ten that all
	// requests need is a reason for a Min of ten, or for a Limit of ten.
	Min int
	// Max is the largest adaptive limit: as many requests as the process can hold at a time.
	// Zero: 10,000, or Min if that is more. A process that has no memory for so many requests
	// needs a Max; one that holds more without overload, a larger one.
	Max int

	// MaxWait is the longest that a request may wait for its turn. Zero: 100 ms, or
	// twice the recent mean time of a request if that is longer, but at most a second.
	// With a shorter wait the queue may be empty when a place becomes free. Negative:
	// nobody waits.
	MaxWait time.Duration
	// PressedWait is the longest that a request may wait once requests have waited, or
	// were refused, for longer than MaxWait. Zero: twice the recent mean time of a
	// request, but at least 5 ms, and at most MaxWait.
	PressedWait time.Duration
	// MaxQueue is how many may wait. Zero: 1000.
	MaxQueue int

	// RetryRatio is how many retries and hedges are let in for each first attempt of
	// the last ten seconds; ten more are always let in. Zero: 0.2. Negative: any number.
	RetryRatio float64
}

var allowedLimit = fmt.Sprintf("a number from 1 to %d", MaxLimit)

// Validate returns all mistakes in c as one error, each with the name of its field, its
// value, and what is allowed; nil if there are none.
func (c Config) Validate() error {
	var l problem.List
	number := func(field string, n int, zero string) bool {
		ok := n >= 0 && n <= MaxLimit
		l.Check(ok, field, n, "zero ("+zero+"), or "+allowedLimit)
		return ok
	}
	number("Limit", c.Limit, "adaptive")
	if c.Limit > 0 {
		const adaptive = "zero beside a Limit, which does not adapt"
		l.Check(c.Min == 0, "Min", c.Min, adaptive)
		l.Check(c.Max == 0, "Max", c.Max, adaptive)
	} else {
		number("Min", c.Min, "1")
		if number("Max", c.Max, "10000") {
			l.Check(c.Max == 0 || c.Max >= c.Min, "Max", c.Max, fmt.Sprintf("no less than the Min of %d", c.Min))
		}
	}
	l.Check(c.PressedWait >= 0, "PressedWait", c.PressedWait, "zero (twice the mean time of a request), or a positive duration")
	if c.MaxWait < 0 {
		const nobody = "zero beside a negative MaxWait: nobody waits"
		l.Check(c.PressedWait <= 0, "PressedWait", c.PressedWait, nobody)
		l.Check(c.MaxQueue == 0, "MaxQueue", c.MaxQueue, nobody)
	} else {
		l.Check(c.MaxWait == 0 || c.PressedWait <= c.MaxWait, "PressedWait", c.PressedWait, "no more than the MaxWait of "+c.MaxWait.String())
		number("MaxQueue", c.MaxQueue, "1000")
	}
	l.Share(!math.IsNaN(c.RetryRatio) && c.RetryRatio <= maxRatio, "RetryRatio", c.RetryRatio, "zero (0.2), a ratio of up to 10, or a negative number for any")
	l.Units(c)
	return l.Err()
}

// rules is a Config with its defaults filled in.
type rules struct {
	fixed       bool
	maxWait     time.Duration // 0: learned
	pressedWait time.Duration // 0: learned
	queue       int           // 0: nobody waits
	ratio       float64
	anyRatio    bool
}

func (c Config) rules() (r rules, k knee) {
	r = rules{
		fixed:       c.Limit > 0,
		maxWait:     max(c.MaxWait, 0),
		pressedWait: c.PressedWait,
		queue:       cmp.Or(c.MaxQueue, DefaultMaxQueue),
		ratio:       cmp.Or(c.RetryRatio, DefaultRetryRatio),
		anyRatio:    c.RetryRatio < 0,
	}
	if c.MaxWait < 0 {
		r.queue = 0
	}
	if r.fixed {
		return r, newKnee(c.Limit, c.Limit)
	}
	least := cmp.Or(c.Min, 1)
	most := cmp.Or(c.Max, max(DefaultMax, least))
	return r, newKnee(least, most)
}
