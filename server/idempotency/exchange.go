package idempotency

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/lullgo/lull"
)

type exchange struct {
	m              *Middleware
	next           http.Handler
	w              http.ResponseWriter
	r              *http.Request // with the handler's context
	cancelHandler  context.CancelCauseFunc
	key            string
	body           []byte
	claim          Claim
	lostClaimUntil time.Time // until then a claim whose answer was lost may be carried out; zero: no such claim
}

func (x *exchange) event(e Event) {
	e.Key = x.claim.Key
	x.m.observe(x.r.Context(), e)
}

func (x *exchange) serve() {
	m := x.m
	began := time.Now()
	answer, err := lull.Do(x.r.Context(), m.claims, func(ctx context.Context) (ClaimResult, error) {
		began = time.Now()
		end := x.claimEnd(ctx, began)
		if t, ok := ctx.Deadline(); !ok || end.Before(t) {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, end)
			defer cancel()
		}
		answer, err := m.store.Claim(ctx, x.claim)
		if err == nil && (answer.State < Claimed || answer.State > Unknown) {
			err = fmt.Errorf("idempotency: the store answered a claim with state %d", answer.State)
		}
		if err != nil {
			answer = ClaimResult{}
			if !errors.Is(err, ErrFull) && !classify(err).NeverSent {
				x.lostClaimUntil = end
			}
		}
		return answer, err
	}, lull.Operation("claim"))
	if answer.State != Claimed && !x.lostClaimUntil.IsZero() {
		x.takeBackClaim()
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

// claimEnd is when an attempt at the claim that began then must have its answer: when the attempt's
// time is over, or the lease, after which the answer is worth nothing.
func (x *exchange) claimEnd(attempt context.Context, began time.Time) time.Time {
	end := began.Add(x.claim.Lease)
	if t, ok := attempt.Deadline(); ok && t.Before(end) {
		end = t
	}
	return end
}

// storeFailed answers when it is not known whether the key could be claimed.
func (x *exchange) storeFailed(err error) {
	if errors.Is(err, ErrShare) && !x.m.config.FailOpen {
		x.event(Event{Kind: RefusedShare, Err: err})
		x.m.problem(x.w, x.m.details(ProblemTooManyKeys, period(x.m.config.Retention)))
		return
	}
	x.event(Event{Kind: StoreFailed, Err: err})
	if x.m.config.FailOpen {
		x.next.ServeHTTP(x.w, withBody(x.r, x.body))
		return
	}
	x.unavailable()
}

// unavailable answers that the store is unavailable and nothing was carried out.
func (x *exchange) unavailable() {
	d := x.m.details(ProblemStoreUnavailable)
	d.retryAfter = x.m.config.RetryAfter
	x.m.problem(x.w, d)
}

// takeBackClaim takes back, in the background, a claim whose answer was lost: if it has
// arrived after all, the key would stay taken though nobody works on it.
func (x *exchange) takeBackClaim() {
	m, c, until := x.m, x.claim, x.lostClaimUntil // not x, which has the body
	ctx := context.WithoutCancel(x.r.Context())
	m.freeKeyInBackground(c.Key, func() {
		// Repeat while the lease lasts: a store that ignores ctx's deadline may still make the claim.
		for _, wait := range []time.Duration{time.Until(until), min(c.Lease/3, m.saveTimeout())} {
			time.Sleep(wait)
			m.undoSlots <- struct{}{}
			err := m.save(ctx, "unclaim", func(ctx context.Context) error { return undoClaim(ctx, m.store, c) })
			<-m.undoSlots
			if err != nil && !errors.Is(err, ErrFenced) {
				m.observe(ctx, Event{Kind: SaveLost, Key: c.Key, Err: err})
				return
			}
		}
	})
}

// freeKeyInBackground calls store in the background, which frees key in the Store. Until store returns, this
// process does not report the key's outcome as unknown.
func (m *Middleware) freeKeyInBackground(key string, store func()) {
	m.mu.Lock()
	m.pendingFrees[key]++
	m.mu.Unlock()
	m.saving.Go(func() {
		store()
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.pendingFrees[key]--; m.pendingFrees[key] == 0 {
			delete(m.pendingFrees, key)
		}
	})
}

// undoClaim leaves the key as c has found it. If c had taken the key over from another, its
// outcome is unknown again. To find that out, undoClaim claims the key once more.
func undoClaim(ctx context.Context, s Store, c Claim) error {
	if c.Resume {
		c.Resume = false
		switch a, err := s.Claim(ctx, c); {
		case errors.Is(err, ErrFull): // so there is no entry
			return nil
		case err != nil || a.State != Claimed:
			return err
		case a.Resumed:
			return s.Extend(ctx, c.Key, c.Token, 0, c.Retention)
		}
	}
	return s.Release(ctx, c.Key, c.Token)
}

// refuse answers a request that is not the first.
func (x *exchange) refuse(answer ClaimResult) {
	m := x.m
	if answer.State == Unknown {
		m.mu.Lock()
		if m.pendingFrees[x.claim.Key] > 0 {
			answer.State = InFlight
		}
		m.mu.Unlock()
	}
	switch answer.State {
	case InFlight:
		x.event(Event{Kind: RefusedInFlight})
		d := m.details(ProblemInFlight)
		d.retryAfter = min(m.config.RetryAfter, cmp.Or(answer.Remaining, m.config.RetryAfter))
		m.problem(x.w, d)
	case Mismatch:
		x.event(Event{Kind: RefusedReused})
		m.problem(x.w, m.details(ProblemKeyReused))
	case Unknown:
		x.event(Event{Kind: RefusedUnknown})
		m.problem(x.w, m.details(ProblemOutcomeUnknown))
	case Replay:
		var rec Record
		err := rec.UnmarshalBinary(answer.Record)
		if err != nil || rec.BodyOmitted || rec.Status == 0 {
			x.event(Event{Kind: RefusedNotKept, Status: rec.Status, Err: err})
			maps.Copy(x.w.Header(), rec.Header)
			d := m.details(ProblemResponseNotKept)
			d.OriginalStatus = rec.Status
			m.problem(x.w, d)
			return
		}
		x.event(Event{Kind: Replayed, Status: rec.Status})
		replay(x.w, rec)
	}
}
