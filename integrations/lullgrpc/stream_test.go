package lullgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	lullgrpc "github.com/lullgo/lull/integrations/lullgrpc"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

type serverScript = func(ss grpc.ServerStream, call int) error

// steps answers each call with its own step. It has no answer after the last.
func steps(each ...func(ss grpc.ServerStream) error) serverScript {
	return func(ss grpc.ServerStream, call int) error {
		if call >= len(each) {
			return status.Errorf(codes.FailedPrecondition, "call %d was not expected", call)
		}
		return each[call](ss)
	}
}

// hears listens, and then fails with the code, unless it is OK.
func hears(code codes.Code, want ...string) func(grpc.ServerStream) error {
	return func(ss grpc.ServerStream) error {
		if err := heard(ss, want...); err != nil {
			return err
		}
		if code == codes.OK {
			return nil
		}
		return fails(code)
	}
}

func pushes(values ...string) func(grpc.ServerStream) error {
	return func(ss grpc.ServerStream) error {
		if err := heard(ss, "1"); err != nil {
			return err
		}
		ss.SetTrailer(metadata.MD{"grpc-retry-pushback-ms": values})
		return fails(codes.Unavailable)
	}
}

// clientSteps is what a streaming client does, step by step.
func clientSteps(each ...func(t *testing.T, cs grpc.ClientStream)) func(t *testing.T, cs grpc.ClientStream) {
	return func(t *testing.T, cs grpc.ClientStream) {
		for _, step := range each {
			step(t, cs)
		}
	}
}

func sends(texts ...string) func(*testing.T, grpc.ClientStream) {
	return func(t *testing.T, cs grpc.ClientStream) {
		for _, text := range texts {
			send(t, cs, text)
		}
	}
}

// gets receives the texts, and then the end.
func gets(texts ...string) func(*testing.T, grpc.ClientStream) {
	return func(t *testing.T, cs grpc.ClientStream) {
		for _, text := range texts {
			receive(t, cs, text)
		}
		receiveEOF(t, cs)
	}
}

func getsCode(code codes.Code) func(*testing.T, grpc.ClientStream) {
	return func(t *testing.T, cs grpc.ClientStream) { wantFailure(t, receiveErr(t, cs), code, nil, 0) }
}

