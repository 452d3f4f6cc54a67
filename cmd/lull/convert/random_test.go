package convert

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/waits"
	"github.com/lullgo/lull/throttle"
)

var whole = flag.Bool("whole", false, "let random tests run for longer")

func rounds() uint64 {
	if *whole {
		return 20_000
	}
	return 50
}

func pick[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

// randomPolicy is a valid policy in which anything may be set.
func randomPolicy(r *rand.Rand) lull.Policy {
	for {
		p := lull.Policy{
			Attempts:       pick(r, 0, 1, 1, 2, 3, 4, 5, 6, 17, 1000),
			AttemptTimeout: pick(r, 0, 0, lull.NoTimeout, time.Millisecond, 1500*time.Microsecond, time.Second, 2*time.Second, time.Minute),
			Deadline:       pick(r, 0, 0, lull.NoTimeout, time.Second, 1, 2*time.Second, 2*time.Second+1, time.Hour, 300000*time.Hour),
			Backoff: backoff.Schedule{
				Kind:      pick(r, backoff.Exponential, backoff.Exponential, backoff.Exponential, backoff.Linear, backoff.Constant, backoff.Immediate, backoff.Ethernet),
				Jitter:    pick(r, backoff.Full, backoff.Full, backoff.Proportional, backoff.Proportional, backoff.None, backoff.Equal, backoff.Decorrelated),
				Base:      pick(r, 0, 0, 1, 25*time.Millisecond, 25*time.Millisecond, 1500*time.Microsecond, time.Second),
				Cap:       pick(r, 0, 0, 250*time.Millisecond, 1200*time.Millisecond, time.Minute, 3*time.Second+7),
				Floor:     pick(r, 0, 0, 0, 0, time.Microsecond, 20*time.Millisecond),
				Factor:    pick(r, 0, 0, 1, 1.5, 2, 3),
				FastFirst: r.IntN(6) == 0,
			},
			RateLimitedBase: pick(r, 0, 1, time.Second, 50*time.Millisecond),
			Timeouts:        pick(r, engine.TimeoutsWhenAnswered, lull.TimeoutsAlways, lull.TimeoutsNever),
			Nested:          pick(r, engine.NestedNever, lull.NestedAlways),
			HintLimit:       pick(r, 0, time.Second, 1500*time.Microsecond, anyHint),
			Breaker:         randomBreaker(r),
			Limit:           pick(r, bulkhead.Config{}, bulkhead.Config{InFlight: 7}, bulkhead.Config{InFlight: 7, MaxWait: time.Second}, bulkhead.Config{InFlight: 7, MaxWait: time.Second, MaxQueue: 3}),
			Throttle:        pick(r, throttle.Config{}, throttle.Config{}, throttle.Config{Mode: throttle.Adaptive}),
			Budget: pick(r, budget.Config{}, budget.Config{Unlimited: true}, budget.Config{Ratio: 0.07, Stock: 5}, budget.Config{Earn: budget.Arrivals, Ratio: 0.20001},
				budget.Config{Window: 10 * time.Second, Floor: 2, Earn: budget.Arrivals}, budget.Config{Window: 100 * time.Millisecond, Cooldown: time.Second, Ratio: 2}),
		}
		if r.IntN(4) == 0 {
			p.Hedge = hedge.Config{Attempts: pick(r, 1, 2, 3, 5), Delay: pick(r, 0, hedge.AtOnce, 20*time.Millisecond, time.Microsecond, 3*time.Second), Share: pick(r, 0, -1, 0.2), InFlight: pick(r, 0, -1, 5)}
			if p.Hedge.Attempts > 1 {
				p.Attempts = pick(r, 0, 1)
			}
		}
		if p.Validate() == nil {
			return p
		}
	}
}

func randomBreaker(r *rand.Rand) breaker.Config {
	if r.IntN(3) == 0 {
		return breaker.Config{Off: true}
	}
	return breaker.Config{
		Consecutive: pick(r, 0, -1, 5), ConsecutiveFor: pick(r, 0, -1, time.Second),
		FailureRate: pick(r, 0, 0, 0.5, 0.123), MinCalls: pick(r, 0, 7), Window: pick(r, 0, time.Minute),
		OpenFor: pick(r, 0, 15*time.Second, time.Minute), OpenMax: pick(r, 0, time.Minute, 5*time.Minute),
		OpenJitter: pick(r, 0, -1, 0.25), MetricsOnly: r.IntN(9) == 0,
	}
}

// meaning is a policy by what it does: fields that make no difference are taken away, and
// those that do are as they count. The keys are the fields in a file.
//
// Of the waits, only those before the first retries count.
func meaning(p lull.Policy, retries int) map[string]any {
	p = p.WithDefaults()
	hedged := p.Hedge.Attempts > 1
	attempts := p.MaxAttempts()
	m := map[string]any{"attempts": attempts, "deadline": p.Deadline, "attempt_timeout": lull.NoTimeout}
	if hedged {
		m["attempts"] = 1
		m["hedge"] = p.Hedge
	}
	if waits.Bounded(p) {
		m["attempt_timeout"] = p.AttemptTimeout
	}
	if attempts > 1 {
		if !hedged {
			var ranges [][2]time.Duration
			for n := 1; n < min(attempts, retries+1, 100); n++ {
				ranges = append(ranges, waits.Range(p.Backoff, n))
			}
			m["backoff"] = fmt.Sprint(ranges, p.Backoff.Kind == backoff.Ethernet, p.Backoff.Jitter == backoff.Decorrelated)
		}
		m["rate_limited_base"] = p.RateLimitedBase > max(p.Backoff.Ceiling(1), waits.SameWhenRateLimited)
		m["timeouts"], m["nested"], m["hint_limit"] = p.Timeouts, p.Nested, p.HintLimit
		b := p.Budget
		b.Ratio = cmp.Or(b.Ratio, budget.DefaultRatio)
		if b.Window == 0 {
			b.Stock = cmp.Or(b.Stock, budget.DefaultStock)
		}
		if b.Unlimited {
			b = budget.Config{Unlimited: true}
		}
		m["budget"] = b
	}
	if p.Breaker.Off {
		m["breaker"] = nil
	} else {
		m["breaker"] = p.Breaker
	}
	m["limit"] = p.Limit
	if p.Throttle.Mode != throttle.Off {
		m["throttle"] = p.Throttle
	}
	return m
}

// differing are the fields in which two policies do not mean the same.
func differing(a, b lull.Policy) []string {
	ma, mb := meaning(a, retriesOf(a, b)), meaning(b, retriesOf(a, b))
	var fields []string
	for _, f := range []string{"attempts", "attempt_timeout", "deadline", "backoff", "rate_limited_base", "timeouts", "nested", "hint_limit", "budget", "breaker", "hedge", "throttle", "limit"} {
		if !reflect.DeepEqual(ma[f], mb[f]) {
			fields = append(fields, f)
		}
	}
	return fields
}

func retriesOf(a, b lull.Policy) int {
	return min(a.MaxAttempts(), b.MaxAttempts()) - 1
}

// reported reports whether there is a loss of that field of the dependency.
func reported(r Report, name, field string) bool {
	return slices.ContainsFunc(r, func(e Entry) bool {
		path := "dependencies." + name + "." + field
		return e.Kind.Loss() && (e.Path == path || strings.HasPrefix(e.Path, path+"."))
	})
}

func file(t testing.TB, policies ...lull.Policy) File {
	t.Helper()
	f := &config.PolicyFile{}
	for i, p := range policies {
		name := "api"
		if i > 0 {
			name = fmt.Sprintf("api-%d", i)
		}
		f.Dependencies = append(f.Dependencies, config.Dependency{Name: name, Policy: p})
	}
	return File{"policies.yaml", must.Have(config.FormatPolicyFile(f))}
}

func policies(t testing.TB, data []byte) []config.Dependency {
	t.Helper()
	f, err := config.ParsePolicyFile("back.yaml", data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	return f.Dependencies
}

func convert(t testing.TB, f File, to Format, o Options) Output {
	t.Helper()
	out, err := Convert([]File{f}, to, o)
	if err != nil {
		t.Fatalf("to %v: %v\n%s", to, err, f.Data)
	}
	return out
}

// For every policy the conversion is valid. After a conversion back everything is unchanged or
// reported, a second conversion writes the same as the first, and every change that is reported is
// real.
func TestPoliciesGoThereAndBack(t *testing.T) {
	t.Parallel()
	for _, to := range []Format{GRPC, Istio, Envoy, Gateway, EnvoyGateway, Dapr} {
		t.Run(to.String(), func(t *testing.T) {
			for seed := range rounds() {
				p := randomPolicy(rand.New(rand.NewPCG(seed, 7)))
				out := convert(t, file(t, p), to, Options{JSON: seed%2 == 1})
				back := convert(t, File{"out", out.Data}, Lull, Options{})
				got := policies(t, back.Data)
				if len(got) != 1 {
					t.Fatalf("seed %d: %d policies come back of\n%s", seed, len(got), out.Data)
				}
				q := got[0].Policy
				if to == GRPC && out.Report == nil {
					t.Fatalf("seed %d: nothing is reported", seed)
				}
				for _, field := range differing(p, q) {
					// For a system without hedges, a policy that hedges is written as one that retries.
					asRetries := p.Hedge.Attempts > 1 && slices.Contains([]string{"attempts", "backoff", "rate_limited_base"}, field) && reported(out.Report, "api", "hedge")
					if !reported(out.Report, "api", field) && !asRetries {
						t.Fatalf("seed %d: %s is not reported: %v comes back as %v\n%+v\n%+v\n%s\n%s\n%s", seed, field, meaning(p, 9)[field], meaning(q, 9)[field], p, q, out.Data, out.Report, back.Data)
					}
				}
				again := convert(t, file(t, q), to, Options{JSON: seed%2 == 1})
				if got[0].Name != "api" && to != GRPC {
					t.Fatalf("seed %d: the name is %q", seed, got[0].Name)
				}
				if string(again.Data) != string(out.Data) {
					t.Fatalf("seed %d: %+v\nis written as\n%s\nand what comes back of it\n%+v\nas\n%s", seed, p, out.Data, q, again.Data)
				}
			}
		})
	}
}
