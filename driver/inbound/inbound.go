// Package inbound describes the request that a server works on, for the calls that the server
// makes for it. Only one layer should retry. So if the request is itself a retry, those calls are
// not retried. If one of them has failed for good, the caller of the request is asked not to
// retry.
package inbound

import (
	"context"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/realtime"
	"github.com/lullgo/lull/internal/saturating"
)

// A Request is the request that a server works on: which attempt of its caller it is, how much of
// its caller's time is left, and whether a call for it has failed for good. lullhttp.NewHandler
// and the interceptors of lullgrpc make one for each request; [With] is for other servers. Its
// methods may be called concurrently. Attempt, GaveUp and GiveUp may be called on nil, which is a
// first attempt without a time limit.
type Request struct {
	scope  *scope
	gaveUp atomic.Bool
	ended  atomic.Bool
}

// scope is the context of the work on a request, and the request, in one allocation.
type scope struct {
	realtime.Bounded // Number is that of the attempt
	request          Request
}

type key struct{}

var serverTime realtime.Clock

func init() { serverTime.Start() }

// With returns a context for the work on a request that is the given attempt of its caller, from
// 1. timeout is the time that the caller has left, after which the context ends
// (context.DeadlineExceeded); zero or negative: it ends only with ctx. Call End when the work is
// done.
func With(ctx context.Context, attempt int, timeout time.Duration) (context.Context, *Request) {
	until := engine.Never
	if timeout > 0 {
		until = saturating.Add(serverTime.Now(), timeout)
	}
	s := new(scope)
	s.Init(ctx, &serverTime, until)
	s.Number = int32(min(max(attempt, 1), 1<<30))
	s.request.scope = s
	return s, &s.request
}

// From returns the request that ctx belongs to, or nil. Work that outlives the request does not
// belong to it: work that is done after its end, or in a context that does not end with the
// request's (context.WithoutCancel).
func From(ctx context.Context) *Request {
	if in := ctx.Value(key{}); in != nil {
		return in.(*Request).of(ctx)
	}
	return nil
}

// of returns the request, or nil if ctx, in which it was found, does not belong to it.
func (in *Request) of(ctx context.Context) *Request {
	if in.ended.Load() || in.scope.Number > 1 && outlives(ctx) {
		return nil
	}
	return in
}

// outlives reports whether ctx, which was derived from the context of a request, does not end
// with it: one of the contexts between cannot end. A context has the one that it was derived from
// in an embedded field; one that has none is taken to end with it.
func outlives(ctx context.Context) bool {
	for ctx != nil {
		if _, found := ctx.(*scope); found {
			return false
		}
		if ctx.Done() == nil {
			return true
		}
		v := reflect.Indirect(reflect.ValueOf(ctx))
		if v.Kind() != reflect.Struct {
			return false
		}
		field, ok := v.Type().FieldByName("Context")
		if !ok {
			return false
		}
		below, err := v.FieldByIndexErr(field.Index)
		if err != nil || !below.CanInterface() {
			return false
		}
		ctx, _ = below.Interface().(context.Context)
	}
	return false
}

func (s *scope) Value(k any) any {
	if k == (key{}) {
		return &s.request
	}
	return s.Context.Value(k)
}

// Attempt returns the number of the attempt, from 1.
func (in *Request) Attempt() int {
	if in == nil {
		return 1
	}
	return int(in.scope.Number)
}

// GaveUp reports whether a call for the request has been given up (Reason.GaveUp). If the request
// fails for that, its caller should not retry it.
func (in *Request) GaveUp() bool { return in != nil && in.gaveUp.Load() }

// Began records that the response has begun, which ends the caller's timeout.
func (in *Request) Began() { in.scope.Detach() }

// End ends the context: the work is done.
func (in *Request) End() {
	in.ended.Store(true)
	in.scope.Cancel()
}

// GiveUp records that a call for the request has been given up. Drivers call it.
func (in *Request) GiveUp() {
	if in != nil {
		in.gaveUp.Store(true)
	}
}
