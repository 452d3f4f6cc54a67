package lull_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/preset"
	"github.com/lullgo/lull/throttle"
)

func asError(err error, target **lull.Error) bool { return errors.As(err, target) }

// Each mistake is a problem of its own, that names its field.
func TestValidateReportsEveryProblem(t *testing.T) {
	p := lull.Policy{
		Attempts:        -1,
		AttemptTimeout:  -5 * time.Second,
		Deadline:        -2,
		RateLimitedBase: -1,
		HintLimit:       -1,
		Backoff:         backoff.Schedule{Base: -1, Factor: math.NaN()},
		Budget:          budget.Config{Ratio: -0.5, Window: time.Nanosecond},
		Breaker:         breaker.Config{FailureRate: 2},
		Hedge:           hedge.Config{Attempts: -1},
		Throttle:        throttle.Config{K: -1},
		Limit:           bulkhead.Config{InFlight: -1},
	}
	want := []string{"Attempts", "AttemptTimeout", "Deadline", "Backoff.Base", "Backoff.Factor", "RateLimitedBase", "HintLimit", "Budget.Ratio", "Budget.Window", "Breaker.FailureRate", "Hedge.Attempts", "Throttle.K", "Limit.InFlight"}
	_, err := lull.NewDependency("payments", p)
	var problems engine.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("error is %v", err)
	}
	got := problem.Fields(err)
	for _, p := range problems {
		if p.Allowed == "" || !strings.Contains(err.Error(), p.Error()) {
			t.Errorf("problem %+v does not say what is allowed, or the error does not say the problem", p)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("problems with %v\nwant          %v\n%v", got, want, err)
	}
}

// The policy in force, with its defaults filled in, is valid, and means the same for another
// dependency.
func TestThePolicyInForceIsAPolicy(t *testing.T) {
	for _, p := range []lull.Policy{{}, {Attempts: 7}, hedging(2), {Limit: bulkhead.Config{InFlight: 1}}} {
		first := newDependency(t, p).Policy()
		d, err := lull.NewDependency("again", first)
		if err != nil {
			t.Errorf("%+v: %v", first, err)
			continue
		}
		if again := d.Policy(); again != first || p.Hedge.Attempts > 1 && again.Attempts != 1 {
			t.Errorf("%+v has become %+v", first, again)
		}
	}
}

func TestAnAttemptTimeoutBeyondTheDeadline(t *testing.T) {
	err := lull.Policy{AttemptTimeout: 2 * time.Second, Deadline: time.Second}.Validate()
	if err == nil || !strings.Contains(err.Error(), "AttemptTimeout is 2s: want no more than the Deadline of 1s") {
		t.Errorf("error %v", err)
	}
}

func TestThePoliciesAreValid(t *testing.T) {
	for name, c := range map[string]struct {
		policy lull.Policy
		worst  time.Duration // as in its doc comment
	}{
		"zero":             {lull.Policy{}, 30 * time.Second},
		"InternalService":  {preset.InternalService(), 3 * time.Second},
		"ExternalAPI":      {preset.ExternalAPI(), time.Minute},
		"BackgroundWorker": {preset.BackgroundWorker(), 10 * time.Minute},
		"CommandLine":      {preset.CommandLine(), time.Minute},
		"Edge":             {preset.Edge(), 12 * time.Second},
		"PerKey":           {preset.PerKey(), 17 * time.Second},
		"LLM":              {preset.LLM(), 5 * time.Minute},
	} {
		check.Equal(t, c.policy.Validate(), nil, "%s", name)
		check.Equal(t, c.policy.WorstCase(), c.worst, "%s: worst case, and the documented one", name)
	}
}

