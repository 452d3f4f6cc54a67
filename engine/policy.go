package engine

import (
	"cmp"
	"math"
	"time"

	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/throttle"
)

// The defaults of the zero Policy. Packages backoff, budget and breaker have those of its parts.
const (
	DefaultAttempts        = 5
	DefaultAttemptTimeout  = 10 * time.Second
	DefaultDeadline        = 30 * time.Second
	DefaultRateLimitedBase = time.Second
	DefaultHintLimit       = 30 * time.Second
)

// NoTimeout switches a timeout off: AttemptTimeout, Deadline.
const NoTimeout time.Duration = -1

// maxAttempts is the most that a policy may ask for. It keeps sums of worst cases short.
const maxAttempts = 1000

// A Policy describes how calls to one dependency are made: plain data, comparable with ==, the
// same in code, in a file and in a simulation.
//
// The zero Policy is the recommended one. The comment of lull.Policy has what it does, and
// docs/defaults.md the reasons, the figures and the cost.
type Policy struct {
	// Attempts is the most attempts of one call, the first included. Zero means DefaultAttempts,
	// or as many as begin before the deadline; 1 means no retries.
	Attempts int
	// AttemptTimeout bounds each attempt, from its start or from its last Progress. Zero means
	// DefaultAttemptTimeout, NoTimeout that only the deadline of the call ends an attempt.
	AttemptTimeout time.Duration
	// Deadline bounds the call, with all attempts and waits, but not what is read after it has
	// returned (the body of an HTTP response). The deadline of the caller's context counts as
	// well; the nearer one rules. Zero means DefaultDeadline, NoTimeout that only the context's
	// counts.
	Deadline time.Duration
	// Backoff is the wait before each retry.
	Backoff backoff.Schedule
	// RateLimitedBase replaces Backoff.Base, if that is smaller, after a failure of
	// KindRateLimited. Zero means DefaultRateLimitedBase.
	RateLimitedBase time.Duration
	// Timeouts is whether a timeout is repeated. Zero means TimeoutsWhenAnswered.
	Timeouts TimeoutRetries
	// Nested is whether a server's call is retried if it is made for a request which is itself a
	// retry. Zero means NestedNever.
	Nested NestedRetries
	// HintLimit is the longest wait asked for by the server (Retry-After) that the call makes. A
	// longer one ends the call at once, with the hint in the error. Zero means DefaultHintLimit.
	HintLimit time.Duration
	// Budget bounds the retries of all calls to the dependency together.
	Budget budget.Config
	// Breaker stops calls to a dependency that keeps failing.
	Breaker breaker.Config
	// Hedge sends a second attempt beside a slow first one, for operations that may run twice:
	// lull.DoHedged, and those that a protocol's driver knows to be idempotent. A policy hedges
	// or retries, not both (gRFC A6): Attempts is zero or 1 then, a call makes up to
	// Hedge.Attempts, and after a transient failure the next follows at once. The zero value is
	// off; hedge.Config{Attempts: 2} is on.
	Hedge hedge.Config
	// Throttle holds attempts back, first ones too, from a dependency that refuses many. The zero
	// value is off; throttle.Adaptive is the SRE book's, throttle.Cubic that of the AWS SDKs.
	// Both assume that the dependency refuses all calls alike: a resource with a quota of its own
	// needs a dependency of its own.
	Throttle throttle.Config
	// Limit bounds the attempts in flight. Its zero value sets no limit. The calls that wait for a
	// retry are bounded, too: ten for each attempt that may be in flight, but at least 100; 10,000
	// without a limit. One more ends at once (TooManyWaiting). A policy with neither budget nor
	// breaker nor any limit counts nothing, and has no bound.
	Limit bulkhead.Config
}

