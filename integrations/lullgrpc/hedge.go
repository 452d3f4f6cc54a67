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

// mayRace reports whether attempts of a call may run side by side. The call must be idempotent, and
// its messages must be protobuf's, which can be copied.
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

// A race is a unary call whose attempts may run side by side. The first attempt runs on the
// caller's goroutine, which waits for it. It reads the caller's request and writes the caller's
// reply, so a call that is answered in time copies nothing. The other attempts have messages of
// their own, and may outlast the call.
type race struct {
	*unary                           // the call, and its first attempt
	shared  []grpc.CallOption        // the caller's, for every attempt
	results resultVars               // the options that only the caller's memory needs
	kind    protoreflect.MessageType // of the reply; the other attempts do not read the reply itself
	others  [hedge.MaxAttempts - 1]*unaryAttempt

	mu   sync.Mutex
	over bool // the caller may change its request
}

// resultVars is the caller's memory for the results of the attempt that counts. Concurrent attempts
// must not write there.
type resultVars struct {
	headers  []*metadata.MD
	trailers []*metadata.MD
	peers    []*peer.Peer
}

// race makes the call, and returns the error of the attempt that counts.
func (u *unary) race(ctx context.Context, d *lull.Dependency, spec engine.Spec) (engine.Result, error) {
	reply, _ := asProto(u.try.reply)
	r := &race{unary: u, kind: reply.ProtoReflect().Type()}
	u.opts, r.results = splitResultVars(u.opts)
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
			best, _ := asProto(t.reply)
			proto.Reset(reply)
			proto.Merge(reply, best)
		}
	}
	r.results.store(&t.outcome)
	return result, t.err
}

// drive is lull.Dependency.DriveHedged. After it has returned or panicked, nobody reads the
// caller's request.
func (r *race) drive(ctx context.Context, d *lull.Dependency, spec engine.Spec) engine.Result {
	defer func() {
		r.mu.Lock()
		r.over = true
		r.mu.Unlock()
	}()
	return d.DriveHedged(ctx, spec, r)
}

// Attempt, Discard and Err implement driver.Hedgeable.
func (r *race) Attempt(ctx context.Context, slot int) lull.Verdict {
	if slot == 0 {
		return r.send(ctx, 0, r.req, &r.try, r.opts)
	}
	other := new(unaryAttempt)
	r.others[slot-1] = other
	req, ok := r.request()
	if !ok {
		other.err = context.Canceled
		return lull.Verdict{Kind: engine.KindCanceled}
	}
	other.reply = inFormOf(r.try.reply, r.kind.New().Interface())
	return r.send(ctx, slot, req, other, r.observed(r.shared, other))
}

// Discard clears the caller's reply if the first attempt has written it. Nothing else needs to be
// released.
func (r *race) Discard(slot int, _ time.Duration) {
	if slot == 0 && r.try.err == nil {
		reply, _ := asProto(r.try.reply)
		proto.Reset(reply)
	}
}

func (r *race) Err(slot int) error {
	if slot == 0 {
		return r.try.observed()
	}
	return r.others[slot-1].observed()
}

// observed adds the options by which gRPC reports the outcome of an attempt.
func (r *race) observed(opts []grpc.CallOption, t *unaryAttempt) []grpc.CallOption {
	opts = t.watch(opts)
	if len(r.results.headers) > 0 {
		opts = append(opts, grpc.Header(&t.outcome.header))
	}
	return opts
}

// request returns a copy of the request for an attempt that may outlast the call. It returns false
// if the call is over.
func (r *race) request() (req any, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return nil, false
	}
	m, _ := asProto(r.req)
	return inFormOf(r.req, proto.Clone(m)), true
}

// splitResultVars removes the options that write to the caller's memory. It writes to opts, which must not
// be the caller's slice.
func splitResultVars(opts []grpc.CallOption) (shared []grpc.CallOption, w resultVars) {
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

// store gives the caller the results of the attempt that counts. An attempt without a connection
// has no peer, and leaves the caller's peer unchanged, as in gRPC.
func (w *resultVars) store(o *outcome) {
	for _, to := range w.headers {
		*to = o.header
	}
	for _, to := range w.trailers {
		*to = o.trailer
	}
	for _, to := range w.peers {
		if o.peer.Addr != noPeer {
			*to = o.peer
		}
	}
}

// inFormOf returns m in the form of like: a proto.Message or a MessageV1.
func inFormOf(like any, m proto.Message) any {
	if _, ok := like.(proto.Message); ok {
		return m
	}
	return protoadapt.MessageV1Of(m)
}