// TestStreamingScripts are the cases of grpc-go's TestRetryStreaming, by name.
func TestStreamingScripts(t *testing.T) {
	type script struct {
		server   serverScript
		client   func(t *testing.T, cs grpc.ClientStream)
		attempts int
		opts     []grpc.CallOption
		least    time.Duration
	}
	unavailable := clientSteps(sends("1"), getsCode(codes.Unavailable))
	answersLate := func(messages ...string) func(ss grpc.ServerStream) error {
		return func(ss grpc.ServerStream) error { return errors.Join(heard(ss, messages...), answer(ss, "5")) }
	}
	scripts := map[string]script{
		"Non-retryable error code": {server: steps(hears(codes.Internal, "1")), client: clientSteps(sends("1"), getsCode(codes.Internal)), attempts: 1},
		"One retry necessary":      {server: steps(hears(codes.Unavailable, "1"), answersLate("1")), client: clientSteps(sends("1"), gets("5")), attempts: 2},
		"Exceed max attempts (4)": {
			server: steps(slices.Repeat([]func(grpc.ServerStream) error{hears(codes.Unavailable, "1")}, 4)...),
			client: func(t *testing.T, cs grpc.ClientStream) {
				send(t, cs, "1")
				wantFailure(t, receiveErr(t, cs), codes.Unavailable, lull.ErrAttemptsExhausted, 4)
			},
			attempts: 4,
		},
		"Multiple requests": {
			server: steps(hears(codes.Unavailable, "1", "2"), answersLate("1", "2")), client: clientSteps(sends("1", "2"), gets("5")), attempts: 2,
		},
		"Multiple successive requests": {
			server: steps(hears(codes.Unavailable, "1"), hears(codes.Unavailable, "1", "2"), answersLate("1", "2", "3")),
			client: clientSteps(sends("1", "2", "3"), gets("5")), attempts: 3,
		},
		"No retry after receiving": {
			server: steps(hears(codes.Unavailable, "1"), func(ss grpc.ServerStream) error {
				return errors.Join(heard(ss, "1"), answer(ss, "3"), fails(codes.Unavailable))
			}),
			client: func(t *testing.T, cs grpc.ClientStream) {
				send(t, cs, "1")
				receive(t, cs, "3")
				wantFailure(t, receiveErr(t, cs), codes.Unavailable, nil, 0)
			},
			attempts: 2,
		},
		"Retry via Header()": {
			server: steps(hears(codes.Unavailable, "1"), func(ss grpc.ServerStream) error {
				return errors.Join(heard(ss, "1"), ss.SendHeader(metadata.Pairs("attempt", "second")))
			}),
			client: clientSteps(sends("1"), func(t *testing.T, cs grpc.ClientStream) {
				if md, err := cs.Header(); err != nil || !slices.Equal(md["attempt"], []string{"second"}) {
					t.Errorf("header %v, %v", md, err)
				}
			}, gets()),
			attempts: 2,
		},
		"No retry after header": {
			server: steps(func(ss grpc.ServerStream) error {
				return errors.Join(heard(ss, "1"), ss.SendHeader(metadata.MD{}), fails(codes.Unavailable))
			}),
			client: unavailable, attempts: 1,
		},
		"No retry after context": {
			server: steps(hears(codes.Unavailable, "1")),
			client: clientSteps(sends("1"), func(t *testing.T, cs grpc.ClientStream) {
				if cs.Context() == nil {
					t.Error("no context")
				}
			}, getsCode(codes.Unavailable)),
			attempts: 1,
		},
		"Replaying close send": {
			server: steps(func(ss grpc.ServerStream) error {
				return errors.Join(heard(ss, "1", "2"), heardEOF(ss), fails(codes.Unavailable))
			}, func(ss grpc.ServerStream) error {
				return errors.Join(heard(ss, "1", "2"), heardEOF(ss), answer(ss, "1", "3", "5"))
			}),
			client: clientSteps(sends("1", "2"), func(t *testing.T, cs grpc.ClientStream) {
				check.Equal(t, cs.CloseSend(), nil, "cs.CloseSend()")
			}, gets("1", "3", "5")),
			attempts: 2,
		},
		"Negative pushback":        {server: steps(pushes("-1")), client: unavailable, attempts: 1},
		"Non-numeric pushback":     {server: steps(pushes("xxx")), client: unavailable, attempts: 1},
		"Multiple pushback values": {server: steps(pushes("100", "10")), client: unavailable, attempts: 1},
		"1s pushback":              {server: steps(pushes("1000"), answersLate("1")), client: clientSteps(sends("1"), gets("5")), attempts: 2, least: time.Second},
		"Overflowing buffer": {
			server: steps(func(ss grpc.ServerStream) error {
				return errors.Join(ss.RecvMsg(new(wrapperspb.StringValue)), fails(codes.Unavailable))
			}),
			client:   clientSteps(sends(strings.Repeat("x", 500)), getsCode(codes.Unavailable)),
			attempts: 1,
			opts:     []grpc.CallOption{grpc.MaxRetryRPCBufferSize(200)},
		},
	}

	var published struct{ Cases []struct{ Name string } }
	vectors(t, "streaming_retry_scripts.json", &published)
	if len(published.Cases) != len(scripts) {
		t.Fatalf("%d scripts for %d published cases", len(scripts), len(published.Cases))
	}
	for _, c := range published.Cases {
		t.Run(c.Name, func(t *testing.T) {
			s, ok := scripts[c.Name]
			if !ok {
				t.Fatal("there is no such script")
			}
			synctest.Test(t, func(t *testing.T) {
				e := &echo{stream: s.server}
				cc := inMemory(t, e, quick(), idempotent())
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				start := time.Now()
				cs := open(t, ctx, cc, bidiStreams, s.opts...)
				s.client(t, cs)
				check.Equal(t, e.count(), s.attempts, "attempts")
				for i, got := range e.attempts() {
					check.Equal(t, got, []string{"", "1", "2", "3"}[i], "attempt %d: header", i+1)
				}
				if took := time.Since(start); took < s.least {
					t.Errorf("took %v, want %v at least", took, s.least)
				}
			})
		})
	}
}

