package lullgrpc_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// read counts how often a message is looked at, as marshalling does.
type read struct {
	proto.Message
	n *atomic.Int64
}

func (r read) ProtoReflect() protoreflect.Message { r.n.Add(1); return r.Message.ProtoReflect() }

// An upload is not answered until its end. From its commit on its messages are marshalled
// by gRPC alone.
func TestUploadsAreNotCopiedAfterTheCommit(t *testing.T) {
	e := &echo{stream: func(ss grpc.ServerStream, _ int) error {
		for ss.RecvMsg(nilString()) == nil {
		}
		return answer(ss, "done")
	}}
	lis := listen(t)
	serve(t, lis, e)
	looked := func(opts ...grpc.DialOption) int64 {
		cc := dialWith(t, lis.Addr().String(), opts...)
		cs, err := cc.NewStream(t.Context(), clientStreams, clientMethod)
		if err != nil {
			t.Fatal(err)
		}
		var n atomic.Int64
		m := read{wrapperspb.String(strings.Repeat("x", 64<<10)), &n}
		for range 5 { // past the replay buffer
			if err := cs.SendMsg(m); err != nil {
				t.Fatal(err)
			}
		}
		n.Store(0)
		for range 20 {
			if err := cs.SendMsg(m); err != nil {
				t.Fatal(err)
			}
		}
		looks := n.Load()
		cs.CloseSend()
		receive(t, cs, "done")
		return looks
	}
	bare, under := looked(), looked(newClient(t, quick(), idempotent()).DialOptions()...)
	if bare == 0 || under != bare {
		t.Errorf("20 messages after the commit were looked at %d times, and %d times without lull", under, bare)
	}
}
