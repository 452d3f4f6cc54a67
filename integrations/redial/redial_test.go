package redial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
)

func group(t testing.TB, c Config, p lull.Policy, opts ...lull.Option) *Group {
	t.Helper()
	d := must.Have(lull.NewDependency("gateway", p, append(opts, lull.WithRand(seed.Source(t)))...))
	return must.Have(New(d, c))
}

func TestNewRefuses(t *testing.T) {
	d := must.Have(lull.NewDependency("d", lull.Policy{}))
	for want, c := range map[string]Config{
		"Config.Policy: Spread":  {Policy: engine.RedialPolicy{Spread: -1}},
		"Config.MaxDials is -1":  {MaxDials: -1},
		"Config.DownAfter is -1": {DownAfter: -1},
		"go together":            {DownAfter: time.Minute},
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
		if up.Load() != 40 || most.Load() != DefaultMaxDials {
			t.Errorf("%d are connected, and %d dials were in flight", up.Load(), most.Load())
		}
		cancel()
		wg.Wait()
	})
}

// Who waits for room to dial when ctx ends has no connection.
func TestTheEndWhileOthersDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t, Config{MaxDials: 1}, lull.Policy{})
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		used := 0
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				err := Keep(ctx, g, func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() }, func(context.Context, int) error { used++; return nil })
				if err != enough {
					t.Error(err)
				}
			})
		}
		time.Sleep(2 * time.Second) // all have begun, and one dials
		cancel(enough)
		wg.Wait()
		if used > 0 {
			t.Errorf("%d connections were used, of none", used)
		}
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
		{"no cause", nil, 0, 15 * time.Second},
		{"1012", fmt.Errorf("read: %w", &CloseError{Code: 1012}), 5 * time.Second, 30 * time.Second},
		{"1013", CloseStatus{CloseError{Code: 1013}}, 10 * time.Second, 25 * time.Second},
		{"1006", &CloseError{Code: 1006}, 0, 15 * time.Second},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				dials := 0
				var lost time.Time
				var longest time.Duration
				Keep(ctx, group(t, Config{}, lull.Policy{}), func(context.Context) (int, error) {
					if dials++; dials == 50 {
						cancel()
					}
					if wait := time.Since(lost); dials > 1 {
						longest = max(longest, wait)
						if wait < x.least || wait > x.most {
							t.Errorf("it waits for %v, want %v to %v", wait, x.least, x.most)
						}
					}
					return 0, nil
				}, func(context.Context, int) error {
					time.Sleep(time.Minute)
					lost = time.Now()
					return x.err
				})
				if longest < x.least+(x.most-x.least)/4 {
					t.Errorf("of 49 waits the longest is %v: they are not spread over %v to %v", longest, x.least, x.most)
				}
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

// valueClose has the form of coder/websocket's, unsignedClose that of lxzan/gws's.
func valueClose() error {
	type StatusCode int
	type CloseError struct {
		error
		Code StatusCode
	}
	return CloseError{errors.New("closed"), 1008}
}

func unsignedClose() error {
	type CloseError struct {
		error
		Code uint16
	}
	return &CloseError{errors.New("closed"), 1008}
}

func refusal(status int) error {
	return Upgrade(errors.New("bad handshake"), &http.Response{StatusCode: status})
}

