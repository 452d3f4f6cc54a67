package breaker

import (
	"cmp"
	"math"
	"time"

	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/internal/saturating"
)

// What the zero Config stands for. Provisional: the simulator will settle them.
const (
	DefaultWindow       = 10 * time.Second
	DefaultFailureRate  = 0.5
	DefaultMinCalls     = 20
	DefaultOpenFor      = 5 * time.Second
	DefaultOpenMax      = 30 * time.Second
	DefaultOpenJitter   = 0.5
	DefaultProbes       = 1
	DefaultProbeTimeout = 10 * time.Second
)

// The outer bounds of what Validate lets pass.
const (
	minWindow = time.Millisecond
	maxJitter = 10
	maxProbes = 1000
)

// A Config says when a breaker opens and how it closes again. It is plain,
// comparable data; the zero Config is the recommended one.
type Config struct {
	// Off: the breaker never opens, not even when forced, and counts nothing.
	Off bool

	// Window is how far back calls are judged. Zero: 10 s. At least 1 ms.
	Window time.Duration
	// FailureRate is the share of failed calls, in (0,1], at which the breaker
	// opens. It is taken as the decimal number it prints as and compared without
	// rounding: 0.1 is reached by 10 calls of 100, 0.5 not by 99 of 200.
	// Zero: 0.5. Negative: this rule is off.
	FailureRate float64
	// MinCalls is how many calls must have started in the window before a rate
	// means anything. Zero: 20.
	MinCalls int
	// Consecutive opens the breaker after so many failures in a row, in the order
	// in which they are reported and without a minimum of calls. Failures that
	// return sooner than successes come out of turn, so use it for calls made one
	// after the other. Zero: off.
	Consecutive int
	// SlowRate is the share of calls slower than SlowCall, in (0,1], at which the
	// breaker opens. While it is on, a probe slower than SlowCall has failed.
	// Zero: off.
	SlowRate float64
	// SlowCall is the duration beyond which a call is slow, whatever its outcome.
	// Needed with SlowRate, ignored without.
	SlowCall time.Duration

	// OpenFor is the open time, before jitter, of the first opening. It doubles
	// with each opening until the breaker has stayed closed for a whole Window.
	// Zero: 5 s.
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
	// failed. Longer than the calls that it guards may take. Zero: 10 s.
	ProbeTimeout time.Duration

	// MetricsOnly: calls are counted and listeners hear what the breaker would
	// have done, but no call is refused, not even when forced open, and State
	// says Closed.
	MetricsOnly bool
}

// Validate reports every mistake at once, each naming its field. Nil: none.
func (c Config) Validate() error {
	var l problem.List
	l.Check(c.Window == 0 || c.Window >= minWindow, "Window", c.Window, "zero or at least 1ms")
	l.Check(c.FailureRate <= 1, "FailureRate", c.FailureRate, "a share above 0 and up to 1, zero for the default, or negative for none")
	l.Check(c.MinCalls >= 0, "MinCalls", c.MinCalls, "zero or a positive number")
	l.Check(c.Consecutive >= 0, "Consecutive", c.Consecutive, "zero or a positive number")
	l.Check(c.SlowRate >= 0 && c.SlowRate <= 1, "SlowRate", c.SlowRate, "a share above 0 and up to 1, or zero for none")
	l.Check(c.SlowCall > 0 || c.SlowCall == 0 && !(c.SlowRate > 0), "SlowCall", c.SlowCall, "a positive duration when SlowRate is set, else zero or positive")
	l.Check(c.OpenFor >= 0, "OpenFor", c.OpenFor, "zero or a positive duration")
	l.Check(c.OpenMax == 0 || c.OpenMax > 0 && c.OpenMax >= c.OpenFor, "OpenMax", c.OpenMax, "zero or a positive duration of at least OpenFor")
	l.Check(c.OpenJitter <= maxJitter, "OpenJitter", c.OpenJitter, "at most 10, zero for the default, or negative for none")
	l.Check(c.Probes >= 0 && c.Probes <= maxProbes, "Probes", c.Probes, "zero or 1 to 1000")
	l.Check(c.ProbeTimeout >= 0, "ProbeTimeout", c.ProbeTimeout, "zero or a positive duration")
	return l.Err()
}

// rules is a valid Config with its zeros filled in, ready to be applied.
type rules struct {
	window       time.Duration
	slot         time.Duration // width of a slot: window/slotsPerWindow
	failure      ratio
	slow         ratio
	slowCall     time.Duration
	minCalls     int64
	consecutive  int64
	openFor      time.Duration // before jitter, not above openTop
	openTop      time.Duration // most before jitter
	openMax      time.Duration // most after jitter
	jitter       float64
	probeTimeout time.Duration
	probes       int32
	metricsOnly  bool
	plain        bool // a success needs no attention: no consecutive and no slow rule
}

func (c Config) rules() rules {
	r := rules{
		window:       cmp.Or(c.Window, DefaultWindow),
		failure:      newRatio(cmp.Or(c.FailureRate, DefaultFailureRate)),
		slow:         newRatio(c.SlowRate),
		slowCall:     c.SlowCall,
		minCalls:     int64(cmp.Or(c.MinCalls, DefaultMinCalls)),
		consecutive:  int64(c.Consecutive),
		openFor:      cmp.Or(c.OpenFor, DefaultOpenFor),
		openMax:      cmp.Or(c.OpenMax, max(DefaultOpenMax, saturating.Add(c.OpenFor, c.OpenFor))),
		jitter:       max(0, cmp.Or(c.OpenJitter, DefaultOpenJitter)),
		probes:       int32(cmp.Or(c.Probes, DefaultProbes)),
		probeTimeout: cmp.Or(c.ProbeTimeout, DefaultProbeTimeout),
		metricsOnly:  c.MetricsOnly,
	}
	r.slot = r.window / slotsPerWindow
	r.plain = r.consecutive == 0 && r.slow == 0
	r.openTop = r.openMax
	if top := float64(r.openMax) / (1 + r.jitter); top < float64(r.openMax) {
		r.openTop = time.Duration(top)
	}
	r.openFor = min(r.openFor, r.openTop)
	return r
}

// since is to-from, held at the longest duration, and zero when to lies before
// from: clocks of different goroutines may be read out of order.
func since(from, to time.Duration) time.Duration {
	if to <= from {
		return 0
	}
	if d := to - from; d > 0 {
		return d
	}
	return math.MaxInt64
}
