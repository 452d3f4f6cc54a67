package lullgrpc_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
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
	lullgrpc "github.com/lullgo/lull/integrations/lullgrpc"
	"github.com/lullgo/lull/internal/cutofftest"
	"github.com/lullgo/lull/internal/must"
)

// watched records how the streams of interceptors further in are used, each by itself.
type watched struct {
	slow time.Duration // how long a call takes by itself

	mu      sync.Mutex
	streams int
	broken  map[string]int
}

func (w *watched) option() grpc.DialOption {
	return grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		cs, err := streamer(ctx, desc, cc, method, opts...)
		if err != nil {
			return nil, err
		}
		w.mu.Lock()
		w.streams++
		w.mu.Unlock()
		return &watchedStream{ClientStream: cs, w: w}, nil
	})
}

type watchedStream struct {
	grpc.ClientStream
	w             *watched
	sends, closes int // that are under way
	receives      int
	closed        bool
}

// during records the call, and each breach of the rules for a caller with one goroutine.
func (s *watchedStream) during(what string, n *int) func() {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	breach := func(text string) {
		if s.w.broken == nil {
			s.w.broken = make(map[string]int)
		}
		s.w.broken[text]++
	}
	switch sends := what == "SendMsg" || what == "CloseSend"; {
	case sends && s.sends+s.closes > 0:
		breach("two senders")
	case !sends && s.receives > 0:
		breach("two receivers")
	case s.sends+s.closes+s.receives > 0:
		breach(what + " beside another call")
	case what == "SendMsg" && s.closed:
		breach("SendMsg after CloseSend")
	}
	s.closed = s.closed || what == "CloseSend"
	*n++
	return func() {
		time.Sleep(s.w.slow)
		s.w.mu.Lock()
		defer s.w.mu.Unlock()
		*n--
	}
}

func (s *watchedStream) SendMsg(m any) error {
	defer s.during("SendMsg", &s.sends)()
	return s.ClientStream.SendMsg(m)
}

func (s *watchedStream) CloseSend() error {
	defer s.during("CloseSend", &s.closes)()
	return s.ClientStream.CloseSend()
}

func (s *watchedStream) RecvMsg(m any) error {
	defer s.during("RecvMsg", &s.receives)()
	return s.ClientStream.RecvMsg(m)
}

func (s *watchedStream) Header() (metadata.MD, error) {
	defer s.during("Header", &s.receives)()
	return s.ClientStream.Header()
}

// Interceptors further in see at most one call at a time on a stream, if the caller makes one at a
// time. The messages of a repeated attempt are sent before it is received from, and an attempt that
// is over is inspected when the caller has left it.
func TestInterceptorsFurtherInSeeOneCallAtATime(t *testing.T) {
	server := func(ss grpc.ServerStream, call int) error {
		md, _ := metadata.FromIncomingContext(ss.Context())
		if md["late"] != nil && call == 0 {
			<-ss.Context().Done()
			return nil
		}
		if call < 2 {
			for range call {
				if err := ss.RecvMsg(nilString()); err != nil {
					return err
				}
			}
			return fails(codes.Unavailable)
		}
		n := 0
		for ss.RecvMsg(nilString()) == nil {
			n++
		}
		return answer(ss, fmt.Sprint(n))
	}
	for _, c := range []struct {
		name   string
		desc   *grpc.StreamDesc
		method string
		late   bool
		use    func(t *testing.T, cs grpc.ClientStream)
	}{
		{"server", serverStreams, serverMethod, false, func(t *testing.T, cs grpc.ClientStream) {
			send(t, cs, "a")
			cs.CloseSend()
			receive(t, cs, "1")
			receiveEOF(t, cs)
		}},
		{"client", clientStreams, clientMethod, false, func(t *testing.T, cs grpc.ClientStream) {
			for range 5 {
				send(t, cs, "a")
			}
			cs.CloseSend()
			receive(t, cs, "5")
		}},
		{"bidi", bidiStreams, bidiMethod, false, func(t *testing.T, cs grpc.ClientStream) {
			for range 5 {
				send(t, cs, "a")
				time.Sleep(3 * time.Millisecond)
			}
			cs.CloseSend()
			receive(t, cs, "5")
			receiveEOF(t, cs)
		}},
		{"header first", bidiStreams, bidiMethod, false, func(t *testing.T, cs grpc.ClientStream) {
			send(t, cs, "a")
			send(t, cs, "a")
			cs.CloseSend()
			if md, err := cs.Header(); md == nil || err != nil {
				t.Errorf("header %v, %v", md, err)
			}
			receive(t, cs, "2")
			receiveEOF(t, cs)
		}},
		{"an attempt that is over while the caller sends", clientStreams, clientMethod, true, func(t *testing.T, cs grpc.ClientStream) {
			for range 5 {
				send(t, cs, "a")
			}
			time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second - 2*time.Millisecond)))
			send(t, cs, "a") // the attempt's time is over meanwhile
			send(t, cs, "a")
			cs.CloseSend()
			receive(t, cs, "7")
		}},
		{"an attempt that is over before the caller sends", clientStreams, clientMethod, true, func(t *testing.T, cs grpc.ClientStream) {
			for range 5 {
				send(t, cs, "a")
			}
			time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second + 2*time.Millisecond)))
			send(t, cs, "a")
			cs.CloseSend()
			receive(t, cs, "6")
		}},
		{"an attempt that is over before the caller closes", clientStreams, clientMethod, true, func(t *testing.T, cs grpc.ClientStream) {
			send(t, cs, "a")
			time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second + 2*time.Millisecond)))
			cs.CloseSend()
			receive(t, cs, "1")
		}},
	} {
		run(t, c.name, func(t *testing.T) {
			w := &watched{slow: 5 * time.Millisecond}
			e := &echo{stream: server}
			p := quick()
			p.Timeouts, p.AttemptTimeout = lull.TimeoutsAlways, time.Second
			opts := newClient(t, p, idempotent(), lullgrpc.WithStreamTimeouts()).DialOptions()
			cc := served(t, e)(append(opts, w.option())...)
			ctx := t.Context()
			if c.late {
				ctx = metadata.AppendToOutgoingContext(ctx, "late", "yes")
			}
			cs := must.Have(cc.NewStream(ctx, c.desc, c.method))
			c.use(t, cs)
			if len(w.broken) > 0 {
				t.Errorf("%v", w.broken)
			}
			if w.streams < 2 {
				t.Errorf("%d attempts: the test proves nothing", w.streams)
			}
		})
	}
}

