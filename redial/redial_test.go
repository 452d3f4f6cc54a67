package redial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/seed"
)

func group(t testing.TB, c Config, p lull.Policy) *Group {
	t.Helper()
	d, err := lull.NewDependency("gateway", p, lull.WithRand(seed.Source(t)))
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(d, c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestNewRefuses(t *testing.T) {
	d, err := lull.NewDependency("d", lull.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]Config{
		"Config.Policy: Spread": {Policy: engine.RedialPolicy{Spread: -1}},
		"Config.Dials is -1":    {Dials: -1},
		"Config.Escalate is -1": {Escalate: -1},
		"go together":           {Escalate: time.Minute},
	} {
		if g, err := New(d, c); g != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := New(nil, Config{}); err == nil {
		t.Error("no dependency was taken")
	}
}

// A connection is dialled, used, and dialled again, until the context ends.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		end := errors.New("enough")
		dials, uses, failures := 0, 0, 0
		err := Keep(ctx, group(t, Config{}, lull.Policy{}), func(ctx context.Context) (int, error) {
			if dials++; dials%2 == 0 {
				failures++
				return 0, errors.New("of which nothing is known")
			}
			return dials, nil
		}, func(ctx context.Context, c int) error {
			if c != dials {
				t.Errorf("connection %d after %d dials", c, dials)
			}
			if uses++; uses == 4 {
				cancel(end)
			}
			time.Sleep(2 * time.Minute)
			return io.EOF
		})
		if err != end || uses != 4 || dials != 7 || failures != 3 {
			t.Errorf("%v after %d dials, %d failures and %d uses", err, dials, failures, uses)
		}
	})
}

// Of forty connections that are dialled at once, four dials are in flight.
func TestDialsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t, Config{Policy: engine.RedialPolicy{Start: time.Millisecond}}, lull.Policy{})
		ctx, cancel := context.WithCancel(t.Context())
		var inFlight, most, up atomic.Int32
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(func() {
				Keep(ctx, g, func(context.Context) (int, error) {
					if n := inFlight.Add(1); n > most.Load() {
						most.Store(n)
					}
					time.Sleep(time.Second)
					inFlight.Add(-1)
					return 0, nil
				}, func(ctx context.Context, _ int) error {
					up.Add(1)
					<-ctx.Done()
					return ctx.Err()
				})
			})
		}
		time.Sleep(10*time.Second + 10*time.Millisecond)
		if up.Load() != 40 || most.Load() != DefaultDials {
			t.Errorf("%d are connected, and %d dials were in flight", up.Load(), most.Load())
		}
		cancel()
		wg.Wait()
	})
}

// What the server asked for is what the next dial waits for at least.
func TestHints(t *testing.T) {
	response := func(status int, after string) *http.Response {
		return &http.Response{StatusCode: status, Status: fmt.Sprint(status), Header: http.Header{"Retry-After": {after}}}
	}
	for _, x := range []struct {
		name        string
		err         error
		least, most time.Duration // of the wait after a connection that has lasted
	}{
		{"RetryAfter", lull.RetryAfter(io.EOF, 20*time.Second), 20 * time.Second, 35 * time.Second},
		{"503 to the upgrade", Upgrade(nil, response(503, "30")), 30 * time.Second, 45 * time.Second},
		{"drain", Drain(nil, 10*time.Second), 0, 10 * time.Second},
		{"1012", fmt.Errorf("read: %w", &CloseError{Code: 1012}), 5 * time.Second, 30 * time.Second},
		{"1013", CloseStatus{CloseError{Code: 1013}}, 10 * time.Second, 25 * time.Second},
		{"1006", &CloseError{Code: 1006}, 0, 15 * time.Second},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				dials := 0
				var lost time.Time
				Keep(ctx, group(t, Config{}, lull.Policy{}), func(context.Context) (int, error) {
					if dials++; dials == 50 {
						cancel()
					}
					if wait := time.Since(lost); dials > 1 && (wait < x.least || wait > x.most) {
						t.Errorf("it waits for %v, want %v to %v", wait, x.least, x.most)
					}
					return 0, nil
				}, func(context.Context, int) error {
					time.Sleep(time.Minute)
					lost = time.Now()
					return x.err
				})
			})
		})
	}
}

