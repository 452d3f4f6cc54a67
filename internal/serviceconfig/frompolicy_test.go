package serviceconfig_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/serviceconfig"
	"github.com/lullgo/lull/throttle"
)

const ms = time.Millisecond

// plain is a policy that a service config can hold whole: nothing of it is lost.
func plain() lull.Policy {
	return lull.Policy{
		AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout, HintLimit: math.MaxInt64,
		Backoff:         backoff.Schedule{Jitter: backoff.Proportional, Cap: 1200 * ms},
		RateLimitedBase: 1, Timeouts: lull.TimeoutsNever, Nested: lull.NestedAlways,
		Budget: budget.Config{Unlimited: true}, Breaker: breaker.Config{Off: true},
	}
}

// Each thing that gRPC does not have is reported, and by itself.
func TestWhatIsLostOfAPolicy(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(*lull.Policy)
	}{
		{"[]", func(*lull.Policy) {}},
		{"[AttemptTimeout]", func(p *lull.Policy) { p.AttemptTimeout = time.Second }},
		{"[]", func(p *lull.Policy) { p.AttemptTimeout, p.Deadline = time.Second, time.Second }}, // the call ends as soon
		{"[Attempts]", func(p *lull.Policy) { p.Attempts = 6 }},
		{"[]", func(p *lull.Policy) { p.Attempts = 5 }},
		{"[HintLimit]", func(p *lull.Policy) { p.HintLimit = time.Hour }},
		{"[RateLimitedBase]", func(p *lull.Policy) { p.RateLimitedBase = 101 * ms }},
		{"[]", func(p *lull.Policy) { p.RateLimitedBase = 100 * ms }},
		{"[Timeouts]", func(p *lull.Policy) { p.Timeouts = engine.TimeoutsWhenAnswered }},
		{"[]", func(p *lull.Policy) { p.Timeouts = lull.TimeoutsAlways }},
		{"[Nested]", func(p *lull.Policy) { p.Nested = engine.NestedNever }},
		{"[Budget]", func(p *lull.Policy) { p.Budget = budget.Config{} }},
		{"[Breaker]", func(p *lull.Policy) { p.Breaker = breaker.Config{} }},
		{"[Throttle]", func(p *lull.Policy) { p.Throttle.Mode = throttle.Adaptive }},
		{"[Limit]", func(p *lull.Policy) { p.Limit = bulkhead.Config{InFlight: 1} }},
		{"[Hedge]", func(p *lull.Policy) { p.Hedge = hedge.Config{Attempts: 2} }},
	} {
		p := plain()
		c.change(&p)
		out, lost := made(t, p)
		if got := fmt.Sprint(of(lost)); got != c.want {
			t.Errorf("%s is lost, want %s", got, c.want)
		}
		if len(lost) > 0 {
			continue
		}
		// Nothing is lost: it comes back as it was, on top of what gRPC has for everybody.
		base := plain()
		base.Backoff, base.RateLimitedBase, base.Timeouts = backoff.Schedule{}, 0, 0
		back, more := out.Methods[0].Policy(base, serviceconfig.Reading{PolicyOnly: true})
		if back.Attempts != p.WithDefaults().Attempts || back.Deadline != p.Deadline || back.Timeouts != p.Timeouts || back.Backoff.Ceiling(1) != 100*ms || back.Backoff.Ceiling(9) != time.Second || len(more) != 0 {
			t.Errorf("%+v comes back as %+v, %v", p, back, more)
		}
	}
}

// Without retries there is nothing that a config could get wrong.
func TestOneAttemptLosesNothing(t *testing.T) {
	p := plain()
	p.Attempts, p.HintLimit, p.RateLimitedBase, p.Nested, p.Backoff = 1, 0, 0, engine.NestedNever, backoff.Schedule{}
	c, lost, err := serviceconfig.Of(p)
	if err != nil || len(lost) != 0 || string(marshal(t, c)) != `{"methodConfig":[{"name":[{}]}]}` {
		t.Errorf("%s, %v, %v", marshal(t, c), lost, err)
	}
}