// A caller who sends while it receives has its messages sent again while it receives: two
// streams that are full in both directions would wait for each other.
func TestAReplayDoesNotWaitForAReceiverThatWaitsForIt(t *testing.T) {
	text := strings.Repeat("x", 20<<10)
	e := &echo{stream: func(ss grpc.ServerStream, call int) error {
		for n := 0; ; n++ {
			m := nilString()
			if err := ss.RecvMsg(m); err != nil {
				return nil
			}
			if call == 0 {
				if n == 11 {
					time.Sleep(time.Second)
					return fails(codes.Unavailable)
				}
				continue // nothing is answered yet
			}
			if err := answer(ss, m.Value, m.Value); err != nil {
				return err
			}
		}
	}}
	synctest.Test(t, func(t *testing.T) {
		lis := bufconn.Listen(64 << 10)
		serve(t, lis, e, grpc.InitialWindowSize(64<<10), grpc.InitialConnWindowSize(64<<10))
		client := newClient(t, quick(), idempotent(), lullgrpc.WithReplayBuffer(1<<20))
		opts := append(client.DialOptions(), dialer(lis), grpc.WithInitialWindowSize(64<<10), grpc.WithInitialConnWindowSize(64<<10))
		cc := dialWith(t, "passthrough:///memory", opts...)
		cs := open(t, t.Context(), cc, bidiStreams)
		go func() {
			for range 15 {
				cs.SendMsg(wrapperspb.String(text))
				time.Sleep(10 * time.Millisecond)
			}
			cs.CloseSend()
		}()
		for range 30 {
			receive(t, cs, text)
		}
		receiveEOF(t, cs)
	})
}

// refusing refuses what it has received.
type refusing struct{ grpc.ClientStream }

func (r refusing) RecvMsg(m any) error {
	if err := r.ClientStream.RecvMsg(m); err != nil {
		return err
	}
	return status.Error(codes.InvalidArgument, "refused on this side")
}