func TestWorstCase(t *testing.T) {
	none := backoff.Schedule{Jitter: backoff.None, Base: 2 * time.Second}
	for _, c := range []struct {
		name   string
		policy lull.Policy
		want   time.Duration
	}{
		// 3 attempts of 1 s; hints of 1 s, with jitter up to the waits of 2 s and 4 s.
		{"backoff", lull.Policy{Attempts: 3, AttemptTimeout: time.Second, Deadline: lull.NoTimeout, Backoff: none, HintLimit: time.Second}, 11 * time.Second},
		// 2 attempts of 1 s; a hint of 10 s and half of that in jitter.
		{"hints", lull.Policy{Attempts: 2, AttemptTimeout: time.Second, Deadline: lull.NoTimeout, HintLimit: 10 * time.Second}, 17 * time.Second},
		{"places in line", lull.Policy{Attempts: 1, AttemptTimeout: time.Second, Deadline: lull.NoTimeout, Limit: bulkhead.Config{InFlight: 1, MaxWait: 2 * time.Second}}, 3 * time.Second},
		// 2 attempts of 1 s, each held back for 3 s; a hint of 1 s and 4 s between.
		{"held back", lull.Policy{Attempts: 2, AttemptTimeout: time.Second, Deadline: lull.NoTimeout, Backoff: backoff.Schedule{Jitter: backoff.None, Base: 4 * time.Second}, HintLimit: time.Second,
			Throttle: throttle.Config{Mode: throttle.Cubic, MaxWait: 3 * time.Second}}, 13 * time.Second},
		{"refused at once", lull.Policy{Attempts: 1, AttemptTimeout: time.Second, Deadline: lull.NoTimeout, Throttle: throttle.Config{Mode: throttle.Adaptive, MaxWait: 3 * time.Second}}, time.Second},
		// As "backoff", should each attempt fail before a hedge is due.
		{"hedges", lull.Policy{Attempts: 3, AttemptTimeout: time.Second, Deadline: lull.NoTimeout, Backoff: none, HintLimit: time.Second, Hedge: hedge.Config{Attempts: 3}}, 11 * time.Second},
		{"deadline", lull.Policy{AttemptTimeout: lull.NoTimeout, Deadline: 5 * time.Second}, 5 * time.Second},
		{"nothing bounds it", lull.Policy{AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout}, math.MaxInt64},
		{"overflow", lull.Policy{Attempts: 1000, AttemptTimeout: math.MaxInt64 / 2, Deadline: lull.NoTimeout}, math.MaxInt64},
	} {
		check.Equal(t, c.policy.WorstCase(), c.want, "%s", c.name)
	}
}

// No call takes longer than the worst case of its policy.
func TestNoCallTakesLongerThanTheWorstCase(t *testing.T) {
	p := lull.Policy{Attempts: 4, AttemptTimeout: 300 * time.Millisecond, Deadline: lull.NoTimeout, HintLimit: time.Second, RateLimitedBase: 200 * time.Millisecond, Budget: plenty, Breaker: breaker.Config{Off: true}}
	d := newDependency(t, p)
	worst := time.Duration(0)
	for _, kind := range []engine.VerdictKind{lull.KindTransient, lull.KindRateLimited} {
		for _, hint := range []time.Duration{0, time.Millisecond, time.Second} {
			now := time.Duration(0)
			c, _ := d.State().Start(now, engine.Spec{})
			for {
				if c.Attempt(now, nil).Done {
					break
				}
				now += c.Timeout(now)
				step := c.Next(now, lull.Verdict{Kind: kind, After: hint}, func() uint64 { return 1<<64 - 1 })
				if step.Done {
					break
				}
				now += step.Wait
			}
			worst = max(worst, now)
		}
	}
	if stated := p.WorstCase(); worst > stated || worst < stated*9/10 {
		t.Errorf("the longest call took %v, the policy states %v", worst, stated)
	}
}

