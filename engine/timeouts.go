package engine

import (
	"time"

	"github.com/lullgo/lull/internal/choice"
)

// TimeoutRetries is whether an attempt that timed out is repeated.
type TimeoutRetries uint8

const (
	// recentAnswer: an answer is evidence for an attempt that timed out if the answered attempt
	// began at most this much earlier. The breaker opens after failures alone for as long.
	recentAnswer = 2 * time.Second
	// quickParts: a dependency answers quickly if successes usually take less than the timeout
	// divided by quickParts, and the latest took less than half of the timeout. In a queue,
	// successes take nearly as long as the timeout.
	quickParts = 4
)

const (
	// TimeoutsWhenAnswered: sentences 4 and 5 in the comment of lull.Policy. This is the zero
	// value. docs/defaults.md has the reason, and for which processes TimeoutsAlways is better.
	TimeoutsWhenAnswered TimeoutRetries = iota
	// TimeoutsAlways: a timeout is repeated as any other failure. It is for a handful of
	// processes. In a large fleet it sustains the outage that caused the timeouts.
	TimeoutsAlways
	// TimeoutsNever: a timeout is final.
	TimeoutsNever
	timeoutRules
)

var timeoutNames = [timeoutRules]string{"when-answered", "always", "never"}

var timeoutsAllowed = choice.List(timeoutNames[:])

// String returns the rule as in a file, such as "when-answered".
func (t TimeoutRetries) String() string { return choice.Name("timeouts", timeoutNames[:], t) }

// MarshalText returns String, or an error for a value that is no rule.
func (t TimeoutRetries) MarshalText() ([]byte, error) {
	return choice.Marshal("Timeouts", timeoutNames[:], t)
}

// UnmarshalText reads what MarshalText returns, in any case.
func (t *TimeoutRetries) UnmarshalText(text []byte) error {
	return choice.Unmarshal("Timeouts", timeoutNames[:], t, text)
}
