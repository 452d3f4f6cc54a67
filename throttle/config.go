package throttle

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/lullgo/lull/internal/problem"
)

// What zero fields of a Config stand for.
const (
	DefaultWindow      = 2 * time.Minute
	DefaultK           = 2.0
	DefaultMinRequests = 10
	DefaultMinRate     = 0.5 // attempts per second
	DefaultFallEvery   = time.Second
)

// Recent and ProbeEvery as parts of the Window.
const (
	recentPart = 12
	probePart  = 4
)

// The limits of the fields of a Config.
const (
	MinWindow  = time.Second
	MinK       = 1.05
	MaxK       = 1000.0
	MinMinRate = 0.001 // attempts per second
	MaxMinRate = 1e6
)

// A Config chooses a throttle. It is plain, comparable data. The zero Config is off;
// Config{Mode: Adaptive} and Config{Mode: Cubic} are recommended settings. Fields of the
// other mode are checked, but have no effect.
type Config struct {
	// Mode chooses the mechanism. Zero: Off.
	Mode Mode

	// Window is, for Adaptive, how far back requests and accepts count, in 30 slots that
	// expire one at a time. For Cubic, it is how long after the last rate-limited answer
	// attempts are held to a rate. Zero: 2 minutes. At least 1 s.
	Window time.Duration

	// K, for Adaptive, is how many requests there may be for each accept before any is
	// refused. With 2, the backend refuses up to one for each that it accepts; with 1.1 one
	// for ten, and a recovery takes several times as long. Zero: 2. Otherwise 1.05 to 1000.
	K float64
	// MinRequests, for Adaptive, is how many requests must be in the Window before any is
	// refused. Zero: 10.
	MinRequests int
	// Recent, for Adaptive, is a shorter window that must also have too few accepts. It is
	// rounded up to a thirtieth of the Window. Zero: a twelfth of the Window, 10 s. The
	// Window itself: the book's formula alone.
	Recent time.Duration
	// ProbeEvery, for Adaptive, is how long attempts may be refused before one passes, in
	// each process. Zero: a quarter of the Window, 30 s. Negative: attempts pass only by
	// chance, about one in each Recent.
	ProbeEvery time.Duration

	// MinRate, for Cubic, is the lowest rate in attempts per second, of each process. Zero:
	// 0.5, as in the SDKs. Otherwise 0.001 to a million.
	MinRate float64
	// FallEvery, for Cubic, is for how long after a fall of the rate further rate-limited
	// answers do not lower it. Zero: 1 s. Negative: each of them lowers it, as in the SDKs.
	FallEvery time.Duration
	// MaxWait, for Cubic, is the longest wait; an attempt that would wait for longer is
	// refused. Zero: 1/MinRate, 2 s, so attempts that come one at a time are never refused.
	// Negative: no attempt waits (FailOnNoAttemptTokens of aws-sdk-go-v2). The longest
	// duration: no limit, as in the SDKs.
	MaxWait time.Duration
}

// Made once: a simulator validates millions of configurations.
var (
	allowedMode    = "Off, Adaptive or Cubic"
	allowedWindow  = fmt.Sprintf("zero (%v), or a duration of at least %v", DefaultWindow, MinWindow)
	allowedK       = fmt.Sprintf("zero (%v), or a number from %v to %v", DefaultK, MinK, MaxK)
	allowedRecent  = "zero (a twelfth of Window), or a positive duration up to Window"
	allowedMinRate = fmt.Sprintf("zero (%v), or attempts per second from %v to %.0f", DefaultMinRate, MinMinRate, MaxMinRate)
)

// Validate returns every mistake in one error, each with its field, or nil.
func (c Config) Validate() error {
	var l problem.List
	l.Check(c.Mode <= Cubic, "Mode", c.Mode, allowedMode)
	l.Check(c.Window == 0 || c.Window >= MinWindow, "Window", c.Window, allowedWindow)
	l.Check(c.K == 0 || c.K >= MinK && c.K <= MaxK, "K", c.K, allowedK)
	l.Check(c.MinRequests >= 0, "MinRequests", c.MinRequests, "zero or a positive number")
	l.Check(c.Recent >= 0 && c.Recent <= max(cmp.Or(c.Window, DefaultWindow), MinWindow), "Recent", c.Recent, allowedRecent)
	l.Check(c.MinRate == 0 || c.MinRate >= MinMinRate && c.MinRate <= MaxMinRate, "MinRate", c.MinRate, allowedMinRate)
	return l.Err()
}

// LongestWait returns the longest wait that Start can return: zero except for Cubic.
func (c Config) LongestWait() time.Duration {
	if c.Mode != Cubic {
		return 0
	}
	return c.rules().maxWait
}

// rules are a valid Config with its zeros filled in.
type rules struct {
	mode   Mode
	window time.Duration

	// Adaptive
	slot        time.Duration // width of a slot of the window
	recent      int           // slots
	minRequests int64
	k           float64
	probeEvery  time.Duration // negative: never

	// Cubic
	curve     curve
	minRate   float64
	fallEvery time.Duration
	maxWait   time.Duration
}

func (c Config) rules() rules {
	r := rules{
		mode:        c.Mode,
		window:      cmp.Or(c.Window, DefaultWindow),
		k:           cmp.Or(c.K, DefaultK),
		minRequests: int64(cmp.Or(c.MinRequests, DefaultMinRequests)),
		curve:       awsCurve,
		minRate:     cmp.Or(c.MinRate, DefaultMinRate),
		fallEvery:   cmp.Or(c.FallEvery, DefaultFallEvery),
		probeEvery:  c.ProbeEvery,
	}
	r.slot = max(r.window/slots, 1) // LongestWait is asked of what is not valid too
	recent := cmp.Or(c.Recent, r.window/recentPart)
	r.recent = min(slots, int((recent-1)/r.slot)+1)
	r.probeEvery = cmp.Or(r.probeEvery, r.window/probePart)
	r.maxWait = max(0, cmp.Or(c.MaxWait, seconds(1/r.minRate)))
	return r
}

// seconds returns s seconds as a duration, rounded up except for a thousandth of a
// nanosecond, and at most the longest duration.
func seconds(s float64) time.Duration {
	ns := math.Ceil(s*1e9 - 1e-3)
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}
