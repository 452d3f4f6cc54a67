package engine

import (
	"github.com/lullgo/lull/internal/choice"
)

// TimeoutRetries is whether an attempt that timed out is repeated.
type TimeoutRetries uint8

// TimeoutRatio is how many retries of timed-out attempts a successful call earns
// under TimeoutsWhenAnswered, beside what the budget allows: one in fifty, and no more
// than one is kept. A service at 95 % of its capacity can bear that (0.95 × 1.02 <
// 1); a tenth it cannot: after a stall about as long as the timeout half of the calls
// may then fail for ever, since some are answered and pay for the retries that hold
// the others up.
const TimeoutRatio = 0.02

const (
	// TimeoutsWhenAnswered: only if the dependency has answered another attempt of
	// this process that began later, and not more often than TimeoutRatio. It is
	// the zero value, and the one thing that decides whether a fleet recovers.
	//
	// A failure that comes back is an answer: it cost the dependency little, and is
	// over. A timeout is none. The attempt may still be worked on or wait in line,
	// and if nobody who came later is answered either, the line is what is wrong:
	// another attempt makes it longer. Simulated with a server of 1,000 requests/s
	// whose queue a stall of 10 s has filled, at 95 % load: 10,000 processes are back
	// after 45 s, and 100,000 as though nobody retried; if timeouts are retried like
	// other failures the latter stay down for ever. If others are answered, the
	// trouble lies with one host or one request, and a retry is worth while.
	//
	// It costs a process that calls one thing at a time: its timeouts are final.
	// TimeoutsAlways is for those who are few.
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
