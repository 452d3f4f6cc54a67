package breaker

import (
	"fmt"
	"time"

	"github.com/lullgo/lull/internal/choice"
)

// CircuitState decides what a breaker does with the next call.
type CircuitState uint8

const (
	// Closed: calls pass.
	Closed CircuitState = iota
	// Open: calls are refused.
	Open
	// HalfOpen: a few probes pass, other calls are refused.
	HalfOpen
)

var (
	stateNames    = []string{"closed", "open", "half-open"}
	evidenceNames = []string{"success", "failure", "neutral"}
	reasonNames   = []string{
		"failure rate", "consecutive failures", "slow rate", "probe failed", "probe timed out", "probes succeeded", "forced",
		"open time passed",
	}
)

// String is "closed", "open" or "half-open".
func (s CircuitState) String() string { return choice.Name("unknown", stateNames, s) }

// MarshalText is String, for a CircuitState that is one.
func (s CircuitState) MarshalText() ([]byte, error) { return choice.Marshal("State", stateNames, s) }

// UnmarshalText reads the text of MarshalText, in any case.
func (s *CircuitState) UnmarshalText(text []byte) error {
	return choice.Unmarshal("State", stateNames, s, text)
}

// Evidence is what the end of a call shows about the dependency.
type Evidence uint8

const (
	// Success counts in the dependency's favour.
	Success Evidence = iota
	// Failure counts against it.
	Failure
	// Neutral shows nothing: the caller went away, or the call was refused on our side. The
	// call is forgotten. Other values count as Neutral.
	Neutral
)

// String is "success", "failure" or "neutral".
func (o Evidence) String() string { return choice.Name("unknown", evidenceNames, o) }

// ChangeReason is why a breaker changed its state.
type ChangeReason uint8

const (
	// FailureRate: the share of failed calls reached Config.FailureRate.
	FailureRate ChangeReason = iota
	// Consecutive: Config.Consecutive failures in a row.
	Consecutive
	// SlowRate: the share of slow calls reached Config.SlowRate.
	SlowRate
	// ProbeFailed: a probe failed, or was too slow.
	ProbeFailed
	// ProbeTimedOut: a probe was not reported within Config.ProbeTimeout.
	ProbeTimedOut
	// ProbesSucceeded: Config.Probes probes succeeded in a row.
	ProbesSucceeded
	// Forced: ForceOpen or ForceClosed was called.
	Forced
	// OpenTimePassed: the open time is over and a call came that may be a probe.
	OpenTimePassed
)

// String is the reason in lower case, such as "failure rate".
func (r ChangeReason) String() string { return choice.Name("unknown", reasonNames, r) }

// A Change is one transition, as listeners get it.
type Change struct {
	From, To CircuitState
	Reason   ChangeReason
	// At is when it took effect. If a probe timed out, that is the end of its time; it is
	// noticed when the next call comes.
	At time.Duration
	// Until is the end of the open time. Zero unless To is Open, and if the breaker was
	// forced open.
	Until time.Duration
	// Calls and Failures are what the decision rests on: the calls of the window and those
	// that failed (SlowRate: that were slow), the failures in a row, or the probes that
	// ended. Both are zero for Forced and OpenTimePassed.
	Calls, Failures int64
	// MetricsOnly: Config.MetricsOnly is set, so nothing was refused.
	MetricsOnly bool
}

// String is a line for a log, such as "closed to open: failure rate (10 of 20)".
func (c Change) String() string {
	s := fmt.Sprintf("%v to %v: %v", c.From, c.To, c.Reason)
	if c.Calls > 0 {
		s += fmt.Sprintf(" (%d of %d)", c.Failures, c.Calls)
	}
	if c.MetricsOnly {
		s += ", metrics only"
	}
	return s
}
