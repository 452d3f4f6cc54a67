package hedge

import (
	"cmp"
	"math"
	"time"

	"github.com/lullgo/lull/internal/problem"
)

// What zero fields of a Config that is on stand for.
const (
	DefaultPercentile = 0.95
	DefaultWindow     = 30 * time.Second
	DefaultMinDelay   = time.Millisecond
	DefaultShare      = 0.1 // with a fixed Delay; else twice what Percentile leaves
	DefaultInFlight   = 100
)

// AtOnce, as a Delay, sends all attempts together, as a hedgingDelay of zero in gRPC.
const AtOnce time.Duration = -1

const (
	// MaxAttempts is the most attempts of a call that may run at a time: gRPC's limit (gRFC
	// A6).
	MaxAttempts = 5

	minPercentile = 0.5
	maxPercentile = 0.999
	minWindow     = time.Second
	maxWindow     = time.Hour
	maxMinSamples = 1_000_000
	maxShare      = MaxAttempts - 1
)

// A Config sets when a second attempt may run beside the first. It is plain, comparable
// data. The zero Config is off; Config{Attempts: 2} is on, with the recommended settings.
type Config struct {
	// Attempts is how many attempts of a call may run at a time, the first included. Zero:
	// hedging is off, and all other fields must be zero. 1: off, and the other fields may
	// stay. At most 5.
	Attempts int

	// Delay is how long after the start of the latest attempt another one is sent, if none
	// has succeeded. Zero, the recommended value: the Percentile of recent latencies.
	// AtOnce: all are sent together.
	Delay time.Duration

	// Percentile is the share of first attempts, 0.5 to 0.999, that end before a hedge is
	// sent. The others are hedged while all is well. Zero: 0.95.
	Percentile float64
	// Window is how far back latencies count, from 1 s to 1 h. It has six slots that expire
	// one at a time. Zero: 30 s.
	Window time.Duration
	// MinSamples is how many successes must be in the window before a call is hedged. Zero:
	// 3 / (1-Percentile), at least 20; 60 for the default Percentile.
	MinSamples int
	// MinDelay is the shortest learned delay. A hedge costs a timer and a goroutine, and
	// cannot gain much on a few hundred microseconds. Zero: 1 ms, or MaxDelay if that is
	// less.
	MinDelay time.Duration
	// MaxDelay is the longest learned delay. Zero: no bound.
	MaxDelay time.Duration

	// Share is the largest share of late calls at which hedges are sent; each hedge that a
	// call asks for counts. If more are late, the dependency is slow, and hedges would be
	// load that it cannot bear. So Share also bounds the extra load. Zero: twice what
	// Percentile leaves (0.1 for the default), or 0.1 with a fixed Delay. Negative: no
	// bound. At most 4. With a learned Delay it is at least what Percentile leaves, with
	// AtOnce at least Attempts-1, because every call is late then.
	Share float64
	// InFlight is how many hedges may be in flight at a time, of all calls. Zero: 100.
	// Negative: no bound.
	InFlight int
}

const (
	allowedAttempts   = "zero (off), or 1 to 5"
	allowedOn         = "2 to 5 attempts, or 1 to keep the other fields and switch hedging off"
	allowedDelay      = "zero (learned), a positive duration, or AtOnce"
	allowedPercentile = "zero (0.95), or a share from 0.5 to 0.999"
	allowedWindow     = "zero (30s), or a duration from 1s to 1h"
	allowedMinSamples = "zero (the default), or a number up to 1000000"
	allowedMinDelay   = "zero (1ms) or a positive duration"
	allowedMaxDelay   = "zero (no bound), or a positive duration of at least MinDelay"
	allowedShare      = "zero (the default), a number of hedges for each call up to 4, or negative for no bound"
	allowedShareTail  = "at least what Percentile leaves, since that many calls are late while all is well, or negative for no bound"
	allowedShareAll   = "at least Attempts-1 with a Delay of AtOnce, since every call is late then, or negative for no bound"
	notLearned        = "zero where Delay is given, since nothing is learned"
)

