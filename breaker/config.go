package breaker

import (
	"cmp"
	"time"

	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/internal/saturating"
)

// What the zero Config stands for.
const (
	DefaultConsecutive    = 3
	DefaultConsecutiveFor = 2 * time.Second
	DefaultWindow         = 10 * time.Second
	DefaultMinCalls       = 20
	DefaultOpenMax        = 30 * time.Second
	DefaultOpenJitter     = 0.5
	DefaultProbes         = 1
	DefaultProbeTimeout   = 10 * time.Second
)

// The outer bounds of what Validate lets pass.
const (
	minWindow = time.Millisecond
	maxJitter = 10
	maxProbes = 1000
)

// A Config sets when a breaker opens and how it closes again. It is plain,
// comparable data; the zero Config is the recommended one.
type Config struct {
	// Off: the breaker never opens, not even when forced, and counts nothing.
	Off bool

	// Consecutive is how many failures in a row open the breaker, in the order in
	// which they are reported, once the first and the last of them ended
	// ConsecutiveFor apart. A success in between starts the count over; a neutral
	// call does not. Zero: 3. Negative: this rule is off.
	Consecutive int
	// ConsecutiveFor is how long there must have been nothing but failures, from
	// the end of the first in the row to the end of the last. Zero: 2 s, or twice as long
	// as successes usually take, if the failures took less and the caller knows that
	// (DoneUsually).
	// Negative: no minimum; use that only for calls made one after the other, since
	// failures that return sooner than successes come out of turn.
	// Within a Window of the last closing (or twice what the probe took that closed
	// the breaker, if that is more) three times Consecutive failures in a tenth of
	// that time do as well; but then it is no less than the probe took.
	ConsecutiveFor time.Duration

	// FailureRate is the share of failed calls, in (0,1], at which the breaker
	// opens. It is taken as the decimal number it prints as and compared without
	// rounding: 0.1 is reached by 10 calls of 100, 0.5 not by 99 of 200.
	// Zero: this rule is off.
	FailureRate float64
	// SlowRate is the share of calls slower than SlowCall, in (0,1], at which the
	// breaker opens. While it is on, a probe slower than SlowCall has failed.
	// Zero: off.
	SlowRate float64
	// SlowCall is the duration beyond which a call is slow, whatever its outcome.
	// Needed with SlowRate, ignored without.
	SlowCall time.Duration
	// MinCalls is how many calls must have started in the window before a rate
	// means anything. Zero: 20.
	MinCalls int
	// Window is how far back calls are judged by their rates. A breaker that has
	// stayed closed for as long counts as recovered. Zero: 10 s. At least 1 ms.
	Window time.Duration

	// OpenFor is the open time, before jitter. Zero, the recommended value, fits
	// it to the outage at each opening: a tenth of the time that has passed since
	// the first failure of the row, or since a Window before the opening if a rate
	// opened it; but at most ten times as long as the failed call took that opened
	// it, from Start to Done, or the failed probe. So an outage that is felt as
	// waiting keeps the breaker open for longer the longer it lasts, and errors
	// that return at once for next to nothing (1 ns at least).
	// Any other value is the open time of the first opening, whatever the calls
	// took. It doubles with each opening until the breaker has stayed closed for a
	// whole Window.
	OpenFor time.Duration
	// OpenMax is the longest open time, jitter included. Where it leaves no room
	// for the jitter the open time starts lower: at most OpenMax/(1+OpenJitter).
	// Zero: 30 s, or twice OpenFor if that is longer.
	OpenMax time.Duration
	// OpenJitter spreads the open time d uniformly over [d, d×(1+OpenJitter)], so
	// that a fleet does not come back in step. At most 10. Zero: 0.5. Negative: none.
	OpenJitter float64

	// Probes is how many calls a half-open breaker admits at a time, and how many
	// successes in a row it needs to close. At most 1000. Zero: 1.
	Probes int
	// ProbeTimeout is how long a probe may go unreported before it counts as
	// failed, or succeeded if it was Accepted. Longer than the calls that it guards may
	// take. Zero: 10 s.
	ProbeTimeout time.Duration

	// MetricsOnly: calls are counted and listeners are called with what the breaker
	// would have done, but no call is refused, not even when forced open, and State
	// returns Closed.
	MetricsOnly bool
}

