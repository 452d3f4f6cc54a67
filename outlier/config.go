package outlier

import (
	"cmp"
	"math"
	"time"

	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/internal/saturating"
)

// What zero fields of a Config stand for.
const (
	DefaultInterval        = 10 * time.Second
	DefaultSweeps          = 10
	DefaultConsecutive     = 5
	DefaultFactor          = 3.5 // of MedianMAD
	DefaultFloor           = 0.2
	DefaultMinHosts        = 2 // of MedianMAD
	DefaultMinCalls        = 5 // of MedianMAD
	DefaultFailureMinHosts = 5
	DefaultFailureMinCalls = 50
	DefaultBaseEjection    = 30 * time.Second
	DefaultMaxEjection     = 300 * time.Second
	DefaultMaxEjected      = 50 // percent
)

// The same with MeanDeviation: Envoy's defaults.
const (
	DefaultMeanFactor   = 1.9
	DefaultMeanMinHosts = 5
	DefaultMeanMinCalls = 100
)

const (
	minInterval = time.Millisecond
	maxSweeps   = 100
	maxInARow   = 1_000_000
	maxFactor   = 1000
)

// A Config sets how a Set chooses endpoints, which endpoints are outliers, and how long
// they are ejected. It is plain, comparable data; the zero Config is the recommended one.
type Config struct {
	// Off: no endpoint is ever ejected. The Set only chooses.
	Off bool
	// Choice is how Pick chooses among the healthy endpoints. Zero: TwoChoices.
	Choice Choice

	// Interval is the time over which the results of an endpoint are judged. Its ejection
	// time goes down by one step with each Interval without an ejection. Zero: 10 s. At
	// least 1 ms.
	Interval time.Duration
	// Sweeps is how many times in an Interval the set is judged, each time by the whole
	// Interval before. Zero: 10. At most 100. Envoy: 1.
	Sweeps int

	// Consecutive is after how many failures in a row, of any kind (see Split), an endpoint
	// is judged by that row. Zero: 5. Negative: never.
	Consecutive int
	// ConsecutiveGateway is the same for GatewayFailures, and for LocalOrigin without
	// Split. Zero or negative: never.
	ConsecutiveGateway int
	// ConsecutiveLocal is the same for LocalOrigin, where Split is set. Zero: 5.
	// Negative: never.
	ConsecutiveLocal int
	// Unconditional is Envoy's rule: the length of a row alone ejects, and results count
	// even if their call started before an ejection. Without it an endpoint is ejected only
	// if the others do better, beyond chance, and is judged by calls that started since it
	// came in.
	Unconditional bool
	// Split counts failures of LocalOrigin apart from failures that a server answered with,
	// in rows and rates of their own. For these, every answer is a success.
	Split bool

	// Statistic is how success rates are compared. Zero: MedianMAD.
	Statistic Statistic
	// Factor is by how many standard deviations (as the Statistic estimates them) an
	// endpoint must be below the others. Zero: 3.5 for MedianMAD, 1.9 for MeanDeviation. At
	// most 1000. Envoy gives it in thousandths.
	Factor float64
	// Floor is by how much a success rate must at least be below the others' median, below
	// 1. It is for MedianMAD and for rows. Zero: 0.2. Negative: none.
	Floor float64
	// MinHosts is how many endpoints must have MinCalls for rates to be compared. Zero: 2
	// for MedianMAD, 5 for MeanDeviation.
	MinHosts int
	// MinCalls is how many calls must have ended in an Interval for a rate to count. Zero:
	// 5 for MedianMAD, 100 for MeanDeviation.
	MinCalls int

	// FailurePercent is the share of failed calls, in percent, at which an endpoint is an
	// outlier whatever the others do. Zero: off.
	FailurePercent int
	// FailureMinHosts and FailureMinCalls are MinHosts and MinCalls for FailurePercent.
	// Zero: 5 and 50.
	FailureMinHosts int
	FailureMinCalls int

	// Enforce is the share of outliers that are ejected.
	Enforce Enforce

	// BaseEjection is how long the first ejection lasts. Each further one lasts once more
	// as long. Zero: 30 s.
	BaseEjection time.Duration
	// MaxEjection is the longest ejection, before Jitter. Zero: 300 s, or BaseEjection if
	// that is longer.
	MaxEjection time.Duration
	// Jitter is the longest random time that is added to an ejection, uniformly, so that
	// the processes of a fleet do not take an endpoint back together. Zero: a tenth of
	// BaseEjection. Negative: none.
	Jitter time.Duration

	// MaxEjected is how many endpoints may be ejected at a time, in percent. Zero: 50.
	// Negative: none.
	MaxEjected int
	// Limit is how MaxEjected is rounded. Zero: AtLeastOne.
	Limit Limit
	// Panic is the share of healthy endpoints, in percent, below which Pick chooses among
	// all. Zero: if none is healthy. Envoy: 50.
	Panic int
}

