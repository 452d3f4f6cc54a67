package breaker

import (
	"cmp"
	"time"

	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/internal/saturating"
)

// What zero fields of a Config stand for.
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

const (
	minWindow = time.Millisecond
	maxJitter = 10
	maxProbes = 1000
)

// A Config sets when a breaker opens and how it closes again. It is plain, comparable data;
// the zero Config is the recommended one.
type Config struct {
	// Off: the breaker never opens, not even if forced, and counts nothing.
	Off bool

	// Consecutive is how many failures in a row open the breaker, if the row lasts for
	// ConsecutiveFor. Failures are taken in the order of their reports. A success ends the
	// row, a neutral call does not. Zero: 3. Negative: this rule is off.
	Consecutive int
	// ConsecutiveFor is how long the row must last, from the end of its first failure to
	// the end of its last. Zero: 2 s, or longer if successes take long (see
	// DoneWithUsualTime). Negative: no minimum; that is for calls made one after the other,
	// where no failure can overtake a success.
	//
	// Soon after a closing, three times Consecutive failures in a tenth of ConsecutiveFor
	// are enough. Soon is within a Window, or within twice the time of the probe that
	// closed the breaker if that is longer. Then the row must also last for as long as that
	// probe took.
	ConsecutiveFor time.Duration

	// FailureRate is the share of failed calls, above 0 and up to 1, at which the breaker
	// opens. Shares are compared as decimal numbers, without rounding: 10 of 100 reach 0.1,
	// 99 of 200 do not reach 0.5. Zero: this rule is off.
	FailureRate float64
	// SlowRate is the share of slow calls, above 0 and up to 1, at which the breaker opens.
	// If it is set, a slow probe has failed. Zero: this rule is off.
	SlowRate float64
	// SlowCall is the time above which a call is slow, however it ended. SlowRate needs it.
	SlowCall time.Duration
	// MinCalls is how many calls must have started in the window for a rate to count. Zero:
	// 20.
	MinCalls int
	// Window is the time over which rates are taken. A breaker that has stayed closed for a
	// Window has recovered. Zero: 10 s. At least 1 ms.
	Window time.Duration

	// OpenFor is the open time of the first opening, before jitter. It doubles with each
	// opening until the breaker has stayed closed for a Window.
	//
	// Zero, the recommended value, fits each open time to the outage: it is a tenth of the
	// time since the outage began, but at most ten times as long as the failed call took.
	// The outage began with the first failure of the row; if a rate opened the breaker, a
	// Window before. So after failures that take long the breaker stays open for longer,
	// and after errors that return at once only for a moment (1 ns at least).
	OpenFor time.Duration
	// OpenMax is the longest open time, jitter included; before jitter it is
	// OpenMax/(1+OpenJitter). Zero: 30 s, or twice OpenFor if that is longer.
	OpenMax time.Duration
	// OpenJitter spreads the open time d uniformly over [d, d×(1+OpenJitter)], so that the
	// processes of a fleet do not come back together. At most 10. Zero: 0.5. Negative:
	// none.
	OpenJitter float64

	// Probes is how many calls a half-open breaker admits at a time, and how many successes
	// in a row close it. At most 1000. Zero: 1.
	Probes int
	// ProbeTimeout is the time after which a probe that was not reported has failed, or
	// succeeded if it was Accepted. It must be longer than calls take. Zero: 10 s.
	ProbeTimeout time.Duration

	// MetricsOnly: calls are counted, and listeners get the changes that would have been
	// made, but no call is refused, and State returns Closed.
	MetricsOnly bool
}

// Validate returns every mistake in one error, each with its field, or nil.
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

// CanStartLate reports whether successes and neutral calls leave a new breaker unchanged:
// it judges by failures in a row alone. Then it can be made at the first failure; see
// LateTicket.
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
