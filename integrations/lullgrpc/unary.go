package lullgrpc

import (
	"context"
	"net"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/driver/inbound"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/attempt"
)

// invoke is the unary interceptor.
func (c *Client) invoke(ctx context.Context, name string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	m := c.methods.Get(name)
	d := c.dependency(ctx, targetOf(cc), m)
	u := &unary{c: c, method: m, req: req, cc: cc, invoker: invoker, try: unaryAttempt{reply: reply}}
	var ofCaller callerOptions
	u.opts, ofCaller = splitOptions(u.room[:0], opts)
	u.creds = ofCaller.creds
	spec := m.spec(ofCaller)
	var r engine.Result
	var err error // of the attempt that counts; nil, unless a classifier took an error for an answer
	if d.Hedges() && mayRace(spec, req, reply) {
		r, err = u.race(ctx, d, spec)
	} else {
		u.opts = u.try.watch(u.opts)
		r = d.Drive(ctx, spec, u.attempt, nil, u.try.observed)
		err = u.try.err
	}
	if r.Reason != engine.Success {
		err = failure(d, name, r, err)
	}
	ofCaller.finish(err)
	return err
}

// unary is a unary call in flight, in one allocation.
type unary struct {
	c       *Client
	method  *method
	req     any
	cc      *grpc.ClientConn
	invoker grpc.UnaryInvoker

	creds    *callerCreds
	attempts int
	try      unaryAttempt // the last attempt; in a race the first
	opts     []grpc.CallOption
	room     [5]grpc.CallOption // for opts; generated code passes one option
}

type unaryAttempt struct {
	reply   any
	err     error
	outcome outcome
}

// watch adds the options by which gRPC reports the outcome of the attempt.
func (t *unaryAttempt) watch(opts []grpc.CallOption) []grpc.CallOption {
	return append(opts, grpc.Trailer(&t.outcome.trailer), grpc.Peer(&t.outcome.peer), grpc.OnFinish(t.outcome.onFinish))
}

func (u *unary) attempt(ctx context.Context) lull.Verdict {
	if u.attempts++; u.attempts > 1 {
		clearResultVars(u.opts)
	}
	return u.send(ctx, u.attempts-1, u.req, &u.try, u.opts)
}

// clearResultVars clears the caller's variables that an earlier attempt has set. An attempt without a
// connection would not overwrite them, and they would stand beside its status.
func clearResultVars(opts []grpc.CallOption) {
	for _, each := range opts {
		switch each := each.(type) {
		case grpc.HeaderCallOption:
			*each.HeaderAddr = nil
		case grpc.TrailerCallOption:
			*each.TrailerAddr = nil
		case grpc.PeerCallOption:
			*each.PeerAddr = peer.Peer{}
		}
	}
}

// send makes an attempt. others is the number of attempts before it.
func (u *unary) send(ctx context.Context, others int, req any, t *unaryAttempt, opts []grpc.CallOption) lull.Verdict {
	ctx = withPreviousAttempts(ctx, others)
	t.outcome.reset()
	t.outcome.recordReady(u.cc)
	t.err = u.invoker(ctx, u.method.name, req, t.reply, u.cc, opts...)
	if t.err == nil {
		return lull.Verdict{Kind: lull.KindSuccess}
	}
	f := Failure{Method: u.method.name, Err: t.err, Trailer: t.outcome.trailer, NeverSent: t.outcome.neverSent()}
	return u.c.verdictOf(u.method.rule, f, u.creds, t.outcome.connected && attempt.CutOff(ctx, ctx) == engine.NotCutOff)
}

// observed returns the error of the attempt for observers.
func (t *unaryAttempt) observed() error { return withRequestID(t.err, t.outcome.trailer) }

// outcome is gRPC's report on an attempt, beside its error.
type outcome struct {
	header    metadata.MD // if asked
	trailer   metadata.MD
	peer      peer.Peer
	finished  bool // gRPC itself has reported the end of the attempt
	connected bool // the connection was ready before the attempt, and again when it was over
	cc        *grpc.ClientConn
}

// noPeer is the peer's address until gRPC replaces it.
var noPeer net.Addr = &net.UnixAddr{Name: "nobody"}

func (o *outcome) reset() { *o = outcome{peer: peer.Peer{Addr: noPeer}} }

func (o *outcome) onFinish(err error) {
	o.finished = true
	o.connected = err != nil && o.connected && isReady(o.cc)
}

func (o *outcome) recordReady(cc *grpc.ClientConn) { o.cc, o.connected = cc, isReady(cc) }

// neverSent reports that no byte of the attempt went to a server. gRPC sets the peer of every
// attempt that gets a stream on a connection. Without a peer there was no stream: connections were
// refused, a name did not resolve, or time ran out while the attempt waited for either. gRPC itself
// must also have ended the attempt. A stub, or an interceptor that drops options, reports nothing
// at all.
func (o *outcome) neverSent() bool { return o.finished && o.peer.Addr == noPeer }

// withPreviousAttempts sets the number of attempts before this one in the metadata: those of the
// call, and those of the inbound request that the server makes it for. It replaces the value that a
// caller has copied from other metadata. Zero is not sent, and removes the caller's value.
func withPreviousAttempts(ctx context.Context, n int) context.Context {
	n += inbound.From(ctx).Attempt() - 1
	md, _ := metadata.FromOutgoingContext(ctx) // a copy
	switch {
	case n == 0 && md[attemptsKey] == nil && md[hedgeKey] == nil:
		return ctx
	case n == 0:
		delete(md, attemptsKey)
		delete(md, hedgeKey)
		return metadata.NewOutgoingContext(ctx, md)
	case md == nil:
		md = make(metadata.MD, 1)
	}
	md[attemptsKey] = []string{strconv.Itoa(n)}
	if a, _ := lull.AttemptFrom(ctx); a.Hedge {
		md[hedgeKey] = []string{"?1"}
	} else {
		delete(md, hedgeKey)
	}
	return metadata.NewOutgoingContext(ctx, md)
}
