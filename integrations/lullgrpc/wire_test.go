package lullgrpc_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/must"
)

func TestACallThatWasNeverSentIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nobody := unused()
		var ev events
		cc := dial(t, nobody, quick(), ev.watch()) // nothing is idempotent
		_, err := call(t.Context(), cc, "")
		wantFailure(t, err, codes.Unavailable, lull.ErrAttemptsExhausted, 4)
		for _, e := range ev.of(event.RetryScheduled) {
			if !e.Verdict.NeverSent || e.Verdict.Code != "unavailable" {
				t.Errorf("verdict %+v on a refused connection", e.Verdict)
			}
		}
		_, err = cc.NewStream(t.Context(), bidiStreams, bidiMethod)
		wantFailure(t, err, codes.Unavailable, lull.ErrAttemptsExhausted, 4)
	})
}

func TestACallThatWasSentIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lis := memnet.Listen()
		var s *grpc.Server
		e := &echo{unary: func(ctx context.Context, _ int, _ string) (string, error) {
			go s.Stop() // it hangs up, and waits for us
			<-ctx.Done()
			return "", ctx.Err()
		}}
		s = serve(t, lis, e)
		cc := dial(t, lis.Addr().String(), quick())
		_, err := call(t.Context(), cc, "")
		wantFailure(t, err, codes.Unavailable, lull.ErrNotIdempotent, 1)
		check.Equal(t, e.count(), 1, "attempts")
	})
}

// An interceptor that hides options hides the proof as well: no call counts as never sent.
func TestWithoutProofNothingIsNeverSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nobody := unused()
		hide := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, _ ...grpc.CallOption) error {
			return invoker(ctx, method, req, reply, cc)
		}
		opts := append(newClient(t, quick()).DialOptions(), grpc.WithChainUnaryInterceptor(hide))
		_, err := call(t.Context(), dialWith(t, nobody, opts...), "")
		wantFailure(t, err, codes.Unavailable, lull.ErrNotIdempotent, 1)
	})
}

const nativeRetries = `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 4,
	"initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`

func TestGRPCsOwnRetriesAreOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &echo{
			unary:  func(context.Context, int, string) (string, error) { return "", fails(codes.Unavailable) },
			stream: func(grpc.ServerStream, int) error { return fails(codes.Unavailable) },
		}
		connect := served(t, e)
		p := quick()
		p.Attempts = 1
		attempts := func(opts ...grpc.DialOption) (unary, stream int) {
			cc := connect(append(opts, grpc.WithDefaultServiceConfig(nativeRetries))...)
			before := e.count()
			if _, err := call(t.Context(), cc, ""); err == nil {
				t.Error("no error")
			}
			between := e.count()
			cs, err := cc.NewStream(t.Context(), bidiStreams, bidiMethod)
			if err == nil {
				receiveErr(t, cs)
			}
			return between - before, e.count() - between
		}
		if u, s := attempts(newClient(t, p, idempotent()).DialOptions()...); u != 1 || s != 1 {
			t.Errorf("%d and %d attempts, want one each: gRPC has retried", u, s)
		}
		if u, s := attempts(); u != 4 || s != 4 {
			t.Errorf("%d and %d attempts without lull: the test proves nothing", u, s)
		}
	})
}

// A server that goes away without having looked at a call (GOAWAY with a lower stream) makes gRPC
// try once more by itself. That is below lull, and stays there.
func TestTransparentRetriesStayGRPCs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := memnet.Listen()
		e := &echo{
			unary: script(),
			stream: func(ss grpc.ServerStream, _ int) error {
				if err := heard(ss, "a"); err != nil {
					return err
				}
				return answer(ss, "b")
			},
		}
		serve(t, back, e)
		p := quick()
		p.Attempts = 1
		for _, name := range []string{"unary", "stream"} {
			var ev events
			refusals := make(chan struct{}, 1)
			cc := dial(t, refuseFirst(t, back.Addr().String(), refusals), p, ev.watch())
			if name == "unary" {
				must.Have(call(t.Context(), cc, ""))
			} else {
				cs := open(t, t.Context(), cc, bidiStreams)
				send(t, cs, "a")
				receive(t, cs, "b")
				receiveEOF(t, cs)
			}
			select {
			case <-refusals: // the refusal is recorded after it was sent, so it may come later than the answer
			case <-time.After(time.Minute):
				t.Error("the call was not refused: the test proves nothing")
			}
			if name == "unary" { // the event of a stream may still be on its way
				if ended := ev.of(event.CallEnded); len(ended) != 1 || ended[0].Attempt != 1 {
					t.Errorf("events %+v, want the end of a call of one attempt", ended)
				}
			}
		}
		if got := e.attempts(); len(got) != 2 || got[0] != "" || got[1] != "" {
			t.Errorf("attempts header %q, want none: no attempt had begun", got)
		}
	})
}

// refuseFirst listens, and answers the first call of the first connection with a
// GOAWAY that disowns it. Other connections it passes on to the server behind.
func refuseFirst(t *testing.T, behind string, refused chan<- struct{}) string {
	lis := memnet.Listen()
	t.Cleanup(func() { lis.Close() })
	go func() {
		for n := 0; ; n++ {
			c, err := lis.Accept()
			if err != nil {
				return
			}
			if n == 0 {
				go func() {
					defer c.Close()
					goAway := []byte{0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
					if onHeaders(c, func([]byte) ([]byte, bool) { return goAway, false }) == nil {
						refused <- struct{}{}
					}
				}()
				continue
			}
			b, err := memnet.Dial(context.Background(), "tcp", behind)
			if err != nil {
				c.Close()
				return
			}
			go func() { io.Copy(b, c); b.Close() }()
			go func() { io.Copy(c, b); c.Close() }()
		}
	}()
	return lis.Addr().String()
}

// onHeaders implements the part of HTTP/2 (RFC 9113) that it needs: the preface, SETTINGS, and for
// each HEADERS the frame that answer returns for its stream, until it wants no more.
func onHeaders(c net.Conn, answer func(id []byte) (frame []byte, more bool)) error {
	preface := []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	got := make([]byte, len(preface))
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, preface) {
		return io.ErrUnexpectedEOF
	}
	if _, err := c.Write([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0}); err != nil {
		return err
	}
	for {
		head := make([]byte, 9)
		if _, err := io.ReadFull(c, head); err != nil {
			return err
		}
		if _, err := io.CopyN(io.Discard, c, int64(head[0])<<16|int64(head[1])<<8|int64(head[2])); err != nil {
			return err
		}
		if head[3] == 1 { // HEADERS
			frame, more := answer(head[5:9])
			if _, err := c.Write(frame); err != nil || !more {
				return err
			}
		}
	}
}