// A refusal of the server ends it before a connection has lasted, and never after that; a mark of the program always
// does. Whatever ends it is its error: of a dial that of the call, of a use its own.
func TestPermanent(t *testing.T) {
	never, first, always := 0, 1, 2
	for _, x := range []struct {
		name string
		err  error
		ends int
	}{
		{"normal closure", &CloseError{Code: 1000}, never},
		{"going away", &CloseError{Code: 1001}, never},
		{"protocol error", &CloseError{Code: 1002}, first},
		{"unsupported data", &CloseError{Code: 1003}, first},
		{"no status", &CloseError{Code: 1005}, never},
		{"abnormal", &CloseError{Code: 1006}, never},
		{"invalid payload", &CloseError{Code: 1007}, first},
		{"policy violation", &CloseError{Code: 1008}, first},
		{"policy violation, wrapped", fmt.Errorf("read: %w", CloseStatus{CloseError{Code: 1008}}), first},
		{"policy violation, as a value", valueClose(), first},
		{"policy violation, unsigned", unsignedClose(), first},
		{"policy violation, joined", errors.Join(io.EOF, &CloseError{Code: 1008}), first},
		{"too big", &CloseError{Code: 1009}, first},
		{"an extension is missing", &CloseError{Code: 1010}, first},
		{"internal error", &CloseError{Code: 1011}, never},
		{"restart", &CloseError{Code: 1012}, never},
		{"try later", &CloseError{Code: 1013}, never},
		{"an application's code", &CloseError{Code: 4001}, never},
		{"no code", (*CloseError)(nil), never},
		{"400", refusal(400), first},
		{"401", refusal(401), first},
		{"403", fmt.Errorf("dial: %w", refusal(403)), first},
		{"404", refusal(404), first},
		{"408", refusal(408), never},
		{"429", refusal(429), never},
		{"500", refusal(500), never},
		{"503", refusal(503), never},
		{"a call further down", &lull.Error{Reason: engine.Permanent}, never},
		{"unknown", errors.New("odd"), never},
		{"somebody else's context", context.Canceled, never},
		{"no such host", &net.DNSError{IsNotFound: true}, never},
		{"a mark", lull.Permanent(io.EOF), always},
		{"a mark on what is no answer", lull.Permanent(&net.DNSError{IsNotFound: true}), always},
		{"a mark on a close code", lull.Permanent(&CloseError{Code: 1001}), always},
		{"a mark on a refusal", lull.Permanent(refusal(403)), always},
		{"a mark on a call further down", lull.Permanent(&lull.Error{Reason: engine.Permanent}), always},
		{"another mark on a refusal", lull.Transient(refusal(403)), never},
	} {
		for _, at := range []string{"dial", "use"} {
			for _, story := range []string{"at first", "after one that lasted", "of one that lasted", "of a young one after one that lasted"} {
				if at == "dial" && story == "of one that lasted" || story == "of a young one after one that lasted" && at == "dial" {
					continue
				}
				t.Run(x.name+", "+at+", "+story, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						enough := errors.New("enough")
						ctx, cancel := context.WithCancelCause(t.Context())
						defer cancel(nil)
						time.AfterFunc(30*time.Minute, func() { cancel(enough) })
						g := group(t, Config{}, lull.Policy{})
						time.Sleep(10 * time.Minute) // the dependency is older than the connections
						dials, failures := 0, 0
						fails := func() bool { // each time from the one on that the story has
							if failures > 0 || story == "at first" || dials > 1 {
								failures++
							}
							return failures > 0
						}
						err := Keep(ctx, g, func(context.Context) (int, error) {
							if dials++; at == "dial" && fails() {
								return 0, x.err
							}
							return 0, nil
						}, func(context.Context, int) error {
							switch {
							case at == "use" && story == "of one that lasted":
								time.Sleep(2 * time.Minute)
								failures++
								return x.err
							case at == "use" && fails():
								return x.err
							}
							time.Sleep(time.Minute)
							return io.EOF
						})
						ends := x.ends == always || x.ends == first && story == "at first"
						switch {
						case ends && (failures != 1 || !errors.Is(err, x.err)):
							t.Errorf("%d failures, %v; want the first to end it", failures, err)
						case !ends && (failures < 4 || err != enough):
							t.Errorf("%d failures, %v; want it to go on", failures, err)
						}
						if _, call := errors.AsType[*lull.Error](err); ends && at == "dial" && !call {
							t.Errorf("%#v, want the error of the call", err)
						}
					})
				})
			}
		}
	}
}