// inBubble opens a stream to a server that follows a script.
func inBubble(t *testing.T, desc *grpc.StreamDesc, e *echo, p lull.Policy, opts []lullgrpc.Option, do func(t *testing.T, cs grpc.ClientStream, cancel context.CancelFunc)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cc := inMemory(t, e, p, opts...)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		do(t, open(t, ctx, cc, desc), cancel)
	})
}

func TestAQuietStreamIsLeftAlone(t *testing.T) {
	e := &echo{stream: func(ss grpc.ServerStream, _ int) error {
		if until, ok := ss.Context().Deadline(); ok {
			return status.Errorf(codes.InvalidArgument, "a deadline in %v", time.Until(until))
		}
		time.Sleep(time.Hour) // longer than any timeout of the policy
		return answer(ss, "at last")
	}}
	inBubble(t, serverStreams, e, quick(), []lullgrpc.Option{idempotent()}, func(t *testing.T, cs grpc.ClientStream, _ context.CancelFunc) {
		send(t, cs, "watch")
		receive(t, cs, "at last")
		receiveEOF(t, cs)
	})
}

func TestStreamTimeouts(t *testing.T) {
	e := &echo{stream: func(ss grpc.ServerStream, call int) error {
		if until, ok := ss.Context().Deadline(); ok {
			return status.Errorf(codes.InvalidArgument, "deadline %v", until)
		}
		if call == 0 {
			<-ss.Context().Done()
			return ss.Context().Err()
		}
		if err := answer(ss, "in time"); err != nil {
			return err
		}
		time.Sleep(time.Hour)
		return answer(ss, "and on")
	}}
	p := quick()
	p.AttemptTimeout, p.Timeouts = 2*time.Second, lull.TimeoutsAlways
	inBubble(t, serverStreams, e, p, []lullgrpc.Option{idempotent(), lullgrpc.WithStreamTimeouts()}, func(t *testing.T, cs grpc.ClientStream, _ context.CancelFunc) {
		send(t, cs, "list")
		receive(t, cs, "in time")
		receive(t, cs, "and on")
		receiveEOF(t, cs)
	})
}

// Timeouts still bound a stream that is committed without an answer.
func TestStreamTimeoutsRunUntilTheAnswer(t *testing.T) {
	e := &echo{stream: func(ss grpc.ServerStream, _ int) error {
		<-ss.Context().Done()
		return ss.Context().Err()
	}}
	p := quick()
	p.AttemptTimeout, p.Timeouts = 2*time.Second, lull.TimeoutsAlways
	opts := []lullgrpc.Option{idempotent(), lullgrpc.WithStreamTimeouts(), lullgrpc.WithReplayBuffer(10)}
	inBubble(t, bidiStreams, e, p, opts, func(t *testing.T, cs grpc.ClientStream, _ context.CancelFunc) {
		start := time.Now()
		send(t, cs, strings.Repeat("x", 100))
		wantFailure(t, receiveErr(t, cs), codes.DeadlineExceeded, nil, 0)
		if took := time.Since(start); took != 2*time.Second || e.count() != 1 {
			t.Errorf("%d attempts in %v", e.count(), took)
		}
	})
}

// The opening of a stream is bounded: here it waits for a connection that never comes. Nothing was
// sent, so it is repeated whatever the method is.
func TestTheOpeningIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.AttemptTimeout = 2 * time.Second
		p.Attempts = 2
		var ev events
		opts := append(newClient(t, p, ev.watch()).DialOptions(), grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}))
		cc := dialWith(t, "passthrough:///nowhere", opts...)
		start := time.Now()
		_, err := cc.NewStream(t.Context(), bidiStreams, bidiMethod, grpc.WaitForReady(true))
		wantFailure(t, err, codes.DeadlineExceeded, lull.ErrAttemptsExhausted, 2)
		if took := time.Since(start); took < 4*time.Second || took > 5*time.Second {
			t.Errorf("gave up after %v", took)
		}
		if s := ev.of(event.RetryScheduled); len(s) != 1 || !s[0].Verdict.NeverSent || s[0].Verdict.Code != engine.CodeTimeout {
			t.Errorf("scheduled %+v", s)
		}
	})
}

