package lull

import (
	"context"
	"sync/atomic"
)

// An Inbound is the request that a server is at work on, as far as it matters to
// the calls that it makes meanwhile: which attempt of its caller it is, and whether
// one of those calls has failed for good. lullhttp.NewHandler puts one into the
// context of each request, and so do the interceptors of lullgrpc. Its methods may
// be called concurrently, and on nil, which is a first attempt.
type Inbound struct {
	attempt int
	gaveUp  atomic.Bool
}

type inboundKey struct{}

// WithInbound returns a context for the work on a request that is the given attempt
// of its caller, from 1.
func WithInbound(ctx context.Context, attempt int) (context.Context, *Inbound) {
	in := &Inbound{attempt: attempt}
	return context.WithValue(ctx, inboundKey{}, in), in
}

// InboundFrom is the request that ctx belongs to, or nil.
func InboundFrom(ctx context.Context) *Inbound {
	in, _ := ctx.Value(inboundKey{}).(*Inbound)
	return in
}

// Attempt is the number of the attempt, from 1.
func (in *Inbound) Attempt() int {
	if in == nil {
		return 1
	}
	return max(in.attempt, 1)
}

// GaveUp tells whether a call that was made for the request has ended without
// success although a retry might have mended it: attempts, budget or time were at
// their end, the circuit was open, or the server below said to stop. If that makes
// the request fail, its caller should not retry it: that has been tried.
func (in *Inbound) GaveUp() bool { return in != nil && in.gaveUp.Load() }

// learn is told how a call ended that was made for the request.
func (in *Inbound) learn(why Reason) {
	switch why {
	case Succeeded, FailedPermanent, CallerCanceled:
		return // an answer, or nobody's failure
	}
	if in != nil {
		in.gaveUp.Store(true)
	}
}
