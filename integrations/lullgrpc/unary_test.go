package lullgrpc_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/hedge"
	lullgrpc "github.com/lullgo/lull/integrations/lullgrpc"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// script is a unary handler with one answer for each call. After the last answer it succeeds.
func script(answers ...func(ctx context.Context) error) func(context.Context, int, string) (string, error) {
	return func(ctx context.Context, call int, in string) (string, error) {
		if call < len(answers) {
			if err := answers[call](ctx); err != nil {
				return "", err
			}
		}
		return in, nil
	}
}

func with(code codes.Code) func(context.Context) error {
	return func(context.Context) error { return fails(code) }
}

func pushing(code codes.Code, values ...string) func(context.Context) error {
	return func(ctx context.Context) error { return pushback(ctx, code, values...) }
}

func informing(code codes.Code, delay time.Duration) func(context.Context) error {
	return func(context.Context) error {
		st, err := status.New(code, "as scripted").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(delay)})
		if err != nil {
			return err
		}
		return st.Err()
	}
}

func TestRetryInfoIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ev events
		e := &echo{unary: script(
			informing(codes.ResourceExhausted, 3*time.Second),
			informing(codes.ResourceExhausted, -time.Second), // asks for nothing
			func(ctx context.Context) error { // of two waits the longer counts
				pushback(ctx, codes.Unavailable, "9000")
				return informing(codes.Unavailable, 2500*time.Microsecond)(ctx)
			},
		)}
		cc := inMemory(t, e, quick(), idempotent(), ev.watch())
		start := time.Now()
		must.Have(call(t.Context(), cc, ""))
		scheduled := ev.of(event.RetryScheduled)
		if len(scheduled) != 3 {
			t.Fatalf("%d retries", len(scheduled))
		}
		for i, want := range []time.Duration{3 * time.Second, 0, 9 * time.Second} {
			if v := scheduled[i].Verdict; v.After != want || scheduled[i].Delay < want || v.Kind != lull.KindRateLimited {
				t.Errorf("retry %d: wait %v after verdict %+v, want %v", i, scheduled[i].Delay, v, want)
			}
		}
		if took := time.Since(start); took < 12*time.Second {
			t.Errorf("answer after %v", took)
		}
	})
}

// The deadline that a server gets is that of its attempt, and ends with the call's.
func TestTheDeadlineOfAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []time.Duration
		e := &echo{unary: func(ctx context.Context, n int, in string) (string, error) {
			until, ok := ctx.Deadline()
			if !ok {
				return "", fails(codes.InvalidArgument)
			}
			seen = append(seen, time.Until(until))
			if n < 2 {
				<-ctx.Done()
				return "", ctx.Err()
			}
			return in, nil
		}}
		p := quick()
		p.Backoff = backoff.Schedule{Kind: backoff.Constant, Base: 300 * time.Millisecond, Jitter: backoff.None}
		p.AttemptTimeout, p.Deadline, p.Timeouts = 2*time.Second, 5*time.Second, lull.TimeoutsAlways
		cc := inMemory(t, e, p, idempotent())
		must.Have(call(t.Context(), cc, ""))
		// 0 to 2 s, 2.3 to 4.3 s, and from 4.6 s what is left until 5 s.
		check.Slices(t, seen, []time.Duration{2 * time.Second, 2 * time.Second, 400 * time.Millisecond}, "the server was given")
	})
}

func TestATimeoutIsTheEngines(t *testing.T) {
	for name, handler := range map[string]func(context.Context, int, string) (string, error){
		"own": func(ctx context.Context, _ int, _ string) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		},
		"the server's": func(context.Context, int, string) (string, error) { return "", fails(codes.DeadlineExceeded) },
	} {
		synctest.Test(t, func(t *testing.T) {
			e := &echo{unary: handler}
			p := quick()
			p.AttemptTimeout = time.Second
			cc := inMemory(t, e, p, idempotent()) // TimeoutsWhenAnswered: nobody is
			_, err := call(t.Context(), cc, "")
			wantFailure(t, err, codes.DeadlineExceeded, lull.ErrUnanswered, 1)
			if le, _ := errors.AsType[*lull.Error](err); le.Verdict.Code != engine.CodeTimeout {
				t.Errorf("%s: verdict %+v", name, le.Verdict)
			}
		})
	}
}

func TestTheCallerMayGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("gone fishing")
		ctx, cancel := context.WithCancelCause(t.Context())
		e := &echo{unary: func(ctx context.Context, _ int, _ string) (string, error) {
			cancel(gone)
			<-ctx.Done()
			return "", ctx.Err()
		}}
		cc := inMemory(t, e, quick(), idempotent())
		_, err := call(ctx, cc, "")
		wantFailure(t, err, codes.Canceled, gone, 1)
		if !errors.Is(err, context.Canceled) || e.count() != 1 {
			t.Errorf("error %v after %d attempts", err, e.count())
		}
	})
	synctest.Test(t, func(t *testing.T) { // while it waits
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		e := &echo{unary: script(pushing(codes.Unavailable, "600"))}
		p := quick()
		p.Backoff = backoff.Schedule{Base: time.Hour, Cap: time.Hour}
		cc := inMemory(t, e, p, idempotent())
		time.AfterFunc(100*time.Millisecond, cancel)
		_, err := call(ctx, cc, "")
		wantFailure(t, err, codes.Canceled, context.Canceled, 1)
	})
	synctest.Test(t, func(t *testing.T) { // before the call
		ctx, cancel := context.WithDeadline(t.Context(), time.Now())
		defer cancel()
		e := &echo{unary: script()}
		cc := inMemory(t, e, quick())
		_, err := call(ctx, cc, "")
		wantFailure(t, err, codes.DeadlineExceeded, context.DeadlineExceeded, 0)
		check.Equal(t, e.count(), 0, "calls of the server")
	})
}

func TestWhatIsRepeated(t *testing.T) {
	for _, c := range []struct {
		name     string
		opts     []lullgrpc.Option
		call     []grpc.CallOption
		repeated bool
	}{
		{name: "nothing is known"},
		{"all", []lullgrpc.Option{lullgrpc.WithIdempotent("/")}, nil, true},
		{"the service", []lullgrpc.Option{lullgrpc.WithIdempotent("/lull.test.Echo/")}, nil, true},
		{"the method", []lullgrpc.Option{lullgrpc.WithIdempotent(unaryMethod)}, nil, true},
		{"another service", []lullgrpc.Option{lullgrpc.WithIdempotent("/lull.test.Ech/", "/lull.test.Echo/Other")}, nil, false},
		{"the longest pattern counts", []lullgrpc.Option{lullgrpc.WithIdempotent("/lull.test.Echo/"), lullgrpc.WithNotIdempotent(unaryMethod)}, nil, false},
		{"the call is", nil, []grpc.CallOption{lullgrpc.Idempotent()}, true},
		{"the call is not", []lullgrpc.Option{lullgrpc.WithIdempotent("/")}, []grpc.CallOption{lullgrpc.NotIdempotent()}, false},
		{"the last word counts", nil, []grpc.CallOption{lullgrpc.NotIdempotent(), lullgrpc.Idempotent()}, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := &echo{unary: script(with(codes.Unavailable))}
			cc := inMemory(t, e, quick(), c.opts...)
			_, err := call(t.Context(), cc, "", c.call...)
			if c.repeated && err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			if !c.repeated {
				wantFailure(t, err, codes.Unavailable, lull.ErrNotIdempotent, 1)
			}
		})
	}
}

func TestTheStatusIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		always := informing(codes.Unavailable, time.Millisecond)
		e := &echo{unary: func(ctx context.Context, _ int, _ string) (string, error) { return "", always(ctx) }}
		cc := inMemory(t, e, quick(), idempotent())
		_, err := call(t.Context(), cc, "")
		wantFailure(t, err, codes.Unavailable, lull.ErrAttemptsExhausted, 4)
		st, ok := status.FromError(err)
		if !ok || st.Message() != "as scripted" || len(st.Details()) != 1 {
			t.Errorf("status %v, want that of the last attempt", st)
		}
		if !strings.Contains(err.Error(), "passthrough:///memory: /lull.test.Echo/Unary: rate-limited after 4 attempts") {
			t.Errorf("error %q", err)
		}
		if !errors.Is(err, status.Convert(err).Err()) {
			t.Error("the last error is not in the chain")
		}
	})
}

func TestAnOpenCircuitIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Attempts = 1
		p.Breaker = breaker.Config{OpenFor: 10 * time.Second}
		e := &echo{unary: func(context.Context, int, string) (string, error) { return "", fails(codes.Unavailable) }}
		cc := inMemory(t, e, p, idempotent())
		for range 100 {
			before := e.count()
			_, err := call(t.Context(), cc, "")
			if e.count() == before {
				wantFailure(t, err, codes.Unavailable, lull.ErrCircuitOpen, 0)
				return
			}
			wantFailure(t, err, codes.Unavailable, lull.ErrAttemptsExhausted, 1)
			time.Sleep(100 * time.Millisecond)
		}
		t.Error("the circuit never opened")
	})
}

func TestTheOptionsOfACallAreNotTouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &echo{unary: script(with(codes.Unavailable))}
		cc := inMemory(t, e, quick())
		var told []error
		var trailer metadata.MD
		opts := make([]grpc.CallOption, 0, 16)
		opts = append(opts, lullgrpc.Idempotent(), grpc.OnFinish(func(err error) { told = append(told, err) }), grpc.Trailer(&trailer))
		beyond := opts[:cap(opts)]
		must.Have(call(t.Context(), cc, "", opts...))
		if len(told) != 1 || told[0] != nil {
			t.Errorf("OnFinish was told %v, want nil once", told)
		}
		for _, o := range beyond[len(opts):] {
			if o != nil {
				t.Error("the caller's slice was written to")
			}
		}
	})
}

// knownAs answers UNAVAILABLE with the ID of the request in the trailer.
func knownAs(key, id string) func(context.Context) error {
	return func(ctx context.Context) error {
		grpc.SetTrailer(ctx, metadata.Pairs(key, id))
		return fails(codes.Unavailable)
	}
}

// describedAs answers UNAVAILABLE with the ID in the details.
func describedAs(id string) func(context.Context) error {
	return func(context.Context) error {
		st, err := status.New(codes.Unavailable, "as scripted").WithDetails(&errdetails.RequestInfo{RequestId: id})
		if err != nil {
			return err
		}
		return st.Err()
	}
}

// The line of a call that was retried has the IDs by which the server knows its attempts, of calls
// that are hedged and of streams, too. The caller gets gRPC's own error.
func TestTheLogHasTheRequestIDs(t *testing.T) {
	hedging := quick()
	hedging.Attempts, hedging.Hedge = 0, hedge.Config{Attempts: 4}
	for name, policy := range map[string]lull.Policy{"retried": quick(), "hedged": hedging, "stream": quick()} {
		synctest.Test(t, func(t *testing.T) {
			var out strings.Builder
			log := slog.New(slog.NewTextHandler(&out, nil))
			answers := []func(context.Context) error{knownAs("request-id", "req-1"), describedAs("req-2"), with(codes.Unavailable), knownAs("x-request-id", "req-4")}
			e := &echo{unary: script(answers...), stream: func(ss grpc.ServerStream, n int) error { return answers[n](ss.Context()) }}
			cc := inMemory(t, e, policy, idempotent(), lullgrpc.WithObserver(event.NewLog(log)))
			_, err := call(t.Context(), cc, "")
			if name == "stream" {
				e.calls = 0
				out.Reset()
				err = receiveErr(t, open(t, t.Context(), cc, bidiStreams))
				synctest.Wait()
			}
			if status.Code(err) != codes.Unavailable || !errors.Is(err, lull.ErrAttemptsExhausted) {
				t.Errorf("%s: %v", name, err)
			}
			line := out.String()
			for _, want := range []string{" request_id=req-4 ", "attempt_1.request_id=req-1 ", "attempt_2.request_id=req-2 "} {
				check.Equal(t, strings.Count(line, want), 1, "%s: how often %s is in %s", name, want, line)
			}
			if strings.Contains(line, "attempt_3.request_id") || strings.Count(line, "\n") != 1 {
				t.Errorf("%s: %s", name, line)
			}
		})
	}
}