func TestSchedulesAsRetryPolicies(t *testing.T) {
	const p = backoff.Proportional
	for _, c := range []struct {
		name     string
		attempts int
		schedule backoff.Schedule
		want     string // initialBackoff, maxBackoff, backoffMultiplier, maxAttempts
		lost     []string
	}{
		{"exponential", 3, backoff.Schedule{Jitter: p, Base: 50 * ms, Cap: 1200 * ms, Factor: 1.6}, "50ms 1s 1.6 3", nil},
		{"one that never grows", 5, backoff.Schedule{Jitter: p, Base: 50 * ms, Cap: 1200 * ms, Factor: 1}, "50ms 1s 1 5", nil},
		{"full jitter", 3, backoff.Schedule{}, "100ms 20s 2 3", []string{"Backoff.Jitter"}},
		{"constant", 4, backoff.Schedule{Kind: backoff.Constant, Jitter: p, Base: 50 * ms}, "50ms 50ms 1 4", nil},
		{"constant, and none", 4, backoff.Schedule{Kind: backoff.Constant}, "1ms 1ms 1 4", []string{"Backoff.Base", "Backoff.Jitter"}},
		{"linear, as long as it is exponential", 3, backoff.Schedule{Kind: backoff.Linear, Jitter: p, Cap: 1200 * ms}, "100ms 1s 2 3", nil},
		{"linear", 4, backoff.Schedule{Kind: backoff.Linear, Jitter: p, Cap: 1200 * ms}, "100ms 1s 2 4", []string{"Backoff.Kind"}},
		{"once, at once", 4, backoff.Schedule{Kind: backoff.Immediate}, "1ms 1ms 1 2", []string{"Backoff.Kind", "Backoff.Base", "Backoff.Jitter"}},
		{"from the one before", 3, backoff.Schedule{Jitter: backoff.Decorrelated, Cap: time.Second}, "300ms 1s 3 3", []string{"Backoff.Jitter"}},
		{"the first at once", 3, backoff.Schedule{Jitter: p, Cap: 1200 * ms, FastFirst: true}, "100ms 1s 2 3", []string{"Backoff.FastFirst"}},
		{"no less than", 3, backoff.Schedule{Jitter: p, Cap: 1200 * ms, Floor: 99 * ms}, "100ms 1s 2 3", []string{"Backoff.Floor"}},
		{"too short for gRPC", 2, backoff.Schedule{Jitter: p, Base: ms / 2, Cap: 1200 * ms}, "1ms 1s 2 2", []string{"Backoff.Base"}},
		{"beyond the fifth attempt", 99, backoff.Schedule{Jitter: p, Cap: 1200 * ms}, "100ms 1s 2 5", []string{"Attempts"}},
	} {
		policy := plain()
		policy.Attempts, policy.Backoff, policy.RateLimitedBase = c.attempts, c.schedule, time.Hour
		out, lost := made(t, policy)
		r := out.Methods[0].Retry
		if got := fmt.Sprint(r.InitialBackoff, r.MaxBackoff, r.BackoffMultiplier, r.MaxAttempts); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if want := append(c.lost, "RateLimitedBase"); !slices.Equal(of(lost), want) {
			t.Errorf("%s: lost %q, want %q", c.name, of(lost), want)
		}
	}
}

// With RESOURCE_EXHAUSTED in the list gRPC sends the next hedge at once. So it is only in the
// list of a policy that does the same.
func TestHedgesAfterResourceExhausted(t *testing.T) {
	for _, c := range []struct {
		base    time.Duration
		backoff backoff.Schedule
		want    []serviceconfig.Code
	}{
		{1, backoff.Schedule{Kind: backoff.Constant}, []serviceconfig.Code{serviceconfig.Unavailable, serviceconfig.ResourceExhausted}},
		{1, backoff.Schedule{}, []serviceconfig.Code{serviceconfig.Unavailable}},
		{time.Second, backoff.Schedule{Kind: backoff.Constant}, []serviceconfig.Code{serviceconfig.Unavailable}},
	} {
		p := plain()
		p.Hedge = hedge.Config{Attempts: 2, Delay: ms, Share: -1, InFlight: -1}
		p.RateLimitedBase, p.Backoff = c.base, c.backoff
		out, lost := made(t, p)
		if got := out.Methods[0].Hedging.NonFatalStatusCodes; !slices.Equal(got, c.want) || (len(lost) == 0) != (len(got) == 2) {
			t.Errorf("%v, %v: %v, lost %v", c.base, c.backoff, got, lost)
		}
		base := p
		base.Backoff, base.RateLimitedBase = backoff.Schedule{}, 0
		back, _ := out.Methods[0].Policy(base, serviceconfig.Reading{PolicyOnly: true})
		if patient := back.RateLimitedBase > ms; patient == (len(c.want) == 2) || !patient && back != (lull.Policy{
			Attempts: 1, AttemptTimeout: p.AttemptTimeout, Deadline: p.Deadline, HintLimit: p.HintLimit, Backoff: p.Backoff, RateLimitedBase: 1,
			Timeouts: p.Timeouts, Nested: p.Nested, Budget: p.Budget, Breaker: p.Breaker, Hedge: p.Hedge,
		}) {
			t.Errorf("%v, %v: comes back as %+v", c.base, c.backoff, back)
		}
	}
}

func TestBudgetsAsThrottling(t *testing.T) {
	for _, c := range []struct {
		budget budget.Config
		want   budget.GRPCConfig
	}{
		{budget.Config{}, budget.GRPCConfig{MaxTokens: 2*budget.DefaultStock + 2, TokenRatio: budget.DefaultRatio}},
		{budget.Config{Window: time.Second}, budget.GRPCConfig{MaxTokens: 4, TokenRatio: 0.1}}, // no stock: as little as gRPC can
		{budget.Config{Window: time.Second, Stock: 3.5}, budget.GRPCConfig{MaxTokens: 10, TokenRatio: 0.1}},
		{budget.Config{Stock: 1e6, Ratio: budget.MaxRatio}, budget.GRPCConfig{MaxTokens: 1000, TokenRatio: budget.MaxRatio}},
		{budget.Config{Ratio: budget.MinRatio}, budget.GRPCConfig{MaxTokens: 6, TokenRatio: 0.001}},
		{budget.Config{Ratio: 0.12345}, budget.GRPCConfig{MaxTokens: 6, TokenRatio: 0.123}}, // gRPC has three decimals
	} {
		p := plain()
		p.Budget = c.budget
		out, lost, err := serviceconfig.Of(p)
		if err != nil || *out.Throttling != c.want || len(lost) != 1 || !lost[0].Changed {
			t.Errorf("%+v: %+v, %v, %v, want %+v", c.budget, out.Throttling, lost, err, c.want)
		}
	}
}