// Validate returns all mistakes of p at once, as [Problems]: each with its field, the value and
// what is allowed. It refuses a duration below 100 µs as a number without its unit.
func (p Policy) Validate() error {
	var l problem.List
	l.Check(p.Attempts >= 0 && p.Attempts <= maxAttempts, "Attempts", p.Attempts, "1 to 1000 attempts, or 0 for the default of 5")
	l.Check(timeout(p.AttemptTimeout), "AttemptTimeout", p.AttemptTimeout, "a positive duration, 0 for the default of 10s, or NoTimeout")
	l.Check(timeout(p.Deadline), "Deadline", p.Deadline, "a positive duration, 0 for the default of 30s, or NoTimeout")
	if p.Deadline > 0 && p.AttemptTimeout > p.Deadline {
		l.Add("AttemptTimeout", p.AttemptTimeout, "no more than the Deadline of "+p.Deadline.String())
	}
	l.In("Backoff", p.Backoff.Validate())
	l.Check(p.RateLimitedBase >= 0, "RateLimitedBase", p.RateLimitedBase, "a positive duration, or 0 for the default of 1s")
	l.Check(p.Timeouts < timeoutRules, "Timeouts", p.Timeouts, timeoutsAllowed)
	l.Check(p.Nested < nestedRules, "Nested", p.Nested, nestedAllowed)
	l.Check(p.HintLimit >= 0, "HintLimit", p.HintLimit, "a positive duration, or 0 for the default of 30s")
	l.In("Budget", p.Budget.Validate())
	l.In("Breaker", p.Breaker.Validate())
	l.In("Hedge", p.Hedge.Validate())
	if p.Hedge.Attempts > 1 && p.Attempts > 1 {
		l.Add("Attempts", p.Attempts, "zero or 1 beside Hedge.Attempts: a policy hedges or retries, not both")
	}
	l.In("Throttle", p.Throttle.Validate())
	l.In("Limit", p.Limit.Validate())
	if p.RateLimitedBase == 1 { // practically none
		p.RateLimitedBase = 0
	}
	if p.HintLimit == 1 { // likewise
		p.HintLimit = 0
	}
	if p.Backoff.Kind == backoff.Ethernet { // whose slots are 51.2µs and less
		p.Backoff.Base = 0
	}
	l.Units(p)
	return l.Err()
}

func timeout(d time.Duration) bool { return d >= 0 || d == NoTimeout }

// Problem is one mistake in a policy: the field, its value, what is allowed.
type Problem = problem.Problem

// Problems is all mistakes in a policy, as an error.
type Problems = problem.List

// WithDefaults returns p with its default for each field of its own that is zero. The parts
// (Backoff, Budget, Breaker, Hedge, Throttle, Limit) stay as they are.
func (p Policy) WithDefaults() Policy {
	if p.Hedge.Attempts > 1 {
		p.Attempts = cmp.Or(p.Attempts, 1)
	}
	p.Attempts = cmp.Or(p.Attempts, DefaultAttempts)
	p.AttemptTimeout = cmp.Or(p.AttemptTimeout, DefaultAttemptTimeout)
	p.Deadline = cmp.Or(p.Deadline, DefaultDeadline)
	p.RateLimitedBase = cmp.Or(p.RateLimitedBase, DefaultRateLimitedBase)
	p.HintLimit = cmp.Or(p.HintLimit, DefaultHintLimit)
	return p
}

// rateLimited returns the schedule after a rate-limited failure, for a policy with its defaults
// filled in.
func (p Policy) rateLimited() backoff.Schedule {
	s := p.Backoff
	if s.Kind == backoff.Ethernet || s.Kind == backoff.Immediate {
		s = backoff.Schedule{Jitter: s.Jitter}
	}
	if base := s.Ceiling(1); base < p.RateLimitedBase || s.FastFirst {
		s.FastFirst = false
		s.Base = max(s.Base, p.RateLimitedBase)
		if s.Cap != 0 {
			s.Cap = max(s.Cap, s.Base)
		}
	}
	return s
}

// allowed returns how many attempts a call may make, for a policy with its defaults filled in:
// fewer than Attempts if its schedule ends first.
func (p Policy) allowed() int {
	if p.Hedge.Attempts > 1 {
		return p.Hedge.Attempts
	}
	if limit := p.Backoff.Limit(); limit > 0 {
		return min(p.Attempts, limit+1)
	}
	return p.Attempts
}

// WorstCase returns the longest that a call can take if its operation ends with its context:
// every attempt times out, and every wait is the longest possible (drawn, asked for by the
// server, or for room). It is at most Deadline. It is math.MaxInt64 if there is neither Deadline
// nor AttemptTimeout.
func (p Policy) WorstCase() time.Duration {
	p = p.WithDefaults()
	bound := choice.Either(p.Deadline > 0, p.Deadline, time.Duration(math.MaxInt64))
	if p.AttemptTimeout <= 0 {
		return bound
	}
	rateLimited := p.rateLimited()
	forRoom := saturating.Add(p.Throttle.LongestWait(), max(p.Limit.MaxWait, 0))
	var sum time.Duration
	for n := 1; n <= p.allowed() && sum < bound; n++ {
		if n > 1 {
			sum = saturating.Add(sum, p.longestWait(n-1, rateLimited))
		}
		sum = saturating.Add(sum, saturating.Add(forRoom, p.AttemptTimeout))
	}
	return min(sum, bound)
}