func TestAStreamEndsWithoutBeingReadToItsEnd(t *testing.T) {
	quiet := func(ss grpc.ServerStream, _ int) error {
		<-ss.Context().Done()
		return ss.Context().Err()
	}
	p := lull.Policy{}
	p.Limit.InFlight = 1
	// The bubble fails if a goroutine is left.
	run(t, "its context ends", func(t *testing.T) {
		c := newClient(t, p, idempotent())
		cc := served(t, &echo{stream: quiet})(c.DialOptions()...)
		ctx, cancel := context.WithCancel(t.Context())
		must.Have(cc.NewStream(ctx, bidiStreams, bidiMethod))
		synctest.Wait()
		d := c.Dependency(t.Context(), cc.Target(), bidiMethod)
		check.Equal(t, d.Limiter().InFlight(), 1, "in flight")
		cancel()
		synctest.Wait()
		check.Equal(t, d.Limiter().InFlight(), 0, "in flight")
	})
	run(t, "its connection is closed", func(t *testing.T) {
		c := newClient(t, p, idempotent())
		cc := served(t, &echo{stream: quiet})(c.DialOptions()...)
		cs := open(t, context.Background(), cc, bidiStreams)
		synctest.Wait()
		cc.Close()
		synctest.Wait()
		check.Equal(t, c.Dependency(t.Context(), cc.Target(), bidiMethod).Limiter().InFlight(), 0, "in flight")
		wantFailure(t, receiveErr(t, cs), codes.Canceled, nil, 0)
		check.Equal(t, cs.SendMsg(wrapperspb.String("")), io.EOF, "sending")
	})
	t.Run("it waits for another attempt", func(t *testing.T) {
		p := quick()
		p.Backoff = backoff.Schedule{Base: time.Hour, Cap: time.Hour, Jitter: backoff.None}
		p.Deadline = lull.NoTimeout
		e := &echo{stream: func(ss grpc.ServerStream, _ int) error { return fails(codes.Unavailable) }}
		inBubble(t, bidiStreams, e, p, []lullgrpc.Option{idempotent()}, func(t *testing.T, cs grpc.ClientStream, cancel context.CancelFunc) {
			time.AfterFunc(time.Minute, cancel)
			sent := make(chan error)
			go func() {
				var err error
				for err == nil {
					err = cs.SendMsg(wrapperspb.String("x"))
				}
				sent <- err
			}()
			wantFailure(t, receiveErr(t, cs), codes.Canceled, context.Canceled, 1)
			check.Equal(t, <-sent, io.EOF, "sending")
		})
	})
}

// A sender need not wait for the receiver to learn of a failure. An uploader learns of it at the
// next message, and continues in another attempt.
func TestASenderAloneIsRetried(t *testing.T) {
	e := &echo{stream: steps(
		hears(codes.Unavailable, "a"),
		hears(codes.Unavailable, "a", "b"),
		func(ss grpc.ServerStream) error {
			return errors.Join(heard(ss, "a", "b", "c"), heardEOF(ss), answer(ss, "sum"))
		},
	)}
	inBubble(t, clientStreams, e, quick(), []lullgrpc.Option{idempotent()}, func(t *testing.T, cs grpc.ClientStream, _ context.CancelFunc) {
		for i, text := range []string{"a", "b", "c"} {
			send(t, cs, text)
			synctest.Wait()
			time.Sleep(time.Second)
			if want := min(i+1, 3); e.count() < want {
				t.Errorf("%d attempts after %q, want %d", e.count(), text, want)
			}
		}
		must.Succeed(cs.CloseSend())
		receive(t, cs, "sum")
	})
}

// CloseSend during a replay comes after the replayed messages.
func TestCloseSendWaitsForTheReplay(t *testing.T) {
	text := strings.Repeat("x", 20<<10)
	all := slices.Repeat([]string{text}, 12) // more than a connection takes unread
	e := &echo{stream: steps(
		hears(codes.Unavailable, all...),
		func(ss grpc.ServerStream) error {
			time.Sleep(time.Second)
			err := errors.Join(heard(ss, all...), heardEOF(ss))
			time.Sleep(time.Second)
			return errors.Join(err, answer(ss, "all"))
		},
	)}
	synctest.Test(t, func(t *testing.T) {
		cc := served(t, e, grpc.InitialWindowSize(64<<10))(newClient(t, quick(), idempotent()).DialOptions()...)
		cs := open(t, t.Context(), cc, clientStreams)
		for range all {
			send(t, cs, text)
		}
		got := make(chan error)
		go func() { got <- cs.RecvMsg(nilString()) }()
		time.Sleep(500 * time.Millisecond)
		check.Equal(t, e.count(), 2, "attempts by now")
		check.Equal(t, cs.CloseSend(), nil, "cs.CloseSend()")
		check.Equal(t, <-got, nil, "<-got")
	})
}

