package outlier

import "github.com/lullgo/lull/internal/choice"

// Choice is how Pick chooses among the healthy endpoints.
type Choice uint8

const (
	// TwoChoices draws two endpoints and takes the one with fewer calls in flight
	// (Mitzenmacher, 2001). The default.
	TwoChoices Choice = iota
	// LeastLoaded looks at all, and takes the one with the fewest calls in flight. It draws
	// among equals.
	LeastLoaded
	// RoundRobin takes them in turn.
	RoundRobin
	// LeastTime draws two and takes the one with the lower product: calls in flight, plus
	// one, times how long its successes lately took (an exponentially weighted mean). For
	// endpoints that are near and far.
	LeastTime

	choices
)

var (
	choiceNames = [choices]string{"two-choices", "least-loaded", "round-robin", "least-time"}
	choiceList  = choice.List(choiceNames[:])
)

// String is the name in lower case, such as "two-choices".
func (c Choice) String() string { return choice.Name("choice", choiceNames[:], c) }

// MarshalText is String, for a valid Choice.
func (c Choice) MarshalText() ([]byte, error) { return choice.Marshal("Choice", choiceNames[:], c) }

// UnmarshalText reads the text of MarshalText, in any case.
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

// String is the name in lower case, such as "median-mad".
func (s Statistic) String() string { return choice.Name("statistic", statisticNames[:], s) }

// MarshalText is String, for a valid Statistic.
func (s Statistic) MarshalText() ([]byte, error) {
	return choice.Marshal("Statistic", statisticNames[:], s)
}

// UnmarshalText reads the text of MarshalText, in any case.
func (s *Statistic) UnmarshalText(text []byte) error {
	return choice.Unmarshal("Statistic", statisticNames[:], s, text)
}

// Limit is how Config.MaxEjected is rounded to a number of endpoints.
type Limit uint8

const (
	// AtLeastOne rounds down, but to at least one, as Envoy with always_eject_one_host. The
	// default. It also holds when the set shrinks: the endpoints whose ejections end first
	// then come back at once.
	AtLeastOne Limit = iota
	// RoundDown is Envoy since 1.28. It limits new ejections only.
	RoundDown
	// RoundUp is Envoy before 1.28, and gRPC. It limits new ejections only.
	RoundUp

	limits
)

var (
	limitNames = [limits]string{"at-least-one", "round-down", "round-up"}
	limitList  = choice.List(limitNames[:])
)

// String is the name in lower case, such as "at-least-one".
func (l Limit) String() string { return choice.Name("limit", limitNames[:], l) }

// MarshalText is String, for a valid Limit.
func (l Limit) MarshalText() ([]byte, error) { return choice.Marshal("Limit", limitNames[:], l) }

// UnmarshalText reads the text of MarshalText, in any case.
func (l *Limit) UnmarshalText(text []byte) error {
	return choice.Unmarshal("Limit", limitNames[:], l, text)
}

// Evidence is what the end of a call shows of the endpoint.
type Evidence uint8

const (
	// Success: the endpoint did its work.
	Success Evidence = iota
	// FiveXX: it answered with a 5xx that is no GatewayFailure, or the like in another
	// protocol.
	FiveXX
	// GatewayFailure: 502, 503 or 504. An intermediary may have answered for it.
	GatewayFailure
	// LocalOrigin: no answer: it could not be reached, broke off, or was too late.
	LocalOrigin
	// Neutral shows nothing: the caller went away, or the request was wrong. Other values
	// count as Neutral.
	Neutral

	evidences
)

var evidenceNames = [evidences]string{"success", "5xx", "gateway failure", "local origin", "neutral"}

// String is the evidence in lower case, such as "gateway failure".
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

// String is the reason in lower case, such as "success rate".
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

// String is the kind in lower case, such as "ejected".
func (k ChangeKind) String() string { return choice.Name("kind", kindNames[:], k) }
