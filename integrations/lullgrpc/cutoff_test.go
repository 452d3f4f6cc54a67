package lullgrpc_test

import (
	"context"
	"io"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lullgo/lull"
	lullgrpc "github.com/lullgo/lull/integrations/lullgrpc"
	"github.com/lullgo/lull/internal/cutofftest"
)

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