// An interceptor further in that fails a received message ends the call, also for a sender that the
// server keeps waiting.
func TestAnErrorFurtherInWhileTheSenderIsBlocked(t *testing.T) {
	for _, committed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e := &echo{stream: func(ss grpc.ServerStream, _ int) error {
				answer(ss, "x")
				<-ss.Context().Done() // reads nothing
				return nil
			}}
			inner := grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				cs, err := streamer(ctx, desc, cc, method, opts...)
				return refusing{cs}, err
			})
			client := newClient(t, quick(), idempotent(), lullgrpc.WithReplayBuffer(8<<20))
			cc := served(t, e, grpc.InitialWindowSize(64<<10))(append(client.DialOptions(), inner)...)
			cs := open(t, t.Context(), cc, bidiStreams)
			if committed {
				cs.Context()
			}
			sent := make(chan error, 1)
			go func() {
				for {
					if err := cs.SendMsg(wrapperspb.String(strings.Repeat("x", 16<<10))); err != nil {
						sent <- err
						return
					}
				}
			}()
			synctest.Wait()
			got := make(chan error, 1)
			go func() { got <- cs.RecvMsg(nilString()) }()
			synctest.Wait()
			select {
			case err := <-got:
				wantFailure(t, err, codes.InvalidArgument, nil, 0)
			default:
				t.Fatal("RecvMsg has not returned")
			}
			select {
			case err := <-sent:
				if err == nil {
					t.Error("no error")
				}
			default:
				t.Error("SendMsg has not returned")
			}
			synctest.Wait()
			if n := client.Dependency(t.Context(), cc.Target(), bidiMethod).Limiter(); n != nil && n.InFlight() != 0 {
				t.Errorf("%d in flight", n.InFlight())
			}
		})
	}
}

// attemptKey finds the function that an interceptor beneath lull calls in place of gRPC.
type attemptKey struct{}

func attemptOf(ctx context.Context) error {
	return ctx.Value(attemptKey{}).(func(context.Context) error)(ctx)
}

// What ended an attempt is decided by who ended its context: of unary calls, of streams that are being
// opened, and of streams that wait for their answer.
func TestWhoCutTheAttemptOff(t *testing.T) {
	for name, c := range map[string]struct {
		options []lullgrpc.Option
		dial    grpc.DialOption
		call    func(ctx context.Context, cc *grpc.ClientConn) error
	}{
		"unary": {
			nil,
			grpc.WithChainUnaryInterceptor(func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
				return attemptOf(ctx)
			}),
			func(ctx context.Context, cc *grpc.ClientConn) error { _, err := call(ctx, cc, "a"); return err },
		},
		"a stream, being opened": {
			nil,
			grpc.WithChainStreamInterceptor(func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ grpc.Streamer, _ ...grpc.CallOption) (grpc.ClientStream, error) {
				return nil, attemptOf(ctx)
			}),
			func(ctx context.Context, cc *grpc.ClientConn) error {
				_, err := cc.NewStream(ctx, serverStreams, serverMethod)
				return err
			},
		},
		"a stream, waiting": {
			[]lullgrpc.Option{lullgrpc.WithStreamTimeouts()},
			grpc.WithChainStreamInterceptor(func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ grpc.Streamer, _ ...grpc.CallOption) (grpc.ClientStream, error) {
				return &waiting{ctx: ctx}, nil
			}),
			func(ctx context.Context, cc *grpc.ClientConn) error {
				s, err := cc.NewStream(ctx, serverStreams, serverMethod)
				if err != nil {
					return err
				}
				s.SendMsg(wrapperspb.String("a"))
				s.CloseSend()
				return s.RecvMsg(new(wrapperspb.StringValue))
			},
		},
	} {
		for classifier, option := range map[string]lullgrpc.Option{
			"":                                  idempotent(),
			", a classifier that knows nothing": lullgrpc.WithClassifier(func(lullgrpc.Failure) lull.Verdict { return lull.Verdict{} }),
		} {
			t.Run(name+classifier, func(t *testing.T) {
				cutofftest.Test(t, func(t *testing.T, p lull.Policy) cutofftest.Call {
					client := newClient(t, p, append(c.options, idempotent(), option)...)
					cc := served(t, &echo{})(append(client.DialOptions(), c.dial)...)
					return func(ctx context.Context, attempt func(context.Context) error) error {
						return c.call(context.WithValue(ctx, attemptKey{}, attempt), cc)
					}
				})
			})
		}
	}
}

// waiting is a stream that is answered by its attempt.
type waiting struct{ ctx context.Context }

func (w *waiting) Header() (metadata.MD, error) { return nil, nil }
func (w *waiting) Trailer() metadata.MD         { return nil }
func (w *waiting) CloseSend() error             { return nil }
func (w *waiting) Context() context.Context     { return w.ctx }
func (w *waiting) SendMsg(any) error            { return nil }
func (w *waiting) RecvMsg(any) error {
	if err := attemptOf(w.ctx); err != nil {
		return err
	}
	return io.EOF
}