// Enforce has, for each ChangeReason, the chance in percent that an outlier is ejected. One
// that is not is reported (Spared), and its results are forgotten. Zero: 100. Negative:
// none, to try a rule.
type Enforce struct {
	Consecutive, ConsecutiveGateway, ConsecutiveLocal int
	SuccessRate, LocalSuccessRate                     int
	FailurePercent, LocalFailurePercent               int
}

// EnvoyDefaults returns the behaviour of Envoy with "outlier_detection: {}"
// (envoy.config.cluster.v3.OutlierDetection) and its default load balancer, ROUND_ROBIN.
// docs/mechanisms.md has the differences.
func EnvoyDefaults() Config {
	return Config{
		Choice:             RoundRobin,
		Interval:           10 * time.Second,
		Sweeps:             1,
		Consecutive:        5,
		ConsecutiveGateway: 5,
		ConsecutiveLocal:   5,
		Unconditional:      true,
		Statistic:          MeanDeviation,
		Factor:             1.9,
		MinHosts:           5,
		MinCalls:           100,
		FailurePercent:     85,
		FailureMinHosts:    5,
		FailureMinCalls:    50,
		Enforce:            Enforce{ConsecutiveGateway: -1, FailurePercent: -1, LocalFailurePercent: -1},
		BaseEjection:       30 * time.Second,
		MaxEjection:        300 * time.Second,
		Jitter:             -1,
		MaxEjected:         10,
		Limit:              RoundDown,
		Panic:              50,
	}
}

// Validate returns every mistake in one error, each with its field, or nil.
func (c Config) Validate() error {
	var l problem.List
	l.Check(c.Choice < choices, "Choice", c.Choice, choiceList)
	l.Check(c.Interval == 0 || c.Interval >= minInterval, "Interval", c.Interval, "zero or at least 1ms")
	l.Check(c.Sweeps >= 0 && c.Sweeps <= maxSweeps, "Sweeps", c.Sweeps, "zero or 1 to 100")
	inARow := func(n int, field string) {
		l.Check(n <= maxInARow, field, n, "at most 1000000, zero for the default, or negative for never")
	}
	inARow(c.Consecutive, "Consecutive")
	inARow(c.ConsecutiveGateway, "ConsecutiveGateway")
	inARow(c.ConsecutiveLocal, "ConsecutiveLocal")
	l.Check(c.Statistic < statistics, "Statistic", c.Statistic, statisticList)
	l.Check(c.Factor >= 0 && c.Factor <= maxFactor, "Factor", c.Factor, "zero or a positive number up to 1000")
	l.Check(c.Floor < 1, "Floor", c.Floor, "a share below 1, zero for the default, or negative for none")
	l.Check(c.MinHosts >= 0, "MinHosts", c.MinHosts, "zero or a positive number")
	l.Check(c.MinCalls >= 0, "MinCalls", c.MinCalls, "zero or a positive number")
	l.Check(c.FailurePercent >= 0 && c.FailurePercent <= 100, "FailurePercent", c.FailurePercent, "1 to 100, or zero for none")
	l.Check(c.FailureMinHosts >= 0, "FailureMinHosts", c.FailureMinHosts, "zero or a positive number")
	l.Check(c.FailureMinCalls >= 0, "FailureMinCalls", c.FailureMinCalls, "zero or a positive number")
	for i, percent := range c.Enforce.byReason() {
		l.Check(percent <= 100, "Enforce."+enforceNames[i], percent, "at most 100, zero for 100, or negative for none")
	}
	l.Check(c.BaseEjection >= 0, "BaseEjection", c.BaseEjection, "zero or a positive duration")
	l.Check(c.MaxEjection == 0 || c.MaxEjection > 0 && c.MaxEjection >= c.base(), "MaxEjection", c.MaxEjection, "zero or at least BaseEjection")
	l.Check(c.MaxEjected <= 100, "MaxEjected", c.MaxEjected, "at most 100, zero for the default, or negative for none")
	l.Check(c.Limit < limits, "Limit", c.Limit, limitList)
	l.Check(c.Panic >= 0 && c.Panic <= 100, "Panic", c.Panic, "0 to 100")
	return l.Err()
}

func (c Config) base() time.Duration { return cmp.Or(c.BaseEjection, DefaultBaseEjection) }

// byReason returns the fields of e in the order of the reasons.
func (e Enforce) byReason() [findings]int {
	return [findings]int{
		Consecutive:         e.Consecutive,
		ConsecutiveGateway:  e.ConsecutiveGateway,
		ConsecutiveLocal:    e.ConsecutiveLocal,
		SuccessRate:         e.SuccessRate,
		LocalSuccessRate:    e.LocalSuccessRate,
		FailurePercent:      e.FailurePercent,
		LocalFailurePercent: e.LocalFailurePercent,
	}
}

