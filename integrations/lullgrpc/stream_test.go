package lullgrpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
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
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	lullgrpc "github.com/lullgo/lull/integrations/lullgrpc"
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

// TestStreamingScripts are the cases of grpc-go's TestRetryStreaming, by name.
func TestStreamingScripts(t *testing.T) {
	type script struct {
		server   serverScript
		client   func(t *testing.T, cs grpc.ClientStream)
		attempts int
		opts     []grpc.CallOption
		least    time.Duration
	}
	unavailable := func(t *testing.T, cs grpc.ClientStream) {
		send(t, cs, "1")
		wantFailure(t, receiveErr(t, cs), codes.Unavailable, nil, 0)
	}
	answersLate := func(messages ...string) func(ss grpc.ServerStream) error {
		return func(ss grpc.ServerStream) error {
			if err := heard(ss, messages...); err != nil {
				return err
			}
			return answer(ss, "5")
		}
	}
	scripts := map[string]script{
		"Non-retryable error code": {
			server: steps(hears(codes.Internal, "1")),
			client: func(t *testing.T, cs grpc.ClientStream) {
				send(t, cs, "1")
				wantFailure(t, receiveErr(t, cs), codes.Internal, nil, 0)
			},
			attempts: 1,
		},
		"One retry necessary": {
			server: steps(hears(codes.Unavailable, "1"), answersLate("1")),
			client: func(t *testing.T, cs grpc.ClientStream) {
				send(t, cs, "1")
				receive(t, cs, "5")
				receiveEOF(t, cs)
			},
			attempts: 2,
		},
		"Exceed max attempts (4)": {
			server: steps(hears(codes.Unavailable, "1"), hears(codes.Unavailable, "1"), hears(codes.Unavailable, "1"), hears(codes.Unavailable, "1")),
			client: func(t *testing.T, cs grpc.ClientStream) {
				send(t, cs, "1")
				wantFailure(t, receiveErr(t, cs), codes.Unavailable, lull.ErrAttemptsExhausted, 4)
			},
			attempts: 4,
		},
		"Multiple requests": {
			server: steps(hears(codes.Unavailable, "1", "2"), answersLate("1", "2")),
			client: func(t *testing.T, cs grpc.ClientStream) {
				send(t, cs, "1")
				send(t, cs, "2")
				receive(t, cs, "5")
				receiveEOF(t, cs)
			},
			attempts: 2,
		},
		"Multiple successive requests": {
			server: steps(hears(codes.Unavailable, "1"), hears(codes.Unavailable, "1", "2"), answersLate("1", "2", "3")),
			client: func(t *testing.T, cs grpc.ClientStream) {
				send(t, cs, "1")
				send(t, cs, "2")
				send(t, cs, "3")
				receive(t, cs, "5")
				receiveEOF(t, cs)
			},
			attempts: 3,
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
			client: func(t *testing.T, cs grpc.ClientStream) {
				send(t, cs, "1")
				md, err := cs.Header()
				if err != nil || !slices.Equal(md["attempt"], []string{"second"}) {
					t.Errorf("header %v, %v", md, err)
				}
				receiveEOF(t, cs)
			},
			attempts: 2,
		},
		"No retry after header": {
			server: steps(func(ss grpc.ServerStream) error {
				return errors.Join(heard(ss, "1"), ss.SendHeader(metadata.MD{}), fails(codes.Unavailable))
			}),
			client:   unavailable,
			attempts: 1,
		},
		"No retry after context": {
			server: steps(hears(codes.Unavailable, "1")),
			client: func(t *testing.T, cs grpc.ClientStream) {
				send(t, cs, "1")
				if cs.Context() == nil {
					t.Error("no context")
				}
				wantFailure(t, receiveErr(t, cs), codes.Unavailable, nil, 0)
			},
			attempts: 1,
		},
		"Replaying close send": {
			server: steps(func(ss grpc.ServerStream) error {
				return errors.Join(heard(ss, "1", "2"), heardEOF(ss), fails(codes.Unavailable))
			}, func(ss grpc.ServerStream) error {
				return errors.Join(heard(ss, "1", "2"), heardEOF(ss), answer(ss, "1", "3", "5"))
			}),
			client: func(t *testing.T, cs grpc.ClientStream) {
				send(t, cs, "1")
				send(t, cs, "2")
				if err := cs.CloseSend(); err != nil {
					t.Error(err)
				}
				receive(t, cs, "1")
				receive(t, cs, "3")
				receive(t, cs, "5")
				receiveEOF(t, cs)
			},
			attempts: 2,
		},
		"Negative pushback":        {server: steps(pushes("-1")), client: unavailable, attempts: 1},
		"Non-numeric pushback":     {server: steps(pushes("xxx")), client: unavailable, attempts: 1},
		"Multiple pushback values": {server: steps(pushes("100", "10")), client: unavailable, attempts: 1},
		"1s pushback": {
			server: steps(pushes("1000"), answersLate("1")),
			client: func(t *testing.T, cs grpc.ClientStream) {
				send(t, cs, "1")
				receive(t, cs, "5")
				receiveEOF(t, cs)
			},
			attempts: 2,
			least:    time.Second,
		},
		"Overflowing buffer": {
			server: steps(func(ss grpc.ServerStream) error {
				return errors.Join(ss.RecvMsg(new(wrapperspb.StringValue)), fails(codes.Unavailable))
			}),
			client: func(t *testing.T, cs grpc.ClientStream) {
				send(t, cs, strings.Repeat("x", 500))
				wantFailure(t, receiveErr(t, cs), codes.Unavailable, nil, 0)
			},
			attempts: 1,
			opts:     []grpc.CallOption{grpc.MaxRetryRPCBufferSize(200)},
		},
	}

	var published struct{ Cases []struct{ Name string } }
	data, err := os.ReadFile("testdata/streaming_retry_scripts.json")
	if err == nil {
		err = json.Unmarshal(data, &published)
	}
	if err != nil || len(published.Cases) != len(scripts) {
		t.Fatalf("%d scripts for %d published cases (%v)", len(scripts), len(published.Cases), err)
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
				cs, err := cc.NewStream(ctx, bidiStreams, bidiMethod, s.opts...)
				if err != nil {
					t.Fatal(err)
				}
				s.client(t, cs)
				if e.count() != s.attempts {
					t.Errorf("%d attempts, want %d", e.count(), s.attempts)
				}
				for i, got := range e.attempts() {
					if want := []string{"", "1", "2", "3"}[i]; got != want {
						t.Errorf("attempt %d: header %q, want %q", i+1, got, want)
					}
				}
				if took := time.Since(start); took < s.least {
					t.Errorf("took %v, want %v at least", took, s.least)
				}
			})
		})
	}
}