func TestMessagesAreReplayedAsTheyWere(t *testing.T) {
	e := &echo{stream: steps(hears(codes.Unavailable, "a", "b"), func(ss grpc.ServerStream) error {
		return errors.Join(heard(ss, "a", "b", "c"), answer(ss, "d"))
	})}
	inBubble(t, bidiStreams, e, quick(), []lullgrpc.Option{idempotent()}, func(t *testing.T, cs grpc.ClientStream, _ context.CancelFunc) {
		m := new(wrapperspb.StringValue)
		for _, m.Value = range []string{"a", "b", "c"} { // one message for all
			must.Succeed(cs.SendMsg(m))
		}
		m.Value = "spoilt"
		receive(t, cs, "d")
		receiveEOF(t, cs)
	})
}

// legacy is a message of protobuf's first Go API, and on the wire a StringValue.
type legacy struct {
	Value string `protobuf:"bytes,1,opt,name=value,proto3"`
}

func (m *legacy) Reset()         { *m = legacy{} }
func (m *legacy) String() string { return m.Value }
func (*legacy) ProtoMessage()    {}

func TestLegacyMessagesAreReplayed(t *testing.T) {
	e := &echo{stream: steps(hears(codes.Unavailable, "a"), func(ss grpc.ServerStream) error {
		return errors.Join(heard(ss, "a"), answer(ss, "b"))
	})}
	inBubble(t, bidiStreams, e, quick(), []lullgrpc.Option{idempotent()}, func(t *testing.T, cs grpc.ClientStream, _ context.CancelFunc) {
		must.Succeed(cs.SendMsg(&legacy{"a"}))
		receive(t, cs, "b")
	})
}

func TestABufferOfNothingCommitsWithTheFirstMessage(t *testing.T) {
	e := &echo{stream: func(ss grpc.ServerStream, call int) error {
		ss.RecvMsg(new(wrapperspb.StringValue))
		return fails(codes.Unavailable)
	}}
	for size, want := range map[int]int{0: 1, 6: 1, 7: 1, 8: 4} { // "1" is 3 bytes, and 5 for the frame
		e.calls, e.previous = 0, nil
		inBubble(t, bidiStreams, e, quick(), []lullgrpc.Option{idempotent(), lullgrpc.WithReplayBuffer(size)}, func(t *testing.T, cs grpc.ClientStream, _ context.CancelFunc) {
			send(t, cs, "1")
			wantFailure(t, receiveErr(t, cs), codes.Unavailable, nil, 0)
			check.Equal(t, e.count(), want, "%d bytes: attempts", size)
		})
	}
}

func TestWhatCannotBeKeptCommits(t *testing.T) {
	e := &echo{stream: func(ss grpc.ServerStream, call int) error {
		return errors.Join(heard(ss, "raw"), fails(codes.Unavailable))
	}}
	synctest.Test(t, func(t *testing.T) {
		cc := inMemory(t, e, quick(), idempotent())
		cs := open(t, t.Context(), cc, bidiStreams, grpc.ForceCodec(rawCodec{}))
		must.Succeed(cs.SendMsg([]byte("\n\x03raw")))
		wantFailure(t, cs.RecvMsg(new([]byte)), codes.Unavailable, nil, 0)
		check.Equal(t, e.count(), 1, "attempts")
	})
}

// rawCodec sends bytes as they are.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error)   { return v.([]byte), nil }
func (rawCodec) Unmarshal(b []byte, v any) error { *v.(*[]byte) = b; return nil }
func (rawCodec) Name() string                    { return "proto" }