// Validate reports every mistake at once, each naming its field. Nil: none.
func (c Config) Validate() error {
	var l problem.List
	l.Share(c.FailureRate >= 0 && c.FailureRate <= 1, "FailureRate", c.FailureRate, "a share above 0 and up to 1, or zero for none")
	l.Share(c.SlowRate >= 0 && c.SlowRate <= 1, "SlowRate", c.SlowRate, "a share above 0 and up to 1, or zero for none")
	l.Check(c.SlowCall > 0 || c.SlowCall == 0 && !(c.SlowRate > 0), "SlowCall", c.SlowCall, "a positive duration when SlowRate is set, else zero or positive")
	l.Check(c.MinCalls >= 0, "MinCalls", c.MinCalls, "zero or a positive number")
	l.Check(c.Window == 0 || c.Window >= minWindow, "Window", c.Window, "zero or at least 1ms")
	l.Check(c.OpenFor >= 0, "OpenFor", c.OpenFor, "zero or a positive duration")
	l.Check(c.OpenMax == 0 || c.OpenMax > 0 && c.OpenMax >= c.OpenFor, "OpenMax", c.OpenMax, "zero or a positive duration of at least OpenFor")
	l.Check(c.OpenJitter <= maxJitter, "OpenJitter", c.OpenJitter, "at most 10, zero for the default, or negative for none")
	l.Check(c.Probes >= 0 && c.Probes <= maxProbes, "Probes", c.Probes, "zero or 1 to 1000")
	l.Check(c.ProbeTimeout >= 0, "ProbeTimeout", c.ProbeTimeout, "zero or a positive duration")
	return l.Err()
}

// Pristine reports whether a breaker with this configuration that has seen nothing
// but successes and neutral calls is as good as new: it judges by failures in a
// row alone. Whoever has many dependencies may then make the breaker of one at
// its first failure; see LateTicket.
func (c Config) CanStartLate() bool { return c.Off || !(c.FailureRate > 0) && !(c.SlowRate > 0) }

// rules is a valid Config with its zeros filled in, ready to be applied.
type rules struct {
	consecutive      int64 // zero: off
	consecutiveFor   time.Duration
	rowFitsSuccesses bool // consecutiveFor may be longer where successes take long
	failure          ratio
	slow             ratio
	slowCall         time.Duration
	minCalls         int64
	window           time.Duration
	slot             time.Duration // width of a slot: window/slotsPerWindow
	openFor          time.Duration // before jitter, not above openTop; zero: fitted to the outage
	openTop          time.Duration // most before jitter
	openMax          time.Duration // most after jitter
	jitter           float64
	probeTimeout     time.Duration
	probes           int32
	metricsOnly      bool
	off              bool
	counting         bool // calls are counted by their starts, for a rate

	listeners []func(Change)
}

func (c Config) rules() rules {
	r := rules{
		consecutive:      int64(max(0, cmp.Or(c.Consecutive, DefaultConsecutive))),
		consecutiveFor:   max(0, cmp.Or(c.ConsecutiveFor, DefaultConsecutiveFor)),
		rowFitsSuccesses: c.ConsecutiveFor == 0,
		failure:          newRatio(c.FailureRate),
		slow:             newRatio(c.SlowRate),
		slowCall:         c.SlowCall,
		minCalls:         int64(cmp.Or(c.MinCalls, DefaultMinCalls)),
		window:           cmp.Or(c.Window, DefaultWindow),
		openFor:          c.OpenFor,
		openMax:          cmp.Or(c.OpenMax, max(DefaultOpenMax, saturating.Add(c.OpenFor, c.OpenFor))),
		jitter:           max(0, cmp.Or(c.OpenJitter, DefaultOpenJitter)),
		probes:           int32(cmp.Or(c.Probes, DefaultProbes)),
		probeTimeout:     cmp.Or(c.ProbeTimeout, DefaultProbeTimeout),
		metricsOnly:      c.MetricsOnly,
		off:              c.Off,
	}
	r.slot = r.window / slotsPerWindow
	r.counting = r.failure != 0 || r.slow != 0
	r.openTop = r.openMax
	if top := float64(r.openMax) / (1 + r.jitter); top < float64(r.openMax) {
		r.openTop = time.Duration(top)
	}
	r.openFor = min(r.openFor, r.openTop)
	return r
}