// inBubble opens a stream to a server that follows a script.
func inBubble(t *testing.T, desc *grpc.StreamDesc, method string, e *echo, p lull.Policy, opts []lullgrpc.Option, do func(t *testing.T, cs grpc.ClientStream, cancel context.CancelFunc)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cc := inMemory(t, e, p, opts...)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		cs, err := cc.NewStream(ctx, desc, method)
		if err != nil {
			t.Fatal(err)
		}
		do(t, cs, cancel)
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
	inBubble(t, serverStreams, serverMethod, e, quick(), []lullgrpc.Option{idempotent()}, func(t *testing.T, cs grpc.ClientStream, _ context.CancelFunc) {
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
	inBubble(t, serverStreams, serverMethod, e, p, []lullgrpc.Option{idempotent(), lullgrpc.WithStreamTimeouts()}, func(t *testing.T, cs grpc.ClientStream, _ context.CancelFunc) {
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
	inBubble(t, bidiStreams, bidiMethod, e, p, opts, func(t *testing.T, cs grpc.ClientStream, _ context.CancelFunc) {
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
	t.Run("its context ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newClient(t, p, idempotent())
			cc := through(t, &echo{stream: quiet}, c)
			ctx, cancel := context.WithCancel(t.Context())
			if _, err := cc.NewStream(ctx, bidiStreams, bidiMethod); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			d := c.Dependency(t.Context(), cc.Target(), bidiMethod)
			if n := d.Limiter().InFlight(); n != 1 {
				t.Errorf("%d in flight, want 1", n)
			}
			cancel()
			synctest.Wait()
			if n := d.Limiter().InFlight(); n != 0 {
				t.Errorf("%d in flight, want none", n)
			}
		})
	})
	t.Run("its connection is closed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newClient(t, p, idempotent())
			cc := through(t, &echo{stream: quiet}, c)
			cs, err := cc.NewStream(context.Background(), bidiStreams, bidiMethod)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			cc.Close()
			synctest.Wait()
			if n := c.Dependency(t.Context(), cc.Target(), bidiMethod).Limiter().InFlight(); n != 0 {
				t.Errorf("%d in flight, want none", n)
			}
			wantFailure(t, receiveErr(t, cs), codes.Canceled, nil, 0)
			if err := cs.SendMsg(wrapperspb.String("")); err != io.EOF {
				t.Errorf("sending: %v, want io.EOF", err)
			}
		})
	})
	t.Run("it waits for another attempt", func(t *testing.T) {
		p := quick()
		p.Backoff = backoff.Schedule{Base: time.Hour, Cap: time.Hour, Jitter: backoff.None}
		p.Deadline = lull.NoTimeout
		e := &echo{stream: func(ss grpc.ServerStream, _ int) error { return fails(codes.Unavailable) }}
		inBubble(t, bidiStreams, bidiMethod, e, p, []lullgrpc.Option{idempotent()}, func(t *testing.T, cs grpc.ClientStream, cancel context.CancelFunc) {
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
			if err := <-sent; err != io.EOF {
				t.Errorf("sending: %v, want io.EOF", err)
			}
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
	inBubble(t, clientStreams, clientMethod, e, quick(), []lullgrpc.Option{idempotent()}, func(t *testing.T, cs grpc.ClientStream, _ context.CancelFunc) {
		for i, text := range []string{"a", "b", "c"} {
			send(t, cs, text)
			synctest.Wait()
			time.Sleep(time.Second)
			if want := min(i+1, 3); e.count() < want {
				t.Errorf("%d attempts after %q, want %d", e.count(), text, want)
			}
		}
		if err := cs.CloseSend(); err != nil {
			t.Fatal(err)
		}
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
		lis := bufconn.Listen(1 << 20)
		serve(t, lis, e, grpc.InitialWindowSize(64<<10)) // and no more, though it turns out to be quick
		cc := dialWith(t, "passthrough:///memory", append(newClient(t, quick(), idempotent()).DialOptions(), dialer(lis))...)
		cs, err := cc.NewStream(t.Context(), clientStreams, clientMethod)
		if err != nil {
			t.Fatal(err)
		}
		for range all {
			send(t, cs, text)
		}
		got := make(chan error)
		go func() { got <- cs.RecvMsg(nilString()) }()
		time.Sleep(500 * time.Millisecond)
		if n := e.count(); n != 2 {
			t.Errorf("%d attempts by now, want 2", n)
		}
		if err := cs.CloseSend(); err != nil {
			t.Error(err)
		}
		if err := <-got; err != nil {
			t.Error(err)
		}
	})
}

func TestMessagesAreReplayedAsTheyWere(t *testing.T) {
	e := &echo{stream: steps(hears(codes.Unavailable, "a", "b"), func(ss grpc.ServerStream) error {
		return errors.Join(heard(ss, "a", "b", "c"), answer(ss, "d"))
	})}
	inBubble(t, bidiStreams, bidiMethod, e, quick(), []lullgrpc.Option{idempotent()}, func(t *testing.T, cs grpc.ClientStream, _ context.CancelFunc) {
		m := new(wrapperspb.StringValue)
		for _, m.Value = range []string{"a", "b", "c"} { // one message for all
			if err := cs.SendMsg(m); err != nil {
				t.Fatal(err)
			}
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
	inBubble(t, bidiStreams, bidiMethod, e, quick(), []lullgrpc.Option{idempotent()}, func(t *testing.T, cs grpc.ClientStream, _ context.CancelFunc) {
		if err := cs.SendMsg(&legacy{"a"}); err != nil {
			t.Fatal(err)
		}
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
		inBubble(t, bidiStreams, bidiMethod, e, quick(), []lullgrpc.Option{idempotent(), lullgrpc.WithReplayBuffer(size)}, func(t *testing.T, cs grpc.ClientStream, _ context.CancelFunc) {
			send(t, cs, "1")
			wantFailure(t, receiveErr(t, cs), codes.Unavailable, nil, 0)
			if e.count() != want {
				t.Errorf("%d bytes: %d attempts, want %d", size, e.count(), want)
			}
		})
	}
}

func TestWhatCannotBeKeptCommits(t *testing.T) {
	e := &echo{stream: func(ss grpc.ServerStream, call int) error {
		return errors.Join(heard(ss, "raw"), fails(codes.Unavailable))
	}}
	synctest.Test(t, func(t *testing.T) {
		cc := inMemory(t, e, quick(), idempotent())
		cs, err := cc.NewStream(t.Context(), bidiStreams, bidiMethod, grpc.ForceCodec(rawCodec{}))
		if err != nil {
			t.Fatal(err)
		}
		if err := cs.SendMsg([]byte("\n\x03raw")); err != nil {
			t.Fatal(err)
		}
		wantFailure(t, cs.RecvMsg(new([]byte)), codes.Unavailable, nil, 0)
		if e.count() != 1 {
			t.Errorf("%d attempts", e.count())
		}
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
		cs, err := cc.NewStream(ctx, bidiStreams, bidiMethod, grpc.MaxCallSendMsgSize(100))
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		err = cs.SendMsg(wrapperspb.String(strings.Repeat("x", 200)))
		wantFailure(t, err, codes.ResourceExhausted, nil, 0)
		wantFailure(t, receiveErr(t, cs), codes.ResourceExhausted, nil, 0)
		if e.count() > 1 || time.Since(start) != 0 {
			t.Errorf("%d attempts, %v", e.count(), time.Since(start))
		}
	})
}

func TestMisuseIsGRPCsToFind(t *testing.T) {
	e := &echo{stream: func(ss grpc.ServerStream, _ int) error { <-ss.Context().Done(); return nil }}
	for _, desc := range []*grpc.StreamDesc{bidiStreams, serverStreams} {
		inBubble(t, desc, "/lull.test.Echo/"+desc.StreamName, e, quick(), []lullgrpc.Option{idempotent()}, func(t *testing.T, cs grpc.ClientStream, _ context.CancelFunc) {
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
	inBubble(t, bidiStreams, bidiMethod, e, quick(), []lullgrpc.Option{idempotent(), ev.watch()}, func(t *testing.T, cs grpc.ClientStream, _ context.CancelFunc) {
		cs.Context()
		wantFailure(t, receiveErr(t, cs), codes.Unavailable, nil, 0)
		time.Sleep(time.Minute)
		if n := e.count(); n != 1 {
			t.Errorf("%d attempts", n)
		}
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
		inBubble(t, bidiStreams, bidiMethod, e, quick(), []lullgrpc.Option{idempotent()}, func(t *testing.T, cs grpc.ClientStream, _ context.CancelFunc) {
			if header {
				if md, err := cs.Header(); len(md) > 0 && md["attempt"] != nil || err != nil {
					t.Errorf("header %v, %v", md, err)
				}
			}
			receiveEOF(t, cs)
			receiveEOF(t, cs)
			if got := cs.Trailer()["attempt"]; !slices.Equal(got, []string{"1"}) {
				t.Errorf("trailer of attempt %v", got)
			}
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
		cs, err := cc.NewStream(t.Context(), bidiStreams, bidiMethod, grpc.OnFinish(func(err error) { told = append(told, err) }))
		if err != nil {
			t.Fatal(err)
		}
		if md, err := cs.Header(); md != nil || err != nil {
			t.Errorf("header %v, %v, want neither", md, err)
		}
		for range 2 {
			wantFailure(t, receiveErr(t, cs), codes.Unavailable, lull.ErrAttemptsExhausted, 4)
		}
		if got := cs.Trailer()["attempt"]; !slices.Equal(got, []string{"3"}) {
			t.Errorf("trailer of attempt %v", got)
		}
		if err := cs.CloseSend(); err != nil {
			t.Error(err)
		}
		if err := cs.SendMsg(wrapperspb.String("")); err != io.EOF {
			t.Errorf("sending: %v", err)
		}
		if cs.Context().Err() != nil {
			t.Error("the caller's context has not ended")
		}
		if len(told) != 1 || !errors.Is(told[0], lull.ErrAttemptsExhausted) {
			t.Errorf("OnFinish was told %v", told)
		}
	})
}

func TestOnFinishIsCalledOnceForAStream(t *testing.T) {
	e := &echo{stream: steps(hears(codes.Unavailable), func(ss grpc.ServerStream) error { return answer(ss, "1", "2") })}
	synctest.Test(t, func(t *testing.T) {
		var told []error
		cc := inMemory(t, e, quick(), idempotent())
		cs, err := cc.NewStream(t.Context(), bidiStreams, bidiMethod, grpc.OnFinish(func(err error) { told = append(told, err) }))
		if err != nil {
			t.Fatal(err)
		}
		receive(t, cs, "1")
		receive(t, cs, "2")
		if len(told) != 0 {
			t.Errorf("OnFinish was told %v too early", told)
		}
		receiveEOF(t, cs)
		if len(told) != 1 || told[0] != nil {
			t.Errorf("OnFinish was told %v, want nil once", told)
		}
	})
}

func TestEventsOfAStream(t *testing.T) {
	e := &echo{stream: steps(hears(codes.Unavailable), func(ss grpc.ServerStream) error { return answer(ss, "1") })}
	var ev events
	inBubble(t, bidiStreams, bidiMethod, e, quick(), []lullgrpc.Option{idempotent(), ev.watch()}, func(t *testing.T, cs grpc.ClientStream, _ context.CancelFunc) {
		receive(t, cs, "1")
		synctest.Wait()
		ended := ev.of(event.CallEnded)
		if len(ended) != 1 || ended[0].Reason != engine.Success || ended[0].Attempt != 2 || ended[0].Operation != bidiMethod {
			t.Errorf("ended %+v: want a success of two attempts, once the stream is answered", ended)
		}
		receiveEOF(t, cs)
	})
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
		func() {
			defer func() {
				if p := recover(); p != "boom" {
					t.Errorf("recovered %v", p)
				}
			}()
			do()
		}()
	}
	if n := c.Dependency(t.Context(), "unknown target", bidiMethod).Limiter().InFlight(); n != 0 {
		t.Errorf("%d in flight", n)
	}
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
		lis := bufconn.Listen(1 << 20)
		serve(t, lis, e)
		cc := dialWith(t, "passthrough:///memory", append(c.DialOptions(), dialer(lis), grpc.WithChainStreamInterceptor(explode))...)
		cs, err := cc.NewStream(t.Context(), bidiStreams, bidiMethod)
		if err != nil {
			t.Fatal(err)
		}
		for _, do := range []func(){func() { cs.RecvMsg(nilString()) }, func() { cs.SendMsg(nilString()) }, func() { cs.Header() }} {
			func() {
				defer func() {
					if p := recover(); p != "boom" {
						t.Errorf("recovered %v", p)
					}
				}()
				do()
			}()
		}
		if n := c.Dependency(t.Context(), cc.Target(), bidiMethod).Limiter().InFlight(); n != 0 {
			t.Errorf("%d in flight", n)
		}
	})
	// A panic of the receiver's own does not keep the engine waiting.
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cs, err := c.StreamClientInterceptor()(ctx, bidiStreams, nil, bidiMethod, func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
			return explosive{ctx: ctx}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() { recover() }()
			cs.RecvMsg(nil)
		}()
		cancel()
		synctest.Wait()
		if n := c.Dependency(ctx, "unknown target", bidiMethod).Limiter().InFlight(); n != 0 {
			t.Errorf("%d in flight", n)
		}
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
