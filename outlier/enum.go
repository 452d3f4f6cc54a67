package outlier

import "github.com/lullgo/lull/internal/choice"

// Choice is how Pick chooses among the healthy endpoints.
type Choice uint8

const (
	// TwoChoices draws two endpoints and takes the one with fewer calls under way
	// (Mitzenmacher, "The power of two choices in randomized load balancing",
	// 2001). The default.
	TwoChoices Choice = iota
	// LeastLoaded takes the one with the fewest calls under way, by looking at all.
	// It draws among equals.
	LeastLoaded
	// RoundRobin takes them in turn.
	RoundRobin
	// LeastTime draws two and takes the one with the lower product of calls under
	// way, plus one, and how long its successes lately took (an exponentially
	// weighted mean). For endpoints that are near and far.
	LeastTime

	choices
)

var (
	choiceNames = [choices]string{"two-choices", "least-loaded", "round-robin", "least-time"}
	choiceList  = choice.List(choiceNames[:])
)

// String returns the name in lower case, such as "two-choices".
func (c Choice) String() string { return choice.Name("choice", choiceNames[:], c) }

// MarshalText returns String, or an error if c is no valid Choice.
func (c Choice) MarshalText() ([]byte, error) { return choice.Marshal("Choice", choiceNames[:], c) }

// UnmarshalText reads the text of MarshalText, in any case. The error names the
// text and what is allowed.
func (c *Choice) UnmarshalText(text []byte) error {
	return choice.Unmarshal("Choice", choiceNames[:], c, text)
}

// Statistic is how success rates are compared.
type Statistic uint8

const (
	// MedianMAD: the median of the other endpoints' success rates, less their median
	// absolute deviation times 1.4826 times Factor. The default.
	MedianMAD Statistic = iota
	// MeanDeviation: the mean of all success rates, less their standard deviation
	// times Factor, as in Envoy and gRPC.
	MeanDeviation
	// NoStatistic: success rates are not compared.
	NoStatistic

	statistics
)

var (
	statisticNames = [statistics]string{"median-mad", "mean-deviation", "none"}
	statisticList  = choice.List(statisticNames[:])
)

// String returns the name in lower case, such as "median-mad".
func (s Statistic) String() string { return choice.Name("statistic", statisticNames[:], s) }

// MarshalText returns String, or an error if s is no valid Statistic.
func (s Statistic) MarshalText() ([]byte, error) {
	return choice.Marshal("Statistic", statisticNames[:], s)
}

// UnmarshalText reads the text of MarshalText, in any case. The error names the
// text and what is allowed.
func (s *Statistic) UnmarshalText(text []byte) error {
	return choice.Unmarshal("Statistic", statisticNames[:], s, text)
}

// Limit is how the share Config.MaxEjected is rounded to a number of endpoints. The
// sources differ, and for a small set that matters: 10 % of three endpoints are none, or
// one.
type Limit uint8

const (
	// AtLeastOne rounds down, but to at least one, as Envoy does with
	// always_eject_one_host. The default. It also holds when the set shrinks: then the
	// endpoints whose ejections end first come back at once.
	AtLeastOne Limit = iota
	// RoundDown is Envoy since 1.28. The limit is for new ejections: no endpoint comes
	// back because the set has shrunk.
	RoundDown
	// RoundUp is Envoy before 1.28, and gRPC: one more may be ejected while the ejected
	// are fewer than the share. No endpoint comes back because the set has shrunk.
	RoundUp

	limits
)

var (
	limitNames = [limits]string{"at-least-one", "round-down", "round-up"}
	limitList  = choice.List(limitNames[:])
)

// String returns the name in lower case, such as "at-least-one".
func (l Limit) String() string { return choice.Name("limit", limitNames[:], l) }

// MarshalText returns String, or an error if l is no valid Limit.
func (l Limit) MarshalText() ([]byte, error) { return choice.Marshal("Limit", limitNames[:], l) }

// UnmarshalText reads the text of MarshalText, in any case. The error names the
// text and what is allowed.
func (l *Limit) UnmarshalText(text []byte) error {
	return choice.Unmarshal("Limit", limitNames[:], l, text)
}

// Evidence is the result of a call, as evidence about the endpoint.
type Evidence uint8

const (
	// Success: the endpoint did its work.
	Success Evidence = iota
	// FiveXX: it answered that it failed, with 500 or another 5xx that is no
	// GatewayFailure, or with the equivalent in another protocol.
	FiveXX
	// GatewayFailure: 502, 503 or 504. An intermediary may have answered for it.
	GatewayFailure
	// LocalOrigin: no answer. It could not be reached, broke off, or was too late.
	LocalOrigin
	// Neutral is no evidence: the caller went away, or the request itself was wrong.
	// Values that are none of these count as Neutral.
	Neutral

	evidences
)

var evidenceNames = [evidences]string{"success", "5xx", "gateway failure", "local origin", "neutral"}

// String returns the outcome in lower case, such as "gateway failure".
func (o Evidence) String() string { return choice.Name("outcome", evidenceNames[:], o) }

// ChangeReason is why an endpoint was ejected, or came back.
type ChangeReason uint8

const (
	// Consecutive: Config.Consecutive failures in a row.
	Consecutive ChangeReason = iota
	// ConsecutiveGateway: Config.ConsecutiveGateway gateway failures in a row.
	ConsecutiveGateway
	// ConsecutiveLocal: Config.ConsecutiveLocal calls in a row without an answer.
	ConsecutiveLocal
	// SuccessRate: its success rate lay too far below the others'.
	SuccessRate
	// LocalSuccessRate: the same of the share of calls that got an answer.
	LocalSuccessRate
	// FailurePercent: its share of failed calls reached Config.FailurePercent.
	FailurePercent
	// LocalFailurePercent: the same of calls that got no answer.
	LocalFailurePercent
	// TimePassed: the ejection is over.
	TimePassed
	// Shrunk: the set has become too small for as many ejections.
	Shrunk

	reasons
	findings = TimePassed // the reasons that may eject
)

var reasonNames = [reasons]string{
	"consecutive failures", "consecutive gateway failures", "consecutive local failures",
	"success rate", "local success rate", "failure percentage", "local failure percentage",
	"time passed", "set shrunk",
}

// String returns the reason in lower case, such as "success rate".
func (r ChangeReason) String() string { return choice.Name("reason", reasonNames[:], r) }

// ChangeKind is the kind of a Change.
type ChangeKind uint8

const (
	// Ejected: no call goes there, unless too few others are left.
	Ejected ChangeKind = iota
	// Returned: it is healthy again.
	Returned
	// Spared: it was found to be an outlier, but stays by the chance in Config.Enforce.
	Spared

	kinds
)

var kindNames = [kinds]string{"ejected", "returned", "spared"}

// String returns the kind in lower case, such as "ejected".
func (k ChangeKind) String() string { return choice.Name("kind", kindNames[:], k) }
