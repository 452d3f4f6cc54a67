package throttle

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/lullgo/lull/internal/problem"
)

// What the zeros of a Config stand for.
const (
	DefaultWindow      = 2 * time.Minute
	DefaultK           = 2.0
	DefaultMinRequests = 10
	DefaultMinRate     = 0.5 // attempts per second
	DefaultFallEvery   = time.Second
)

// What parts of the Window Recent and ProbeEvery are.
const (
	recentPart = 12
	probePart  = 4
)

// The limits that Validate holds a Config to.
const (
	MinWindow  = time.Second
	MinK       = 1.05
	MaxK       = 1000.0
	MinMinRate = 0.001 // attempts per second
	MaxMinRate = 1e6
)

// A Config chooses a throttle. It is plain, comparable data. The zero Config is
// off; Config{Mode: Adaptive} and Config{Mode: Cubic} are the recommended settings
// of the two. A field of the mode that is not chosen is checked and has no effect.
type Config struct {
	// Mode chooses the mechanism. Zero: Off.
	Mode Mode

	// Window is how long what happened counts. Under Adaptive, how far back requests
	// and accepts reach: the window is cut into 30 slots that leave one at a time.
	// Under Cubic, how long after the last rate-limited answer attempts are held to a
	// rate; after that they pass freely until the next. Zero: 2 minutes. At least 1 s.
	Window time.Duration

	// K, for Adaptive, is how many requests there may be for each accept before any
	// is refused. 2 sends up to one request that is refused by the backend for each
	// that is accepted. 1.1 sends one for ten, and takes several times as long to be
	// back after an outage. Zero: 2. Otherwise 1.05 to 1000.
	K float64
	// MinRequests, for Adaptive, is how many requests the Window must hold before any
	// is refused. Zero: 10.
	MinRequests int
	// Recent, for Adaptive, is how far back there must be too few accepts as well, for
	// an attempt to be refused. It is rounded up to a thirtieth of the Window. Zero: a
	// twelfth of the Window, 10 s. The Window itself: the book's formula alone.
	Recent time.Duration
	// ProbeEvery, for Adaptive, is how long attempts may be refused in a row: after
	// that the next one passes. The processes of a fleet do so each. Zero: a quarter
	// of the Window, 30 s. Negative: none passes but by chance, which lets one attempt
	// pass in about every Recent.
	ProbeEvery time.Duration

	// MinRate, for Cubic, is the rate in attempts per second below which rate-limited
	// answers do not push it. The processes of a fleet have it each. Zero: 0.5, as in
	// the SDKs. Otherwise 0.001 to a million.
	MinRate float64
	// FallEvery, for Cubic, is how long further rate-limited answers do not lower the
	// rate after one has. Zero: 1 s, for which the bucket holds attempts. Negative:
	// each of them lowers it, as in the SDKs.
	FallEvery time.Duration
	// MaxWait, for Cubic, is the longest wait: an attempt that would have to wait for
	// longer is refused. Zero: 1/MinRate, 2 s, so that attempts that come one at a
	// time are delayed and never refused. Negative: no attempt waits, what cannot go
	// at once is refused (FailOnNoAttemptTokens of aws-sdk-go-v2). The SDKs have no
	// limit: the longest duration.
	MaxWait time.Duration
}

// The texts of what Validate allows, made once: a simulator validates millions.
var (
	allowedMode    = "Off, Adaptive or Cubic"
	allowedWindow  = fmt.Sprintf("zero (%v), or a duration of at least %v", DefaultWindow, MinWindow)
	allowedK       = fmt.Sprintf("zero (%v), or a number from %v to %v", DefaultK, MinK, MaxK)
	allowedRecent  = "zero (a twelfth of Window), or a positive duration up to Window"
	allowedMinRate = fmt.Sprintf("zero (%v), or attempts per second from %v to %.0f", DefaultMinRate, MinMinRate, MaxMinRate)
)

// Validate reports every field that is out of its limits.
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

// LongestWait is the longest that Ask may delay an attempt: zero but for Cubic.
func (c Config) LongestWait() time.Duration {
	if c.Mode != Cubic {
		return 0
	}
	return c.rules().maxWait
}

// rules is a valid Config with its zeros filled in, ready to be applied.
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
	if r.probeEvery == 0 {
		r.probeEvery = r.window / probePart
	}
	r.maxWait = max(0, cmp.Or(c.MaxWait, seconds(1/r.minRate)))
	return r
}

// seconds is a number of them as a duration, rounded up but for a thousandth of a
// nanosecond, which is an error of the arithmetic, and the longest if it is longer
// than that.
func seconds(s float64) time.Duration {
	ns := math.Ceil(s*1e9 - 1e-3)
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}
