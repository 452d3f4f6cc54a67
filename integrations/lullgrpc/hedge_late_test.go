package lullgrpc

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/must"
)

// A hedge may be decided just before the call is answered, and be about to start only after that.
// It is not sent: the request is the caller's by then.
func TestAHedgeThatComesTooLate(t *testing.T) {
	c := must.Have(New(lull.Policy{Hedge: hedge.Config{Attempts: 2}}))
	attempts := 0
	req, reply := wrapperspb.String("as it was"), new(wrapperspb.StringValue)
	m := c.methods.Get("/lull.test.Echo/Unary")
	r := &race{
		unary: &unary{c: c, method: m, req: req, try: unaryAttempt{reply: reply}, invoker: func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
			attempts++
			return nil
		}},
		kind: reply.ProtoReflect().Type(),
	}
	if res := r.drive(t.Context(), c.dependency(t.Context(), "target", m), engine.Spec{}); res.Reason != engine.Success || attempts != 1 {
		t.Fatalf("%v after %d attempts", res.Reason, attempts)
	}
	req.Reset() // -race checks it
	if v := r.Attempt(t.Context(), 1); v.Kind != engine.KindCanceled || attempts != 1 || r.Err(1) == nil {
		t.Errorf("%v, %d attempts, %v", v.Kind, attempts, r.Err(1))
	}
}
