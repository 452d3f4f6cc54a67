package idempotency

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/lullgo/lull"
)

// exchange is one request with a key.
type exchange struct {
	m             *Middleware
	next          http.Handler
	w             http.ResponseWriter
	r             *http.Request // with the handler's context
	cancelHandler context.CancelCauseFunc
	key           string
	body          []byte
	claim         Claim
}

func (x *exchange) event(e Event) {
	e.Key = x.claim.Key
	x.m.observe(x.r.Context(), e)
}

func (x *exchange) serve() {
	m := x.m
	began := time.Now()
	answer, err := lull.Do(x.r.Context(), m.claims, func(ctx context.Context) (Answer, error) {
		began = time.Now()
		return m.store.Claim(ctx, x.claim)
	}, lull.Operation("claim"))
	if err == nil && (answer.State < Claimed || answer.State > Unknown) {
		err = fmt.Errorf("idempotency: the store answered a claim with state %d", answer.State)
	}
	switch {
	case err != nil:
		x.storeFailed(err)
	case answer.State == Claimed:
		x.run(answer.Resumed, began)
	default:
		x.refuse(answer)
	}
}

// storeFailed answers where it is not known whether the key could be claimed.
func (x *exchange) storeFailed(err error) {
	share := errors.Is(err, ErrShare)
	if share && !x.m.config.FailOpen {
		x.event(Event{What: RefusedShare, Err: err})
		x.m.problem(x.w, x.m.tooManyKeys())
		return
	}
	x.event(Event{What: StoreFailed, Err: err})
	if why, ok := errors.AsType[*lull.Error](err); !share && (!ok || why.Attempts > 0) {
		x.unclaim()
	}
	if x.m.config.FailOpen {
		x.next.ServeHTTP(x.w, withBody(x.r, x.body))
		return
	}
	x.m.problem(x.w, x.m.storeUnavailable())
}

// unclaim takes back, in the background, a claim whose answer was lost: if it has
// arrived after all, the key would stay taken though nobody works on it. What may
// have been taken over from another is left in the state in which it was found.
func (x *exchange) unclaim() {
	select {
	case x.m.undo <- struct{}{}:
	default:
		return
	}
	ctx, c := context.WithoutCancel(x.r.Context()), x.claim
	x.m.saving.Go(func() {
		defer func() { <-x.m.undo }()
		ctx, cancel := context.WithTimeout(ctx, x.m.config.Lease)
		defer cancel()
		what := release
		if c.Resume {
			what = abandon
		}
		store(ctx, x.m.store, &c, what, nil)
	})
}

// refuse answers a request that is not the first.
func (x *exchange) refuse(answer Answer) {
	m := x.m
	switch answer.State {
	case InFlight:
		x.event(Event{What: RefusedInFlight})
		m.problem(x.w, m.inFlight(answer.Remaining))
	case Mismatch:
		x.event(Event{What: RefusedReused})
		m.problem(x.w, m.keyReused())
	case Unknown:
		x.event(Event{What: RefusedUnknown})
		m.problem(x.w, outcomeUnknown())
	case Replay:
		var rec Record
		err := rec.UnmarshalBinary(answer.Record)
		if err != nil || rec.BodyOmitted || rec.Status == 0 {
			x.event(Event{What: RefusedNotKept, Status: rec.Status, Err: err})
			for name, values := range rec.Header {
				x.w.Header()[name] = values
			}
			m.problem(x.w, responseNotKept(rec.Status))
			return
		}
		x.event(Event{What: Replayed, Status: rec.Status})
		replay(x.w, rec)
	}
}