// Upgrade keeps the error of the library, and has one of its own if there is none.
func TestUpgrade(t *testing.T) {
	library := errors.New("websocket: bad handshake")
	response := func(status int, header ...string) *http.Response {
		r := &http.Response{StatusCode: status, Status: fmt.Sprint(status, " there"), Header: http.Header{}}
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return r
	}
	for _, x := range []struct {
		name string
		err  error
		resp *http.Response
		want lull.Verdict
		text string // "": no error
	}{
		{"no response", library, nil, lull.Verdict{Code: engine.CodeUnclassified}, library.Error()},
		{"neither", nil, nil, lull.Verdict{Code: engine.CodeUnclassified}, ""},
		{"101", nil, response(101), lull.Verdict{}, ""},
		{"200", library, response(200), lull.Verdict{}, library.Error()}, // no WebSocket is spoken there
		{"503", library, response(503), lull.Verdict{Kind: lull.KindTransient, Code: "transient"}, library.Error()},
		{"503 with a hint", library, response(503, "Retry-After", "20"), lull.Verdict{Kind: lull.KindRateLimited, After: 20 * time.Second, Code: "rate_limited"}, library.Error()},
		{"503 with a hint of nothing", library, response(503, "Retry-After", "0"), lull.Verdict{Kind: lull.KindTransient, Code: "transient"}, library.Error()},
		{"429 without a hint", nil, response(429), lull.Verdict{Kind: lull.KindTransient, Code: "transient"}, "redial: the server answered with 429 there"},
		{"403", library, response(403), lull.Verdict{Kind: lull.KindPermanent, Code: "403"}, library.Error()},
		{"403 with a hint", nil, response(403, "Retry-After", "20"), lull.Verdict{Kind: lull.KindRateLimited, After: 20 * time.Second, Code: "rate_limited"}, "redial: the server answered with 403 there"},
	} {
		err := Upgrade(x.err, x.resp)
		if x.text == "" {
			if err != nil {
				t.Errorf("%s: %v", x.name, err)
			}
			continue
		}
		v := verdict(err)
		if x.want.Code == "" || x.want.Code == engine.CodeUnclassified {
			v.Code, x.want.Code = "", ""
		}
		if err == nil || err.Error() != x.text || v != x.want || x.err != nil && !errors.Is(err, library) {
			t.Errorf("%s: %v, %+v; want %q, %+v", x.name, err, v, x.text, x.want)
		}
	}
}

// observe is an observer.
type observe func(context.Context, lull.Event)

func (f observe) Observe(ctx context.Context, e lull.Event) { f(ctx, e) }

// A circuit that other calls have opened is waited for.
func TestTheCircuitOpensAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusals := 0
		p := lull.Policy{}
		p.Breaker.OpenFor = 10 * time.Minute
		g := group(t, Config{}, p, lull.WithObserver(observe(func(_ context.Context, e lull.Event) {
			if e.Kind == event.CallEnded && e.Operation == "dial" && e.Reason != engine.Success {
				refusals++
			}
		})))
		d := g.d
		for i := 0; d.Breaker().State(d.Now()) != breaker.Open; i++ {
			lull.Run(t.Context(), d, func(context.Context) error { return lull.Transient(io.EOF) })
			if time.Sleep(100 * time.Millisecond); i == 1000 {
				t.Fatal("the circuit is closed")
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		used := false
		Keep(ctx, g, func(context.Context) (int, error) { return 0, nil }, func(context.Context, int) error {
			used = true
			<-ctx.Done()
			return ctx.Err()
		})
		if !used || refusals == 0 || refusals > 3 {
			t.Errorf("used %v, after %d refusals by the circuit; want one or two", used, refusals)
		}
	})
}

