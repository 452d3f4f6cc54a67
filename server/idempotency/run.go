package idempotency

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/choice"
)

// run gives the request to the handler, which owns the key since began or later, and
// stores its outcome before the client sees it.
func (x *exchange) run(resumed bool, began time.Time) {
	a := x.keyedRequest(resumed)
	p := newResponse(x.w, x.m.config.MaxResponse)
	l := x.m.holdLease(x.r.Context(), &x.claim, began, x.cancelHandler)
	returned := false
	defer func() {
		if returned {
			return
		}
		// A panic, which is raised again with its own stack in the trace, or Goexit.
		v := recover()
		l.stop()
		x.settle(a, p, false, v)
		if v != nil {
			panic(v)
		}
	}()
	x.next.ServeHTTP(p, x.handlerRequest(x.r.Context(), a))
	returned = true
	l.stop()
	p.end()
	x.settle(a, p, true, nil)
	p.sendToClient()
}

func (x *exchange) keyedRequest(resumed bool) *KeyedRequest {
	return &KeyedRequest{Key: x.key, Resumed: resumed, Token: x.claim.Token}
}

func (x *exchange) handlerRequest(ctx context.Context, a *KeyedRequest) *http.Request {
	return withBody(x.r.WithContext(context.WithValue(ctx, keyedRequestKey{}, a)), x.body)
}

// settle stores the handler's outcome. It waits for one attempt; if that
// fails, the rest is done in the background, and the client gets its response.
func (x *exchange) settle(a *KeyedRequest, p *heldResponse, returned bool, panicValue any) {
	m := x.m
	what := a.decide(returned, p.status, p.header, &m.config)
	e := Event{Kind: what.event(), Status: p.status}
	if panicValue != nil {
		e.Err = newPanic(panicValue)
	}
	var record []byte
	if what == keepResponse {
		record = encode(p.record(returned))
	}
	// The record is for the client's next attempt. So it is stored even if the request's
	// context has ended: the client may be gone, or its time over.
	ctx := context.WithoutCancel(x.r.Context())
	late := choice.Either(what == releaseKey, max(time.Until(x.lostClaimUntil), 0), time.Duration(0)) // another claim may be under way, and would own the key again
	if late == 0 {
		first, cancel := context.WithTimeout(ctx, m.saveTimeout())
		err := store(first, m.store, &x.claim, what, record)
		cancel()
		if err == nil || errors.Is(err, ErrFenced) {
			x.settled(e, err)
			return
		}
		x.event(Event{Kind: SaveFailed, Status: p.status, Err: err})
	}
	later := func() {
		time.Sleep(late)
		x.settled(e, m.save(ctx, "save", func(ctx context.Context) error { return store(ctx, m.store, &x.claim, what, record) }))
	}
	if what == releaseKey {
		m.freeKeyInBackground(x.claim.Key, later)
	} else {
		m.saving.Go(later)
	}
}

// settled reports e, the event of an outcome that was to be stored, with err of the store.
func (x *exchange) settled(e Event, err error) {
	switch {
	case errors.Is(err, ErrFenced):
		e.Kind = Fenced
	case err != nil:
		e.Kind, e.Err = SaveLost, errors.Join(err, e.Err)
	}
	x.event(e)
}

// save calls the store until it has answered: ErrFenced is an answer.
func (m *Middleware) save(ctx context.Context, operation string, call func(context.Context) error) error {
	fenced := false
	err := lull.Run(ctx, m.saves, func(ctx context.Context) error {
		err := call(ctx)
		if fenced = errors.Is(err, ErrFenced); fenced {
			return nil
		}
		return err
	}, lull.Operation(operation))
	if fenced {
		return ErrFenced
	}
	return err
}

// saveTimeout is how long a client waits, beyond its handler, for its response to be
// stored.
func (m *Middleware) saveTimeout() time.Duration {
	if t := m.config.Store.WithDefaults().AttemptTimeout; t > 0 {
		return t
	}
	return m.config.Lease
}

// store carries out a keyDecision. If the record is too long for the store, it records that
// the response was not kept.
func store(ctx context.Context, s Store, c *Claim, what keyDecision, record []byte) error {
	switch what {
	case releaseKey:
		return s.Release(ctx, c.Key, c.Token)
	case abandonKey:
		return s.Extend(ctx, c.Key, c.Token, 0, c.Retention)
	}
	err := s.Complete(ctx, c.Key, c.Token, record, c.Retention)
	if errors.Is(err, ErrTooLarge) {
		var r Record
		if r.UnmarshalBinary(record) == nil {
			err = s.Complete(ctx, c.Key, c.Token, encode(Record{Status: r.Status, BodyOmitted: true}), c.Retention)
		}
	}
	return err
}

// encode is for records whose status a ResponseWriter has accepted.
func encode(r Record) []byte {
	b, err := r.MarshalBinary()
	if err != nil {
		panic(err)
	}
	return b
}