// A duration without its unit, and a percentage, are refused in each field, with a guess of what
// was meant.
func TestAForgottenUnitIsRefused(t *testing.T) {
	// A nanosecond means practically none.
	if _, err := lull.NewDependency("d", lull.Policy{RateLimitedBase: 1, HintLimit: 1}); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		p    lull.Policy
		want []string
	}{
		{lull.Policy{AttemptTimeout: 500, Deadline: 3000}, []string{"AttemptTimeout is 500ns: ", "was 500ms meant?", "Deadline is 3µs: ", "was 3s meant?"}},
		{lull.Policy{Deadline: 30000, AttemptTimeout: lull.NoTimeout}, []string{"Deadline is 30µs: ", "was 30s meant?"}},
		{lull.Policy{Backoff: backoff.Schedule{Base: 50, Cap: 2000}}, []string{"Backoff.Base is 50ns: ", "was 50ms meant?", "Backoff.Cap is 2µs: ", "was 2s meant?"}},
		{lull.Policy{Hedge: hedge.Config{Attempts: 2, Delay: 20}}, []string{"Hedge.Delay is 20ns: ", "was 20ms meant?"}},
		{lull.Policy{Breaker: breaker.Config{OpenFor: 5000}}, []string{"Breaker.OpenFor is 5µs: ", "was 5s meant?"}},
		{lull.Policy{Budget: budget.Config{Ratio: 10}}, []string{"Budget.Ratio is 10: ", "10 % is 0.1: was that meant?"}},
		{lull.Policy{Breaker: breaker.Config{FailureRate: 50}}, []string{"Breaker.FailureRate is 50: ", "50 % is 0.5: was that meant?"}},
	} {
		_, err := lull.NewDependency("d", c.p)
		if err == nil {
			t.Errorf("%+v is accepted", c.p)
			continue
		}
		rest := err.Error()
		for _, want := range c.want {
			i := strings.Index(rest, want)
			if i < 0 {
				t.Errorf("%v: %q is missing", err, want)
				break
			}
			rest = rest[i+len(want):]
		}
	}
}

// panicOf returns the value that f panics with, as text.
func panicOf(f func()) (text string) {
	defer func() {
		if p := recover(); p != nil {
			text = fmt.Sprint(p)
		}
	}()
	f()
	return ""
}

// A nil or zero Dependency or Registry is named by the panic.
func TestZeroValuesAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		ok := func(context.Context) (int, error) { return 1, nil }
		for name, d := range map[string]*lull.Dependency{"nil": nil, "zero": {}} {
			for what, use := range map[string]func(){
				"Do":       func() { lull.Do(ctx, d, ok) },
				"DoHedged": func() { lull.DoHedged(ctx, d, ok) },
				"Start":    func() { d.State().Start(0, engine.Spec{}) },
				"Name":     func() { d.Name() },
				"Now":      func() { d.Now() },
				"Update":   func() { d.Update(lull.Policy{}) },
				"Clone":    func() { d.Clone("x") },
				"Breaker":  func() { d.Breaker() },
				"Error":    func() { d.Error("", engine.Result{}, nil) },
			} {
				if text := panicOf(use); !strings.Contains(text, "lull.NewDependency") {
					t.Errorf("%s of a %s Dependency panics with %q", what, name, text)
				}
			}
		}
		for what, use := range map[string]func(r *lull.Registry){
			"Get":    func(r *lull.Registry) { r.Get("x") },
			"Len":    func(r *lull.Registry) { r.Len() },
			"All":    func(r *lull.Registry) { r.All(func(*lull.Dependency) bool { return true }) },
			"Update": func(r *lull.Registry) { r.Update(lull.Policy{}) },
		} {
			if text := panicOf(func() { use(new(lull.Registry)) }); !strings.Contains(text, "lull.NewRegistry") {
				t.Errorf("%s of a zero Registry panics with %q", what, text)
			}
		}
	})
}

// A nil *Error in a variable of type error is a failure, and its text names the mistake.
func TestANilErrorIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var none *lull.Error
		err := lull.Run(t.Context(), newDependency(t, lull.Policy{}), func(context.Context) error { return none })
		var e *lull.Error
		if !errors.As(err, &e) || e.Reason != engine.Permanent || e.Verdict.Kind != lull.KindUnclassified || !strings.Contains(err.Error(), "a nil *lull.Error") {
			t.Errorf("%v", err)
		}
		if errors.Is(none, context.Canceled) || none.Timeout() || errors.Unwrap(none) != nil {
			t.Error("a nil *Error means something")
		}
		if v := lull.Classify(lull.RetryAfter(none, time.Second)); v.Kind != lull.KindRateLimited {
			t.Errorf("marked: %+v", v)
		}
	})
}
