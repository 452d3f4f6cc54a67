package lullhttp

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
)

// race is a call whose attempts may run beside one another: an exchange for each, so that
// none sees another's request, body or response.
//
// An attempt that has lost may still run when the call has returned, and then the caller may
// use the request again. So the attempts after the first read a copy of it, which is made
// before the first begins, and no attempt but the winner reads the caller's body from then on.
type race struct {
	first  exchange
	permit bodyPermit // of first
	copy   requestCopy

	mu      sync.Mutex // guards what follows
	others  [hedge.MaxAttempts - 1]*laterAttempt
	last    error    // of the attempt that failed most recently, for WithBeforeRetry
	cookies []string // of the answers that were discarded
	over    bool     // the call has returned
}

// laterAttempt is an attempt after the first.
type laterAttempt struct {
	exchange
	permit bodyPermit
}

// drive makes the call.
func (r *race) drive(ctx context.Context, d *lull.Dependency, spec engine.Spec) (*http.Response, error) {
	caller := r.first.req
	r.copy.copyFrom(caller)
	r.first.permit = &r.permit
	winner := -1
	defer func() { r.revokeBodies(winner) }()
	res := d.DriveHedged(ctx, spec, r)
	if res.Attempts > 0 && res.Reason.GaveUp() {
		r.first.t.givenUp.record(caller)
	}
	x := r.exchange(res.Slot)
	if x.resp != nil {
		winner = res.Slot
		x.resp.Request = caller
	}
	r.mu.Lock()
	x.cookies = r.cookies
	r.mu.Unlock()
	return x.callResult(d, spec, res)
}

func (r *race) exchange(slot int) *exchange {
	if slot == 0 {
		return &r.first
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return &r.others[slot-1].exchange
}

// Attempt, Discard and Err make it a driver.Hedgeable.
func (r *race) Attempt(ctx context.Context, slot int) lull.Verdict {
	x := &r.first
	if slot > 0 && !r.newExchange(slot, &x) {
		return lull.Verdict{Kind: lull.KindCanceled, Code: "canceled"}
	}
	v := x.attempt(ctx)
	if x.t.beforeRetry != nil && v.Kind != lull.KindSuccess {
		r.mu.Lock()
		r.last = x.lastError()
		r.mu.Unlock()
	}
	return v
}

// newExchange makes the exchange of an attempt after the first. It returns false if the call has
// returned meanwhile.
func (r *race) newExchange(slot int, x **exchange) bool {
	f := &r.first
	b := new(laterAttempt)
	b.exchange = exchange{t: f.t, req: &r.copy.req, copy: &r.copy, permit: &b.permit, picks: f.picks, attempts: slot, inboundRetries: f.inboundRetries}
	*x = &b.exchange
	r.mu.Lock()
	defer r.mu.Unlock()
	b.err = r.last
	r.others[slot-1] = b
	return !r.over
}

func (r *race) Discard(slot int, within time.Duration) {
	x := r.exchange(slot)
	if lines := x.setCookies(); len(lines) > 0 {
		r.mu.Lock()
		r.cookies = append(r.cookies, lines...)
		r.mu.Unlock()
	}
	x.discard(within)
}

func (r *race) Err(slot int) error { return r.exchange(slot).lastError() }

// revokeBodies takes the caller's request away from all attempts but the winner, which still sends its
// body if the server has answered early; negative: there is none.
func (r *race) revokeBodies(winner int) {
	r.mu.Lock()
	r.over = true
	others := r.others
	r.mu.Unlock()
	if winner != 0 {
		r.permit.revoke()
	}
	for i, b := range others {
		if b != nil && i+1 != winner {
			b.permit.revoke()
		}
	}
}

// requestCopy is a request as it was before the first attempt.
type requestCopy struct {
	req    http.Request // its Header is nil
	url    url.URL
	header bool // it has a header, maybe an empty one
	fields []field
	room   [8]field // for fields, mostly
}

// field is one value of a header field, or a field without values.
type field struct {
	key, value string
	none       bool
}

// copyFrom makes c a copy of req. It allocates nothing for a header of up to eight values: most
// calls need no second attempt.
func (c *requestCopy) copyFrom(req *http.Request) {
	c.req, c.url, c.header = *req, *req.URL, req.Header != nil
	c.req.URL, c.req.Header = &c.url, nil
	c.req.TransferEncoding = slices.Clone(req.TransferEncoding)
	c.fields = c.room[:0]
	for key, values := range req.Header {
		if len(values) == 0 {
			c.fields = append(c.fields, field{key: key, none: true})
		}
		for _, v := range values {
			c.fields = append(c.fields, field{key: key, value: v})
		}
	}
}

// newHeader returns the header of the request, for one attempt.
func (c *requestCopy) newHeader() http.Header {
	if !c.header {
		return nil
	}
	h := make(http.Header, len(c.fields)+3)
	values := make([]string, len(c.fields))
	for i := 0; i < len(c.fields); {
		from, f := i, c.fields[i]
		for ; i < len(c.fields) && c.fields[i].key == f.key; i++ {
			values[i] = c.fields[i].value
		}
		if h[f.key] = values[from:i:i]; f.none {
			h[f.key] = nil
		}
	}
	return h
}

// revokeWait is how long a call that returns waits for a Read of the caller's body by an
// attempt that has lost. A Read of bytes in memory, which the caller may overwrite, is over
// at once, and one of another process's bytes may never be.
const revokeWait = 50 * time.Millisecond

// bodyPermit is the right of an attempt to read the caller's body. A nil lease never ends.
type bodyPermit struct {
	mu      sync.Mutex
	users   int
	revoked bool
	idle    chan struct{} // closed by the last user after the end; nil: nobody waits for that
}

// acquire reports whether the lease is still good. Then the user gives it back.
func (l *bodyPermit) acquire() bool {
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.revoked {
		return false
	}
	l.users++
	return true
}

func (l *bodyPermit) release() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users--; l.users == 0 && l.idle != nil {
		close(l.idle)
	}
}

// revoke ends the lease, and waits for its users, for revokeWait at most.
func (l *bodyPermit) revoke() {
	l.mu.Lock()
	l.revoked = true
	if l.users == 0 {
		l.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	l.idle = idle
	l.mu.Unlock()
	timer := time.NewTimer(revokeWait)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	}
}
