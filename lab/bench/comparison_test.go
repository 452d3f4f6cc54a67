package bench

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	avast "github.com/avast/retry-go/v5"
	awsretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go/middleware"
	cenkalti "github.com/cenkalti/backoff/v7"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/budget"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	"github.com/hashicorp/go-retryablehttp"
	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/lullhttp"
	"github.com/sony/gobreaker/v2"
	"resty.dev/v3"
)

// The comparison of the README, behaviour by behaviour. docs/comparison.md has what each test
// found; the tests run in virtual time and fail if a library behaves otherwise one day:
//
//	go test ./lab/bench -run TestComparison -v

// refused is a failure that every library takes for transient.
type refused struct{}

func (refused) Error() string       { return "service unavailable" }
func (refused) HTTPStatusCode() int { return http.StatusServiceUnavailable }

// A maker makes a call of an operation.
type maker func(context.Context, op) error

// A looper makes a call under a library's retries: four attempts, 50 ms apart, with the budget
// that the library has.
type looper struct {
	name string
	open func(t testing.TB) maker
}

func loopers(wait time.Duration) []looper {
	ready := func(call maker) func(testing.TB) maker {
		return func(testing.TB) maker { return call }
	}
	overHTTP := func(open func(http.RoundTripper) func(*http.Request) error) func(testing.TB) maker {
		return func(testing.TB) maker {
			send := open(roundTrip(func(r *http.Request) (*http.Response, error) {
				if op := r.Context().Value(operation{}).(op); op(r.Context()) != nil {
					return answer(r, http.StatusServiceUnavailable), nil
				}
				return answer(r, http.StatusOK), nil
			}))
			return func(ctx context.Context, op op) error {
				return send(must.Have(http.NewRequestWithContext(context.WithValue(ctx, operation{}, op), http.MethodGet, "http://api.example/", nil)))
			}
		}
	}
	return []looper{
		{name: "lull", open: func(t testing.TB) maker {
			d := must.Have(lull.NewDependency("api", lull.Policy{Backoff: backoff.Schedule{Kind: backoff.Constant, Base: wait, Jitter: backoff.None}}, lull.WithRand(seed.Source(t))))
			return func(ctx context.Context, op op) error {
				return lull.Run(ctx, d, func(ctx context.Context) error { return lull.Transient(op(ctx)) })
			}
		}},
		{name: "cenkalti/backoff", open: ready(func(ctx context.Context, op op) error {
			_, err := cenkalti.Retry(ctx, func() (struct{}, error) { return struct{}{}, op(ctx) }, cenkalti.WithMaxTries(attempts), cenkalti.WithBackOff(cenkalti.NewConstantBackOff(wait)))
			return err
		})},
		{name: "avast/retry-go", open: func(testing.TB) maker {
			throttle := avast.NewFixedTokenBucketThrottle(avast.FixedTokenBucketThrottleConfig{})
			return func(ctx context.Context, op op) error {
				return avast.New(avast.Context(ctx), avast.Attempts(attempts), avast.Delay(wait), avast.DelayType(avast.FixedDelay), avast.WithThrottle(throttle)).
					Do(func() error { return op(ctx) })
			}
		}},
		{name: "go-retryablehttp", open: overHTTP(func(base http.RoundTripper) func(*http.Request) error {
			c := retryablehttp.NewClient()
			c.Logger, c.RetryMax, c.RetryWaitMin, c.RetryWaitMax, c.HTTPClient.Transport = nil, attempts-1, wait, wait, base
			return carry(c.StandardClient())
		})},
		{name: "net/http", open: overHTTP(func(base http.RoundTripper) func(*http.Request) error {
			return carry(&http.Client{Transport: base})
		})},
		{name: "failsafe-go", open: func(testing.TB) maker {
			retries := retrypolicy.NewBuilder[any]().WithMaxAttempts(attempts).WithDelay(wait).WithBudget(budget.New()).Build()
			executor := failsafe.With[any](retries)
			return func(ctx context.Context, op op) error {
				return executor.WithContext(ctx).RunWithExecution(func(e failsafe.Execution[any]) error { return op(e.Context()) })
			}
		}},
		{name: "resty", open: overHTTP(func(base http.RoundTripper) func(*http.Request) error {
			c := resty.New().SetTransport(base).SetRetryCount(attempts - 1).SetRetryWaitTime(wait).SetRetryMaxWaitTime(2 * wait).
				AddRetryConditions(resty.RetryConditionStatus5XX)
			return func(r *http.Request) error {
				resp, err := c.R().SetContext(r.Context()).Get(r.URL.String())
				if err == nil && resp.StatusCode() != http.StatusOK {
					err = refused{}
				}
				return err
			}
		})},
		{name: "AWS SDK", open: func(testing.TB) maker {
			standard := awsretry.NewStandard(func(o *awsretry.StandardOptions) {
				o.MaxAttempts = attempts
				o.Backoff = awsretry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return wait, nil })
			})
			m := awsretry.NewAttemptMiddleware(standard, func(in any) any { return in })
			return func(ctx context.Context, op op) error {
				_, _, err := m.HandleFinalize(ctx, middleware.FinalizeInput{}, middleware.FinalizeHandlerFunc(
					func(ctx context.Context, _ middleware.FinalizeInput) (out middleware.FinalizeOutput, data middleware.Metadata, err error) {
						return out, data, op(ctx)
					}))
				return err
			}
		}},
	}
}

