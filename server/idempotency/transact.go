package idempotency

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/choice"
)

func (x *exchange) transact(t Transactor) {
	m := x.m
	p := newResponse(x.w, m.config.MaxResponse)
	var a *KeyedRequest
	ran, kept, returned := false, false, false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil { // all is rolled back; v is raised again
			x.event(Event{Kind: Released, Err: newPanic(v)})
			panic(v)
		}
	}()
	answer, err := x.claimed(func(ctx context.Context, claimed func()) (ClaimResult, error) {
		answer, err := t.Transact(ctx, x.claim, func(ctx context.Context, resumed bool) ([]byte, bool) {
			ran = true
			claimed()
			a = x.keyedRequest(resumed)
			x.next.ServeHTTP(p, x.handlerRequest(handlerContext{x.r.Context(), ctx}, a))
			p.end()
			if kept = a.decide(true, p.status, p.header, &m.config) == keepResponse; !kept {
				return nil, false
			}
			return encode(p.record(true)), true
		})
		if err == nil && (answer.State < Claimed || answer.State > Unknown || ran != (answer.State == Claimed)) {
			err = errors.New("idempotency: the store's transaction ended with state " + answer.State.String())
		}
		return answer, err
	})
	returned = true
	switch {
	case err != nil && p.sentToClient, err != nil && p.hijacked:
		// The client has a response, or a part, to what was perhaps rolled back. It is
		// broken off, so that the client asks again.
		x.event(Event{Kind: StoreFailed, Status: p.status, Err: err})
		panic(http.ErrAbortHandler)
	case err != nil:
		replace(p.w.Header(), p.headerBefore) // nothing of the response has been sent
		x.event(Event{Kind: StoreFailed, Err: err})
		x.unavailable()
	case !ran:
		x.refuse(answer)
	default:
		what := choice.Either(kept, Ran, Released)
		x.event(Event{Kind: what, Status: p.status})
		p.sendToClient()
	}
}

// claimed calls transact under the policy for the store, until it has returned an answer, or has
// called claimed: from then on it is not called again, and none of its time counts. Its context
// bounds the claim. The goroutine is the caller's: the policy's call runs as a coroutine.
func (x *exchange) claimed(transact func(ctx context.Context, claimed func()) (ClaimResult, error)) (answer ClaimResult, err error) {
	begun := false
	next, stop := iter.Pull(func(attempt func(context.Context) bool) {
		_, failed := lull.Do(x.r.Context(), x.m.claims, func(ctx context.Context) (struct{}, error) {
			if !attempt(ctx) {
				return struct{}{}, lull.Permanent(errors.New("idempotency: the store has panicked"))
			}
			if begun {
				return struct{}{}, nil
			}
			return struct{}{}, err
		}, lull.Operation("claim"))
		if !begun {
			err = failed
		}
	})
	defer stop()
	for attempt, more := next(); more && !begun; {
		// Derived from the request's context, as the handler is no part of the attempt's call.
		ctx, cancel := context.WithDeadline(x.r.Context(), x.claimEnd(attempt, time.Now()))
		answer, err = transact(ctx, func() {
			begun = true
			next()
		})
		cancel()
		if !begun {
			attempt, more = next()
		}
	}
	return answer, err
}

// handlerContext is the request's context, with the values of the one that the store has made for
// the handler.
type handlerContext struct {
	context.Context
	values context.Context
}

func (c handlerContext) Value(key any) any { return c.values.Value(key) }
