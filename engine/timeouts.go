package engine

import (
	"time"

	"github.com/lullgo/lull/internal/choice"
)

// TimeoutRetries is whether an attempt that timed out is repeated.
type TimeoutRetries uint8

// TimeoutRatio is how many retries of timed-out attempts a successful call earns
// under TimeoutsWhenAnswered, beside what the budget allows, where a line cannot be ruled out:
// one in six hundred, of the last two minutes. When a dependency stalls for about as long as the
// timeout, the first attempts of everybody time out at once, and what everybody has earned is
// the work that comes on top. Here it is a fifth of a second of ordinary calls, for one process as for
// a fleet: at 90 % of the capacity it is done in two seconds.
const TimeoutRatio = 1.0 / 600

const (
	timeoutWindow = 2 * time.Minute
	// helpedKept is how many retries the account for timeouts may hold when a repeat that has
	// helped puts another one in. A process with a sick host uses up some three in ten seconds.
	helpedKept = 20
	// recentAnswer is how much earlier than an attempt that timed out another one may have
	// begun whose answer is still evidence: as long as nothing but failures must have come for
	// the breaker to open.
	recentAnswer = 2 * time.Second
	// quickParts: where successes take less than one of these parts of what an attempt is given,
	// there is no line. In a line, successes take nearly as long as timeouts.
	quickParts = 4
)

const (
	// TimeoutsWhenAnswered: only if the dependency has answered another attempt of this process
	// that began later, or at most two seconds earlier. It is the zero value, and the one thing
	// that decides whether a fleet recovers.
	//
	// A failure that comes back is an answer: it cost the dependency little, and is over. A
	// timeout is none. The attempt may still be worked on or wait in line, and if nobody
	// else is answered either, the line is what is wrong: another attempt makes it longer.
	//
	// If one that began later was answered, and successes usually take less than a quarter of the
	// timeout, there is no line: one request was lost, or one host is sick. Then a timeout is
	// repeated like any other failure. Otherwise an account of its own has to pay, too. A success
	// earns TimeoutRatio; a repeat of a timeout that has helped, while successes are so quick,
	// earns a whole retry, whoever paid for it. So where one host of several is sick, or requests
	// are lost, repeats pay for others; in a line they do not.
	//
	// It costs a process that calls so rarely that nothing was answered for two seconds: its timeouts
	// are final. TimeoutsAlways is for those who are few.
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
