package idempotency

import (
	"context"
	"errors"
	"net/http"

	"github.com/lullgo/lull/idempotency/internal/step"
	"github.com/lullgo/lull/internal/panicked"
)

// transact runs the request in a transaction of the store.
func (x *exchange) transact(t Transactor) {
	m := x.m
	p := newResponse(x.w, m.config.MaxResponse)
	var a *Attempt
	ran, kept, returned := false, false, false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil { // all is rolled back; it is raised again
			x.event(Event{What: Released, Err: panicked.New(v)})
			panic(v)
		}
	}()
	answer, err := t.Transact(x.r.Context(), x.claim, func(ctx context.Context, resumed bool) ([]byte, bool) {
		step.At(step.AfterClaim)
		a = x.attempt(resumed)
		ran = true
		x.next.ServeHTTP(p, x.request(ctx, a))
		p.end()
		step.At(step.AfterHandler)
		if kept = a.commits(p.status, p.header, m.config.Strict); !kept {
			return nil, false
		}
		return encode(p.record(true)), true
	})
	returned = true
	if err == nil && (answer.State < Claimed || answer.State > Unknown || ran != (answer.State == Claimed)) {
		err = errors.New("idempotency: the store's transaction ended with state " + answer.State.String())
	}
	switch {
	case err != nil && p.passing, err != nil && p.hijacked:
		// The client has a response to what was, perhaps, rolled back. Broken off, it
		// is none, and the client will ask again.
		x.event(Event{What: StoreFailed, Status: p.status, Err: err})
		panic(http.ErrAbortHandler)
	case err != nil:
		p.discard()
		x.event(Event{What: StoreFailed, Err: err})
		m.problem(x.w, m.storeUnavailable())
	case !ran:
		x.refuse(answer)
	default:
		what := Released
		if kept {
			what = Ran
		}
		x.event(Event{What: what, Status: p.status})
		step.At(step.AfterComplete)
		p.pass()
		step.At(step.AfterResponse)
	}
}