// operation is the key of what a request over HTTP is to do.
type operation struct{}

func carry(c *http.Client) func(*http.Request) error {
	return func(r *http.Request) error {
		resp, err := c.Do(r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return refused{}
		}
		return nil
	}
}

// A total outage after normal traffic: 200 callers, who have had 5 successes each, make 25 calls
// each that all fail. How many attempts are that for each call?
func TestComparisonBudget(t *testing.T) {
	want := map[string][2]float64{ // from, to
		"lull": {1, 1.1}, "cenkalti/backoff": {4, 4}, "avast/retry-go": {1, 1.1}, "go-retryablehttp": {4, 4}, "net/http": {1, 1},
		"failsafe-go": {1.5, 4}, "resty": {4, 4}, "AWS SDK": {1, 1.1},
	}
	for _, l := range loopers(50 * time.Millisecond) {
		t.Run(l.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const callers, good, bad = 200, 5, 25
				var tried atomic.Int64
				var down atomic.Bool
				call := l.open(t)
				op := func(context.Context) error {
					time.Sleep(time.Millisecond)
					if down.Load() {
						tried.Add(1)
						return refused{}
					}
					return nil
				}
				each := func(n int) {
					var all sync.WaitGroup
					for range callers {
						all.Go(func() {
							for range n {
								_ = call(t.Context(), op)
							}
						})
					}
					all.Wait()
				}
				each(good)
				down.Store(true)
				each(bad)
				got := float64(tried.Load()) / (callers * bad)
				t.Logf("%s: %.2f attempts for each call of an outage", l.name, got)
				if w := want[l.name]; got < w[0]-0.005 && l.name != "lull" || got > w[1]+0.005 {
					t.Errorf("want %v", w)
				}
			})
		})
	}
}

// The caller has 300 ms, and the next attempt would be in ten seconds. When does the call end?
func TestComparisonDeadline(t *testing.T) {
	for _, l := range loopers(10 * time.Second) {
		t.Run(l.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				began := time.Now()
				err := l.open(t)(ctx, func(context.Context) error { return refused{} })
				took := time.Since(began)
				t.Logf("%s: returns after %v, with the last error: %v", l.name, took, errors.As(err, new(refused)))
				if want := 300 * time.Millisecond; err == nil || (l.name == "lull" || l.name == "net/http") != (took == 0) || took != 0 && took != want {
					t.Errorf("after %v: %v", took, err)
				}
			})
		})
	}
}

// Clients of HTTP, three attempts, 100 ms apart if the server asks for nothing.
func clients(t *testing.T, base http.RoundTripper) map[string]func(method string) error {
	plain := func(c *http.Client) func(string) error {
		return func(method string) error {
			return carry(c)(must.Have(http.NewRequestWithContext(t.Context(), method, "http://api.example/", nil)))
		}
	}
	own := must.Have(lullhttp.New(lull.Policy{HintLimit: time.Minute}, lullhttp.WithBase(base), lullhttp.With(lull.WithRand(seed.Source(t)))))
	retryable := retryablehttp.NewClient()
	retryable.Logger, retryable.RetryMax, retryable.HTTPClient.Transport = nil, 2, base
	retryable.RetryWaitMin = 100 * time.Millisecond
	retries := failsafehttp.NewRetryPolicyBuilder().WithMaxAttempts(3).WithDelay(100 * time.Millisecond).ReturnLastFailure().Build()
	rest := resty.New().SetTransport(base).SetRetryCount(2).SetRetryMaxWaitTime(time.Minute).AddRetryConditions(resty.RetryConditionStatus5XX)
	return map[string]func(string) error{
		"lull":             plain(&http.Client{Transport: own}),
		"go-retryablehttp": plain(retryable.StandardClient()),
		"failsafe-go":      plain(&http.Client{Transport: failsafehttp.NewRoundTripper(base, retries)}),
		"resty": func(method string) error {
			_, err := rest.R().SetContext(t.Context()).Execute(method, "http://api.example/")
			return err
		},
	}
}

