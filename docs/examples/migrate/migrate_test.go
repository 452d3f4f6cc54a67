package migrate

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/lullhttp/lulltest"
)

var errUnavailable = errors.New("the ledger is not available")

// A backend is what the programs call. It counts their attempts.
type backend struct {
	mu       sync.Mutex
	attempts int
	good     func(attempt int) bool // the first attempt is 1
	slow     time.Duration          // how long a failure takes
}

func (b *backend) attempt() error { //clock: it is called in bubbles
	b.mu.Lock()
	b.attempts++
	good := b.good(b.attempts)
	b.mu.Unlock()
	if good {
		return nil
	}
	time.Sleep(b.slow)
	return errUnavailable
}

// transport is the backend for HTTP: 200 or 503.
func (b *backend) transport() http.RoundTripper {
	f := &lulltest.Faults{Rules: []lulltest.Rule{{
		When:   func(*http.Request) bool { return b.attempt() != nil },
		Status: http.StatusServiceUnavailable,
	}}}
	return f.Transport(nil)
}

// A program makes one call. It is made anew for each test.
type program func(t *testing.T, b *backend) (call func(context.Context) error)

var programs = []struct {
	name          string
	before, after program
}{
	{"cenkalti/backoff", cenkaltiBefore, cenkaltiAfter},
	{"avast/retry-go", avastBefore, avastAfter},
	{"go-retryablehttp", retryablehttpBefore, retryablehttpAfter},
	{"gobreaker", gobreakerBefore, gobreakerAfter},
	{"failsafe-go", failsafeBefore, failsafeAfter},
	{"resty", restyBefore, restyAfter},
	{"AWS SDK", awsBefore, awsAfter},
	{"gRPC service config", grpcBefore, grpcAfter},
	{"Istio", istioBefore, retryablehttpAfter},
}

// A call that succeeds at its first, second or third attempt makes the same attempts on both sides.
func TestSameAttemptsOnSuccess(t *testing.T) {
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			for at := 1; at <= 3; at++ {
				for side, program := range map[string]program{"before": p.before, "after": p.after} {
					synctest.Test(t, func(t *testing.T) {
						b := &backend{good: func(attempt int) bool { return attempt >= at }}
						if err := program(t, b)(t.Context()); err != nil {
							t.Errorf("%s: %v", side, err)
						}
						if b.attempts != at {
							t.Errorf("%s: %d attempts, want %d", side, b.attempts, at)
						}
					})
				}
			}
		})
	}
}

// Two outages of a minute, with ten calls a second. lull makes fewer attempts, or more calls succeed by them.
func TestFewerInAnOutage(t *testing.T) {
	const calls = 600
	for _, outage := range []struct {
		name string
		slow time.Duration
		good func(t *testing.T) func(int) bool
	}{
		{"all fail, after a second each", time.Second, func(*testing.T) func(int) bool {
			return func(int) bool { return false }
		}},
		{"half of the attempts fail", 50 * time.Millisecond, func(t *testing.T) func(int) bool {
			draw := seed.Source(t)
			return func(int) bool { return draw()%2 == 0 }
		}},
	} {
		for _, p := range programs {
			count := func(program program) (attempts int, good int64) {
				var successes atomic.Int64
				synctest.Test(t, func(t *testing.T) {
					b := &backend{good: outage.good(t), slow: outage.slow}
					call := program(t, b)
					var wg sync.WaitGroup
					for range calls {
						wg.Go(func() {
							if call(t.Context()) == nil {
								successes.Add(1)
							}
						})
						time.Sleep(100 * time.Millisecond)
					}
					wg.Wait()
					attempts = b.attempts
				})
				return attempts, successes.Load()
			}
			before, good := count(p.before)
			after, goodAfter := count(p.after)
			if after >= before && goodAfter <= good {
				t.Errorf("%s, %s: %d attempts before, %d after", outage.name, p.name, before, after)
			}
			t.Logf("%s, %s, %d calls: %d attempts and %d successes before, %d and %d after", outage.name, p.name, calls, before, good, after, goodAfter)
		}
	}
}

// fetching is a call that makes a GET, and returns an error for a status of 500 or more. err is what came with the client.
func fetching(t *testing.T, client *http.Client, err error) func(context.Context) error {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://ledger/balance", nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode >= 500 {
			return errors.New(resp.Status)
		}
		return nil
	}
}