func TestAMessageTooLargeToSendIsTooLargeOnceMore(t *testing.T) {
	e := &echo{stream: func(ss grpc.ServerStream, _ int) error { <-ss.Context().Done(); return nil }}
	synctest.Test(t, func(t *testing.T) {
		cc := inMemory(t, e, quick(), idempotent())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		cs := open(t, ctx, cc, bidiStreams, grpc.MaxCallSendMsgSize(100))
		start := time.Now()
		wantFailure(t, cs.SendMsg(wrapperspb.String(strings.Repeat("x", 200))), codes.ResourceExhausted, nil, 0)
		wantFailure(t, receiveErr(t, cs), codes.ResourceExhausted, nil, 0)
		if e.count() > 1 || time.Since(start) != 0 {
			t.Errorf("%d attempts, %v", e.count(), time.Since(start))
		}
	})
}

func TestMisuseIsGRPCsToFind(t *testing.T) {
	e := &echo{stream: func(ss grpc.ServerStream, _ int) error { <-ss.Context().Done(); return nil }}
	for _, desc := range []*grpc.StreamDesc{bidiStreams, serverStreams} {
		inBubble(t, desc, e, quick(), []lullgrpc.Option{idempotent()}, func(t *testing.T, cs grpc.ClientStream, _ context.CancelFunc) {
			send(t, cs, "1")
			if desc.ClientStreams {
				cs.CloseSend()
			}
			wantFailure(t, cs.SendMsg(wrapperspb.String("2")), codes.Internal, nil, 0)
		})
	}
}

// A stream that is committed without an answer, and fails, is not opened again without the caller's
// knowledge.
func TestACommittedStreamIsNotRepeated(t *testing.T) {
	e := &echo{stream: func(ss grpc.ServerStream, _ int) error { return fails(codes.Unavailable) }}
	var ev events
	inBubble(t, bidiStreams, e, quick(), []lullgrpc.Option{idempotent(), ev.watch()}, func(t *testing.T, cs grpc.ClientStream, _ context.CancelFunc) {
		cs.Context()
		wantFailure(t, receiveErr(t, cs), codes.Unavailable, nil, 0)
		time.Sleep(time.Minute)
		check.Equal(t, e.count(), 1, "attempts")
		if ended := ev.of(event.CallEnded); len(ended) != 1 || ended[0].Reason != engine.Permanent || ended[0].Verdict.Code != engine.CodeUnclassified {
			t.Errorf("end %+v, want one that counts for nothing", ended)
		}
	})
}

func TestAStreamWithoutAnAnswer(t *testing.T) {
	e := &echo{stream: func(ss grpc.ServerStream, call int) error {
		ss.SetTrailer(metadata.Pairs("attempt", fmt.Sprint(call)))
		if call == 0 {
			return fails(codes.Unavailable)
		}
		return nil
	}}
	for _, header := range []bool{false, true} {
		e.calls = 0
		inBubble(t, bidiStreams, e, quick(), []lullgrpc.Option{idempotent()}, func(t *testing.T, cs grpc.ClientStream, _ context.CancelFunc) {
			if header {
				if md, err := cs.Header(); len(md) > 0 && md["attempt"] != nil || err != nil {
					t.Errorf("header %v, %v", md, err)
				}
			}
			receiveEOF(t, cs)
			receiveEOF(t, cs)
			check.Slices(t, cs.Trailer()["attempt"], []string{"1"}, "the trailer")
		})
	}
}

func TestTheEndOfAFailedStream(t *testing.T) {
	e := &echo{stream: func(ss grpc.ServerStream, call int) error {
		ss.SetTrailer(metadata.Pairs("attempt", fmt.Sprint(call)))
		return fails(codes.Unavailable)
	}}
	synctest.Test(t, func(t *testing.T) {
		var told []error
		cc := inMemory(t, e, quick(), idempotent())
		cs := open(t, t.Context(), cc, bidiStreams, grpc.OnFinish(func(err error) { told = append(told, err) }))
		if md, err := cs.Header(); md != nil || err != nil {
			t.Errorf("header %v, %v, want neither", md, err)
		}
		for range 2 {
			wantFailure(t, receiveErr(t, cs), codes.Unavailable, lull.ErrAttemptsExhausted, 4)
		}
		check.Slices(t, cs.Trailer()["attempt"], []string{"3"}, "the trailer")
		check.Equal(t, cs.CloseSend(), nil, "cs.CloseSend()")
		check.Equal(t, cs.SendMsg(wrapperspb.String("")), io.EOF, "sending")
		if cs.Context().Err() != nil {
			t.Error("the caller's context has not ended")
		}
		if len(told) != 1 || !errors.Is(told[0], lull.ErrAttemptsExhausted) {
			t.Errorf("OnFinish was told %v", told)
		}
	})
}

func TestEventsOfAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &echo{stream: steps(hears(codes.Unavailable), func(ss grpc.ServerStream) error { return answer(ss, "1") })}
		var ev events
		var told []error
		cc := inMemory(t, e, quick(), idempotent(), ev.watch())
		cs := open(t, t.Context(), cc, bidiStreams, grpc.OnFinish(func(err error) { told = append(told, err) }))
		receive(t, cs, "1")
		synctest.Wait()
		ended := ev.of(event.CallEnded)
		if len(ended) != 1 || ended[0].Reason != engine.Success || ended[0].Attempt != 2 || ended[0].Operation != bidiMethod {
			t.Errorf("ended %+v: want a success of two attempts, once the stream is answered", ended)
		}
		receiveEOF(t, cs)
		if len(told) != 1 || told[0] != nil {
			t.Errorf("OnFinish was told %v, want nil once", told)
		}
	})
}

// booms fails the test unless do panics with "boom".
func booms(t *testing.T, do func()) {
	t.Helper()
	defer func() {
		check.Equal(t, recover(), "boom", "recovered")
	}()
	do()
}

func TestAPanicGoesOnUp(t *testing.T) {
	p := lull.Policy{}
	p.Limit.InFlight = 1
	c := newClient(t, p, idempotent())
	streamer := func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
		panic("boom")
	}
	for _, do := range map[string]func(){
		"stream": func() { c.StreamClientInterceptor()(t.Context(), bidiStreams, nil, bidiMethod, streamer) },
		"unary": func() {
			c.UnaryClientInterceptor()(t.Context(), unaryMethod, nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
				panic("boom")
			})
		},
	} {
		booms(t, do)
	}
	check.Equal(t, c.Dependency(t.Context(), "unknown target", bidiMethod).Limiter().InFlight(), 0, "in flight")
	// In the second attempt: whoever waits for it sees the panic.
	e := &echo{stream: hearsNothing}
	synctest.Test(t, func(t *testing.T) {
		opened := 0
		explode := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			if opened++; opened > 1 {
				panic("boom")
			}
			return streamer(ctx, desc, cc, method, opts...)
		}
		cc := served(t, e)(append(c.DialOptions(), grpc.WithChainStreamInterceptor(explode))...)
		cs := open(t, t.Context(), cc, bidiStreams)
		for _, do := range []func(){func() { cs.RecvMsg(nilString()) }, func() { cs.SendMsg(nilString()) }, func() { cs.Header() }} {
			booms(t, do)
		}
		check.Equal(t, c.Dependency(t.Context(), cc.Target(), bidiMethod).Limiter().InFlight(), 0, "in flight")
	})
	// A panic of the receiver's own does not keep the engine waiting.
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cs, err := c.StreamClientInterceptor()(ctx, bidiStreams, nil, bidiMethod, func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
			return explosive{ctx: ctx}, nil
		})
		must.Succeed(err)
		booms(t, func() { cs.RecvMsg(nil) })
		cancel()
		synctest.Wait()
		check.Equal(t, c.Dependency(ctx, "unknown target", bidiMethod).Limiter().InFlight(), 0, "in flight")
	})
	// A goroutine that ends from within must not leave the caller waiting.
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	c.StreamClientInterceptor()(t.Context(), bidiStreams, nil, bidiMethod, func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
		runtime.Goexit()
		return nil, nil
	})
}

var hearsNothing = func(ss grpc.ServerStream, _ int) error { return fails(codes.Unavailable) }

// explosive is a stream whose first RecvMsg panics.
type explosive struct {
	grpc.ClientStream
	ctx context.Context
}

func (e explosive) RecvMsg(m any) error {
	if m == nil {
		panic("boom")
	}
	return e.ctx.Err()
}

func (e explosive) Header() (metadata.MD, error) { return nil, nil }
func (e explosive) Trailer() metadata.MD         { return nil }