var enforceNames = [findings]string{
	"Consecutive", "ConsecutiveGateway", "ConsecutiveLocal",
	"SuccessRate", "LocalSuccessRate", "FailurePercent", "LocalFailurePercent",
}

// rules are a valid Config with its zeros filled in.
type rules struct {
	unconditional, split bool
	choice               Choice

	width    time.Duration // from sweep to sweep
	sweeps   int
	interval time.Duration // width × sweeps

	inARow [rows]uint64 // zero: never

	statistic       Statistic
	factor, floor   float64
	minHosts        int
	minCalls        int64
	failurePercent  int64 // zero: off
	failureMinHosts int
	failureMinCalls int64
	enforce         [findings]uint64

	base, max, jitter time.Duration
	maxEjected        int
	limit             Limit
	panic             int
}

func (c Config) rules() rules {
	if c.Off {
		c.Statistic, c.Consecutive, c.ConsecutiveGateway, c.ConsecutiveLocal, c.FailurePercent = NoStatistic, -1, -1, -1, 0
	}
	factor, minHosts, minCalls := DefaultFactor, DefaultMinHosts, DefaultMinCalls
	if c.Statistic == MeanDeviation {
		factor, minHosts, minCalls = DefaultMeanFactor, DefaultMeanMinHosts, DefaultMeanMinCalls
	}
	r := rules{
		unconditional:   c.Unconditional,
		split:           c.Split,
		choice:          c.Choice,
		sweeps:          cmp.Or(c.Sweeps, DefaultSweeps),
		statistic:       c.Statistic,
		factor:          cmp.Or(c.Factor, factor),
		floor:           max(0, cmp.Or(c.Floor, DefaultFloor)),
		minHosts:        cmp.Or(c.MinHosts, minHosts),
		minCalls:        int64(cmp.Or(c.MinCalls, minCalls)),
		failurePercent:  int64(c.FailurePercent),
		failureMinHosts: cmp.Or(c.FailureMinHosts, DefaultFailureMinHosts),
		failureMinCalls: int64(cmp.Or(c.FailureMinCalls, DefaultFailureMinCalls)),
		base:            c.base(),
		max:             cmp.Or(c.MaxEjection, max(DefaultMaxEjection, c.BaseEjection)),
		jitter:          max(0, cmp.Or(c.Jitter, max(1, c.base()/10))),
		maxEjected:      max(0, cmp.Or(c.MaxEjected, DefaultMaxEjected)),
		limit:           c.Limit,
		panic:           c.Panic,
	}
	r.width = cmp.Or(c.Interval, DefaultInterval) / time.Duration(r.sweeps)
	r.interval = r.width * time.Duration(r.sweeps)
	r.inARow[anyFailure] = uint64(max(0, cmp.Or(c.Consecutive, DefaultConsecutive)))
	r.inARow[gatewayFailure] = uint64(max(0, c.ConsecutiveGateway))
	if c.Split {
		r.inARow[localFailure] = uint64(max(0, cmp.Or(c.ConsecutiveLocal, DefaultConsecutive)))
	}
	for i, percent := range c.Enforce.byReason() {
		r.enforce[i] = uint64(max(0, cmp.Or(percent, 100)))
	}
	return r
}

// permitted returns how many of n endpoints may be ejected at a time. Without Unconditional
// the last one may not: Pick would then choose among all.
func (r *rules) permitted(n int) int {
	p, rest := n/100*r.maxEjected, n%100*r.maxEjected
	switch {
	case r.limit == RoundUp:
		p += (rest + 99) / 100
	case r.limit == AtLeastOne && r.maxEjected > 0:
		p = max(p+rest/100, 1)
	default:
		p += rest / 100
	}
	if !r.unconditional {
		p = min(p, n-1)
	}
	return max(p, 0)
}

// steps returns the highest multiplier of BaseEjection. As in Envoy, it is one more than
// the longest ejection needs, so that an endpoint that has just been ejected for so long
// needs one quiet interval more.
func (r *rules) steps() int64 { return min(int64((r.max-1)/r.base), math.MaxInt64-2) + 2 }

// ejection returns how long an endpoint's n-th recent ejection lasts, before jitter.
func (r *rules) ejection(n int64) time.Duration {
	if n > int64(r.max/r.base) {
		return r.max
	}
	return r.base * time.Duration(n)
}

// nextSweep returns the first moment of a sweep that is not before t.
func (r *rules) nextSweep(t time.Duration) time.Duration {
	if t <= 0 {
		return 0
	}
	if past := t % r.width; past != 0 {
		return saturating.Add(t, r.width-past)
	}
	return t
}