// A server answers 503 and asks for three seconds, in one of five ways. When does it see the
// second attempt? Sooner than that is wrong; and the last of the five asks for so long that no
// second attempt should come.
func TestComparisonRetryAfter(t *testing.T) {
	forms := []struct {
		name string
		text func() string
	}{
		{"seconds", func() string { return "3" }},
		{"IMF-fixdate", func() string { return time.Now().Add(3 * time.Second).UTC().Format(http.TimeFormat) }},
		{"RFC 850", func() string { return time.Now().Add(3 * time.Second).UTC().Format("Monday, 02-Jan-06 15:04:05 GMT") }},
		{"asctime", func() string { return time.Now().Add(3 * time.Second).UTC().Format(time.ANSIC) }},
		{"ages", func() string { return "9999999999" }},
	}
	want := map[string]string{
		"lull":             "seconds IMF-fixdate RFC 850 asctime ages",
		"go-retryablehttp": "seconds IMF-fixdate",
		"failsafe-go":      "seconds",
		"resty":            "seconds IMF-fixdate",
	}
	for name, right := range want {
		t.Run(name, func(t *testing.T) {
			var obeyed []string
			for _, form := range forms {
				synctest.Test(t, func(t *testing.T) {
					began := time.Now()
					var at []time.Duration
					base := roundTrip(func(r *http.Request) (*http.Response, error) {
						at = append(at, time.Since(began))
						if len(at) > 1 {
							return answer(r, http.StatusOK), nil
						}
						resp := answer(r, http.StatusServiceUnavailable)
						resp.Header.Set("Retry-After", form.text())
						return resp, nil
					})
					_ = clients(t, base)[name](http.MethodGet)
					late := len(at) > 1 && at[1] >= 3*time.Second && at[1] < 10*time.Second
					if form.name == "ages" {
						late = len(at) == 1
					}
					t.Logf("%s, %s: attempts at %v", name, form.name, at)
					if late {
						obeyed = append(obeyed, form.name)
					}
				})
			}
			check.Equal(t, strings.Join(obeyed, " "), right, "obeys")
		})
	}
}

// A POST is answered with 503, and nobody knows whether it was carried out. How often is it sent?
func TestComparisonIdempotency(t *testing.T) {
	for name, want := range map[string]int{"lull": 1, "go-retryablehttp": 3, "failsafe-go": 3, "resty": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sent := 0
				base := roundTrip(func(r *http.Request) (*http.Response, error) {
					sent++
					return answer(r, http.StatusServiceUnavailable), nil
				})
				_ = clients(t, base)[name](http.MethodPost)
				t.Logf("%s: sent %d times", name, sent)
				check.Equal(t, sent, want, "sent")
			})
		})
	}
}

// Twenty calls fail in a row, with three attempts each. Does the breaker learn of calls or of
// attempts? After half of them the breakers are open.
func TestComparisonBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		fail := func() (any, error) { sent++; return nil, refused{} }
		breaker := gobreaker.NewCircuitBreaker[any](gobreaker.Settings{ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= 10 }})
		around := failsafe.With[any](circuitbreaker.NewBuilder[any]().WithFailureThreshold(10).Build(), retrypolicy.NewBuilder[any]().WithMaxAttempts(3).Build())
		inside := failsafe.With[any](retrypolicy.NewBuilder[any]().WithMaxAttempts(3).Build(), circuitbreaker.NewBuilder[any]().WithFailureThreshold(10).Build())
		for _, x := range []struct {
			name string
			want int
			call func() (any, error)
		}{
			{"gobreaker in the loop, and then asked by each attempt", 10, func() (any, error) {
				return cenkalti.Retry(t.Context(), func() (any, error) { return breaker.Execute(fail) }, cenkalti.WithMaxTries(3), cenkalti.WithBackOff(&cenkalti.ZeroBackOff{}))
			}},
			{"failsafe-go, the breaker listed first", 30, func() (any, error) { return around.Get(fail) }},
			{"failsafe-go, the retries listed first", 10, func() (any, error) { return inside.Get(fail) }},
		} {
			sent = 0
			for range 20 {
				_, _ = x.call()
			}
			t.Logf("%s: open after %d attempts of %d calls", x.name, sent, (sent+2)/3)
			check.Equal(t, sent, x.want, "sent")
		}
	})
}

// BenchmarkComparison measures the time of the same calls as TestComparisonAllocations.
func BenchmarkComparison(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	for _, l := range loopers(time.Millisecond) {
		b.Run(l.name, func(b *testing.B) {
			call := l.open(b)
			for b.Loop() {
				_ = call(ctx, func(context.Context) error { return nil })
			}
		})
	}
}

var raced bool // by the race detector

// What a call costs whose first attempt succeeds, with a context that can end. Allocations are
// exact on any machine; for nanoseconds see BenchmarkComparison.
func TestComparisonAllocations(t *testing.T) {
	if raced {
		t.Skip("the race detector changes what is allocated")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	found := map[string]float64{}
	for _, l := range loopers(time.Millisecond) {
		call := l.open(t)
		found[l.name] = testing.AllocsPerRun(1000, func() { _ = call(ctx, func(context.Context) error { return nil }) })
		t.Logf("%s: %v allocations", l.name, found[l.name])
	}
	for name, n := range found {
		switch name {
		case "net/http":
			continue
		case "go-retryablehttp", "resty":
			n -= found["net/http"]
			t.Logf("%s: %v more than net/http", name, n)
		}
		if name == "lull" && n > 1 || name != "lull" && n <= found["lull"] {
			t.Errorf("%s: %v allocations, lull %v", name, n, found["lull"])
		}
	}
}
