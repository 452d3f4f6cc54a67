package hedge

import "github.com/lullgo/lull/internal/choice"

// FireResult is the result of Fire: Granted, or why not.
type FireResult uint8

const (
	// Off: hedging is off. The zero FireResult, and that of the zero Flight.
	Off FireResult = iota
	// Granted: another attempt may be sent.
	Granted
	// Unlearned: too few calls have succeeded lately.
	Unlearned
	// AttemptsInUse: the call has all the attempts that Config.Attempts gives it.
	AttemptsInUse
	// TooManyLate: more of the recent calls are late than Config.Share.
	TooManyLate
	// TooManyInFlight: Config.InFlight hedges are under way.
	TooManyInFlight
)

var fireResultNames = [...]string{"off", "granted", "unlearned", "attempts_in_use", "too_many_late", "too_many_in_flight"}

// String is a label for logs and metrics, such as "too_many_late".
func (r FireResult) String() string { return choice.Name("reason", fireResultNames[:], r) }
