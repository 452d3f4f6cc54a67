package lullgrpc_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/hedge"
	lullgrpc "github.com/lullgo/lull/integrations/lullgrpc"
)

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
				if strings.Count(line, want) != 1 {
					t.Errorf("%s: the line lacks %s: %s", name, want, line)
				}
			}
			if strings.Contains(line, "attempt_3.request_id") || strings.Count(line, "\n") != 1 {
				t.Errorf("%s: %s", name, line)
			}
		})
	}
}
