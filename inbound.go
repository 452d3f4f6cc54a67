package lull

import (
	"context"
	"sync/atomic"
	"time"
)

// An Inbound is the request that a server is at work on, as far as it matters to
// the calls that it makes meanwhile: which attempt of its caller it is, how much of
// its caller's time is left, and whether one of those calls has failed for good.
// lullhttp.NewHandler makes one for each request, and so do the interceptors of
// lullgrpc; [WithInbound] is for other servers. Its methods may be called
// concurrently; those that only tell something also on nil, which is a first
// attempt with all the time of the world.
type Inbound struct {
	bounded // number is that of the attempt
	gaveUp  atomic.Bool
}

type inboundKey struct{}

// serverTime is the clock of all requests.
var serverTime = &Dependency{wiring: &wiring{clock: clock{epoch: time.Now()}}}

// WithInbound returns a context for the work on a request that is the given attempt
// of its caller, from 1. The context ends (context.DeadlineExceeded) when the timeout
// has passed, which is what the caller has left; zero or negative: only with ctx.
// Call End when the work is done.
func WithInbound(ctx context.Context, attempt int, timeout time.Duration) (context.Context, *Inbound) {
	in := new(Inbound)
	in.Context, in.d, in.until, in.number = ctx, serverTime, never, int32(min(max(attempt, 1), 1<<30))
	if timeout > 0 {
		now := serverTime.Now()
		if until := now + timeout; until > now { // else it is beyond all time
			in.until = until
		}
	}
	return in, in
}

// InboundFrom is the request that ctx belongs to, or nil.
func InboundFrom(ctx context.Context) *Inbound {
	in, _ := ctx.Value(inboundKey{}).(*Inbound)
	return in
}

// Value gives the request itself under inboundKey.
func (in *Inbound) Value(key any) any {
	if key == (inboundKey{}) {
		return in
	}
	return in.Context.Value(key)
}

// Attempt is the number of the attempt, from 1.
func (in *Inbound) Attempt() int {
	if in == nil {
		return 1
	}
	return int(in.number)
}

// GaveUp tells whether a call that was made for the request has been given up
// (Reason.GaveUp). If that makes the request fail, its caller should not retry it.
func (in *Inbound) GaveUp() bool { return in != nil && in.gaveUp.Load() }

// Began says that the response has begun. The caller's timeout is for that (the
// rest of a long response it takes as it comes), and no longer runs.
func (in *Inbound) Began() { in.detach() }

// End ends the context: the work is done.
func (in *Inbound) End() { in.cancel(context.Canceled) }

// learn is told how a call ended that was made for the request.
func (in *Inbound) learn(why Reason) {
	if in != nil && why.GaveUp() {
		in.gaveUp.Store(true)
	}
}