// An outage in which the circuit stays open has one error, with the failure that there was, however long it is.
func TestTheErrorOfALongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t, Config{DownAfter: 24 * time.Hour, Down: func(_ time.Duration, last error) {
			call, ok := errors.AsType[*lull.Error](last)
			if !ok || call.Reason != engine.CircuitOpen || call.Last != io.ErrUnexpectedEOF {
				t.Errorf("%.300q", last)
			}
		}}, lull.Policy{})
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Hour)
		defer cancel()
		Keep(ctx, g, func(context.Context) (int, error) {
			g.d.Breaker().ForceOpen(g.d.Now())
			return 0, io.ErrUnexpectedEOF
		}, func(context.Context, int) error { return nil })
	})
}

// A wait that is longer than DownAfter is not cut short by it, and Down is not called after the end.
func TestDownAfterDuringAWait(t *testing.T) {
	for _, ends := range []time.Duration{4 * time.Minute, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			downs, dials := 0, 0
			c := Config{DownAfter: 5 * time.Minute, Down: func(time.Duration, error) { downs++ }}
			ctx, cancel := context.WithTimeout(t.Context(), ends)
			defer cancel()
			var before time.Time
			err := Keep(ctx, group(t, c, lull.Policy{}), func(context.Context) (int, error) {
				if wait := time.Since(before); dials > 0 && wait < 20*time.Minute {
					t.Errorf("dial %d after %v", dials, wait)
				}
				dials++
				before = time.Now()
				return 0, lull.RetryAfter(io.EOF, 20*time.Minute)
			}, func(context.Context, int) error { return nil })
			wantDowns := 0
			if ends > c.DownAfter {
				wantDowns = 1
			}
			if err != context.DeadlineExceeded || downs != wantDowns || ends < c.DownAfter && dials != 1 {
				t.Errorf("%v after %d dials, and Down was called %d times, want %d", err, dials, downs, wantDowns)
			}
		})
	}
}

// Nothing is dialled, and the dependency learns of no call, once ctx has ended.
func TestNoDialAfterTheEnd(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			counts := lull.WithObserver(observe(func(context.Context, lull.Event) { calls++ }))
			g := group(t, Config{Policy: engine.RedialPolicy{Start: time.Minute}}, lull.Policy{}, counts)
			ctx, cancel := context.WithCancelCause(t.Context())
			enough := errors.New("enough")
			cancel(enough)
			if err := Keep(ctx, g, func(context.Context) (int, error) { return 0, nil }, func(context.Context, int) error { return nil }); err != enough || calls > 0 {
				t.Errorf("%v, %d events", err, calls)
			}
		})
	}
}

// A drain that takes no time changes nothing.
func TestDrain(t *testing.T) {
	for _, over := range []time.Duration{0, -1} {
		if err := Drain(io.EOF, over); err != io.EOF {
			t.Errorf("%v: %#v", over, err)
		}
		if err := Drain(nil, over); err == nil {
			t.Errorf("%v: no error", over)
		}
	}
	if err := Drain(io.EOF, 1); err == io.EOF || !errors.Is(err, io.EOF) {
		t.Errorf("%#v", err)
	}
}

// Down is called once for each outage, when it has lasted for as long as DownAfter, whatever the
// number of dials.
func TestDownAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var calls []time.Duration
		c := Config{DownAfter: 5 * time.Minute, Down: func(since time.Duration, last error) {
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
		check.Equal(t, len(calls), 2, "calls of Down: %v", calls)
	})
}

func TestParseRetry(t *testing.T) {
	for value, want := range map[string]time.Duration{"3000": 3 * time.Second, "0": 0, "": -1, "+1": -1, "1.5": -1, "-1": -1, " 1": -1,
		"9223372036854": 9223372036854 * time.Millisecond, "9223372036855": 1<<63 - 1, "99999999999999999999": 1<<63 - 1, "9999999999999999999": 1<<63 - 1} {
		if d, ok := ParseRetry(value); ok != (want >= 0) || d != max(want, 0) {
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
