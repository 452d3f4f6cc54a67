package lullgrpc

import (
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
)

// mayRace tells whether attempts of a call may run beside one another: it may be
// carried out twice, and its messages are protobuf's, which can be copied.
func mayRace(spec engine.Spec, req, reply any) bool {
	if spec.NotIdempotent {
		return false
	}
	_, ok := asProto(req)
	if !ok {
		return false
	}
	m, ok := asProto(reply)
	return ok && m.ProtoReflect().IsValid()
}

// A race is a unary call whose attempts may run beside one another. The first is
// made on the caller's goroutine, which does not return before it: it may read the
// caller's request and write the caller's reply, and a call that is answered in time
// copies nothing. All others have messages of their own, and maybe outlast the call.
type race struct {
	*unary                          // the call, and its first attempt
	shared []grpc.CallOption        // the caller's, for every attempt
	wanted wanted                   // and those that are for the caller alone
	kind   protoreflect.MessageType // of the reply, which others than the first do not even look at
	others [hedge.MaxAttempts - 1]*try

	mu   sync.Mutex
	over bool // the caller may do with its request what it likes
}

// wanted is where the caller wants to have what belongs to the attempt that counts.
// Attempts must not write there side by side.
type wanted struct {
	headers  []*metadata.MD
	trailers []*metadata.MD
	peers    []*peer.Peer
}

// race makes the call, and tells the error of the attempt that counts.
func (u *unary) race(ctx context.Context, d *lull.Dependency, spec engine.Spec) (engine.Result, error) {
	reply, _ := asProto(u.try.reply)
	r := &race{unary: u, kind: reply.ProtoReflect().Type()}
	u.opts, r.wanted = setAside(u.opts)
	r.shared = slices.Clip(u.opts)
	u.opts = r.observed(u.opts, &u.try)
	result := r.drive(ctx, d, spec)
	if result.Attempts == 0 {
		return result, nil
	}
	t := &u.try
	if result.Slot > 0 {
		t = r.others[result.Slot-1]
		if result.Reason == engine.Success && t.err == nil {
			replace(u.try.reply, t.reply)
		}
	}
	r.wanted.handOver(&t.outcome)
	return result, t.err
}

// drive is lull.Dependency.DriveHedged. When it has returned, or panicked, nobody reads the
// caller's request any more.
func (r *race) drive(ctx context.Context, d *lull.Dependency, spec engine.Spec) engine.Result {
	defer func() {
		r.mu.Lock()
		r.over = true
		r.mu.Unlock()
	}()
	return d.DriveHedged(ctx, spec, r)
}

// Attempt, Discard and Err make it a driver.Hedgeable.
func (r *race) Attempt(ctx context.Context, slot int) lull.Verdict {
	if slot == 0 {
		return r.send(ctx, 0, r.req, &r.try, r.opts)
	}
	other := new(try)
	r.others[slot-1] = other
	req, ok := r.request()
	if !ok {
		other.err = context.Canceled
		return lull.Verdict{Kind: lull.KindCanceled}
	}
	other.reply = as(r.try.reply, r.kind.New().Interface())
	return r.send(ctx, slot, req, other, r.observed(r.shared, other))
}

// Discard has nothing to let go of but what the first attempt has put into the
// caller's reply.
func (r *race) Discard(slot int, _ time.Duration) {
	if slot == 0 && r.try.err == nil {
		reset(r.try.reply)
	}
}

func (r *race) Err(slot int) error {
	if slot == 0 {
		return r.try.err
	}
	return r.others[slot-1].err
}

// observed adds the options by which gRPC tells what comes of an attempt.
func (r *race) observed(opts []grpc.CallOption, t *try) []grpc.CallOption {
	opts = t.watch(r.method, opts)
	if len(r.wanted.headers) > 0 && !t.outcome.asked {
		t.outcome.asked = true
		opts = append(opts, grpc.Header(&t.outcome.header))
	}
	return opts
}

// request is a copy of the request for an attempt that may outlast the call; none
// if it already has.
func (r *race) request() (req any, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return nil, false
	}
	m, _ := asProto(r.req)
	return as(r.req, proto.Clone(m)), true
}

// setAside takes those options out that write to the caller's memory. The slice is
// ours, and is written to.
func setAside(opts []grpc.CallOption) (shared []grpc.CallOption, w wanted) {
	shared = opts[:0]
	for _, each := range opts {
		switch each := each.(type) {
		case grpc.HeaderCallOption:
			w.headers = append(w.headers, each.HeaderAddr)
		case grpc.TrailerCallOption:
			w.trailers = append(w.trailers, each.TrailerAddr)
		case grpc.PeerCallOption:
			w.peers = append(w.peers, each.PeerAddr)
		default:
			shared = append(shared, each)
		}
	}
	return shared, w
}

// handOver gives the caller what belongs to the attempt that counts. One that had no
// connection has no peer, and leaves the caller's alone, as in gRPC.
func (w *wanted) handOver(o *outcome) {
	for _, to := range w.headers {
		*to = o.header
	}
	for _, to := range w.trailers {
		*to = o.trailer
	}
	for _, to := range w.peers {
		if o.peer.Addr != nobody {
			*to = o.peer
		}
	}
}

// as is the message in the form that the one has which it stands for.
func as(like any, m proto.Message) any {
	if _, ok := like.(proto.Message); ok {
		return m
	}
	return protoadapt.MessageV1Of(m)
}

// replace puts the content of one message into another of its type.
func replace(to, from any) {
	dst, _ := asProto(to)
	src, _ := asProto(from)
	proto.Reset(dst)
	proto.Merge(dst, src)
}

func reset(m any) {
	v2, _ := asProto(m)
	proto.Reset(v2)
}