// Validate returns every mistake in one error, each with its field, or nil.
func (c Config) Validate() error {
	var l problem.List
	l.Check(c.Attempts >= 0 && c.Attempts <= MaxAttempts, "Attempts", c.Attempts, allowedAttempts)
	l.Check(c.Attempts != 0 || c == Config{}, "Attempts", c.Attempts, allowedOn)
	l.Check(c.Delay >= AtOnce, "Delay", c.Delay, allowedDelay)
	if c.Delay == 0 {
		l.Share(c.Percentile == 0 || c.Percentile >= minPercentile && c.Percentile <= maxPercentile, "Percentile", c.Percentile, allowedPercentile)
		l.Check(c.Window == 0 || c.Window >= minWindow && c.Window <= maxWindow, "Window", c.Window, allowedWindow)
		l.Check(c.MinSamples >= 0 && c.MinSamples <= maxMinSamples, "MinSamples", c.MinSamples, allowedMinSamples)
		l.Check(c.MinDelay >= 0, "MinDelay", c.MinDelay, allowedMinDelay)
		l.Check(c.MaxDelay == 0 || c.MaxDelay > 0 && c.MaxDelay >= c.MinDelay, "MaxDelay", c.MaxDelay, allowedMaxDelay)
	} else {
		l.Check(c.Percentile == 0, "Percentile", c.Percentile, notLearned)
		l.Check(c.Window == 0, "Window", c.Window, notLearned)
		l.Check(c.MinSamples == 0, "MinSamples", c.MinSamples, notLearned)
		l.Check(c.MinDelay == 0, "MinDelay", c.MinDelay, notLearned)
		l.Check(c.MaxDelay == 0, "MaxDelay", c.MaxDelay, notLearned)
	}
	switch {
	case !(c.Share <= maxShare):
		l.Share(false, "Share", c.Share, allowedShare)
	case c.Share > 0 && c.Delay == 0 && c.Share < c.tail()-slack:
		l.Add("Share", c.Share, allowedShareTail)
	case c.Share >= 0 && c.Delay == AtOnce && c.Share < float64(c.Attempts-1):
		l.Add("Share", c.Share, allowedShareAll)
	}
	return l.Err()
}

// slack is for decimal fractions, whose sums and products are not exact.
const slack = 1e-9

// tail returns the share of calls that the percentile leaves.
func (c Config) tail() float64 { return 1 - cmp.Or(c.Percentile, DefaultPercentile) }

// rules are a valid Config that is on, with its zeros filled in.
type rules struct {
	delay      time.Duration // fixed
	learns     bool          // instead
	hedges     uint8         // for one call
	percentile float64
	slot       time.Duration // of the window: the window/slots
	minSamples int64
	minDelay   time.Duration
	maxDelay   time.Duration
	share      float64 // infinite: no bound
	earns      int64   // what a call puts into stock
	inFlight   int64
}

func (c Config) rules() rules {
	r := rules{
		delay:      max(c.Delay, 0),
		learns:     c.Delay == 0,
		hedges:     uint8(max(c.Attempts, 1) - 1),
		percentile: 1 - c.tail(),
		slot:       cmp.Or(c.Window, DefaultWindow) / slots,
		minSamples: int64(c.MinSamples),
		maxDelay:   cmp.Or(c.MaxDelay, math.MaxInt64),
		share:      c.Share,
		inFlight:   int64(cmp.Or(c.InFlight, DefaultInFlight)),
	}
	r.minSamples = cmp.Or(r.minSamples, max(20, int64(math.Ceil(3/c.tail()-slack))))
	r.minDelay = min(cmp.Or(c.MinDelay, DefaultMinDelay), r.maxDelay)
	switch {
	case c.Share < 0:
		r.share = math.Inf(1)
	case c.Share == 0 && r.learns:
		r.share = 2 * c.tail()
	case c.Share == 0:
		r.share = DefaultShare
	}
	r.earns = int64(min(r.share, stocked) * unit)
	if r.inFlight < 0 {
		r.inFlight = math.MaxInt64
	}
	return r
}
