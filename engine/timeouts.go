package engine

import (
	"time"

	"github.com/lullgo/lull/internal/choice"
)

// TimeoutRetries is whether an attempt that timed out is repeated.
type TimeoutRetries uint8

const (
	// recentAnswer is how much earlier than an attempt that timed out another one may have
	// begun whose answer is still evidence: as long as nothing but failures must have come for
	// the breaker to open.
	recentAnswer = 2 * time.Second
	// quickParts: where successes usually take less than one of these parts of what an attempt is
	// given, and the latest less than half of it, there is no line. In a line, successes take nearly
	// as long as timeouts.
	quickParts = 4
)

const (
	// TimeoutsWhenAnswered: only if the dependency has answered another attempt of this process
	// that began later, or at most two seconds earlier. It is the zero value. If nobody else is
	// answered either, there is a line, and another attempt makes it longer.
	//
	// If one that began later was answered, and quickly, there is no line, and the timeout is
	// repeated. If it is not known yet, the call waits to see: for half to all of the time that its
	// attempt took, up to four times. If nothing shows by then that there is no line, the timeout is
	// final, but for a process that makes one call after the other. It is also final for one that
	// calls so rarely that nothing was answered for two seconds: TimeoutsAlways is for those.
	TimeoutsWhenAnswered TimeoutRetries = iota
	// TimeoutsAlways: as any other failure. For a handful of processes; a fleet
	// that retries timeouts sustains the outage that caused them.
	TimeoutsAlways
	// TimeoutsNever: a timeout is final.
	TimeoutsNever
	timeoutRules
)

var timeoutNames = [timeoutRules]string{"when-answered", "always", "never"}

var timeoutsAllowed = choice.List(timeoutNames[:])

// String is the rule as in a file, such as "when-answered".
func (t TimeoutRetries) String() string { return choice.Name("timeouts", timeoutNames[:], t) }

// MarshalText is String, for a rule that is one.
func (t TimeoutRetries) MarshalText() ([]byte, error) {
	return choice.Marshal("Timeouts", timeoutNames[:], t)
}

// UnmarshalText takes what MarshalText gives, in any case. The error names the
// text and what is allowed.
func (t *TimeoutRetries) UnmarshalText(text []byte) error {
	return choice.Unmarshal("Timeouts", timeoutNames[:], t, text)
}