// CloseError has the form of gorilla/websocket's, with its pointer.
type CloseError struct {
	Code int
	Text string
}

func (e *CloseError) Error() string { return fmt.Sprint("close ", e.Code) }

// CloseStatus wraps one, as libraries do.
type CloseStatus struct{ inner CloseError }

func (e CloseStatus) Error() string { return "closed" }
func (e CloseStatus) Unwrap() error { return &e.inner }

// What is permanent ends it: of a dial with the error of the call, of a use with its own.
func TestPermanent(t *testing.T) {
	for name, x := range map[string]struct{ dial, use error }{
		"403":  {dial: Upgrade(errors.New("bad handshake"), &http.Response{StatusCode: 403})},
		"mark": {dial: lull.Permanent(io.EOF)},
		"1008": {use: &CloseError{Code: 1008}},
	} {
		synctest.Test(t, func(t *testing.T) {
			dials := 0
			err := Keep(t.Context(), group(t, Config{}, lull.Policy{}), func(context.Context) (int, error) { dials++; return 0, x.dial },
				func(context.Context, int) error { return x.use })
			if want := errors.Join(x.dial, x.use).(interface{ Unwrap() []error }).Unwrap()[0]; !errors.Is(err, want) || dials != 1 {
				t.Errorf("%s: %v after %d dials", name, err, dials)
			}
		})
	}
}

// While the circuit is open nothing is dialled.
func TestTheCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t, Config{}, lull.Policy{})
		g.d.Breaker().ForceOpen(g.d.Now())
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err := Keep(ctx, g, func(context.Context) (int, error) { t.Error("dialled"); return 0, nil }, func(context.Context, int) error { return nil })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// Down is called once for each outage, when it has lasted for as long as Escalate, whatever the
// number of dials.
func TestEscalate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var calls []time.Duration
		c := Config{Escalate: 5 * time.Minute, Down: func(since time.Duration, last error) {
			if calls = append(calls, since); last == nil || since < 5*time.Minute || since > 5*time.Minute+10*time.Second {
				t.Errorf("down for %v: %v", since, last)
			}
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour)
		defer cancel()
		Keep(ctx, group(t, c, lull.Policy{AttemptTimeout: 10 * time.Second}), func(ctx context.Context) (int, error) {
			if hour := time.Since(began) / time.Hour; hour != 1 { // it is up for the second hour
				return 0, io.ErrUnexpectedEOF
			}
			return 0, nil
		}, func(ctx context.Context, _ int) error {
			time.Sleep(50 * time.Minute)
			return io.EOF
		})
		if len(calls) != 2 {
			t.Errorf("Down was called %d times: %v", len(calls), calls)
		}
	})
}

func TestParseRetry(t *testing.T) {
	for value, want := range map[string]time.Duration{"3000": 3 * time.Second, "0": 0, "": -1, "+1": -1, "1.5": -1, "-1": -1, " 1": -1,
		"99999999999999999999": 1<<63 - 1, "9999999999999999999": 1<<63 - 1} {
		if d, ok := ParseRetry(value); ok != (want >= 0) || ok && d != want {
			t.Errorf("%q: %v %t, want %v", value, d, ok, want)
		}
	}
}

func FuzzParseRetry(f *testing.F) {
	for _, s := range []string{"3000", "", "x", "18446744073709551616"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, ok := ParseRetry(s)
		if d < 0 || ok == (s == "" || strings.Trim(s, "0123456789") != "") {
			t.Errorf("%q: %v %t", s, d, ok)
		}
	})
}
