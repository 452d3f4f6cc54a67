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
	// TimeoutsWhenAnswered: a timeout is repeated when an attempt of this process that began
	// later was answered quickly, and the call waits for that as long as an attempt may take.
	// After the wait the timeout is final if other attempts that began later have ended, and
	// repeated if none has. It is final at once if the dependency has answered nothing that
	// began later, or at most two seconds earlier. This is the zero value.
	//
	// The reason: an attempt that timed out may still wait in a queue of the dependency, and
	// another one makes that queue longer. Quick answers show that there is none.
	//
	// TimeoutsAlways is for processes that call less often than every two seconds.
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
