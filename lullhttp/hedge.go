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

// race is a call whose attempts may run side by side. Each has an exchange, so that none sees the
// request, body or response of another.
//
// An attempt that has lost may outlast the call, and then the caller may use the request again. So
// the later attempts read a copy of the request, which is made before the first begins. After the
// call only the winner reads the caller's body.
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

type laterAttempt struct {
	exchange
	permit bodyPermit
}

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

// Attempt, Discard and Err implement driver.Hedgeable.
func (r *race) Attempt(ctx context.Context, slot int) lull.Verdict {
	x := &r.first
	if slot > 0 && !r.newExchange(slot, &x) {
		return lull.Verdict{Kind: engine.KindCanceled, Code: "canceled"}
	}
	v := x.attempt(ctx)
	if x.t.beforeRetry != nil && v.Kind != lull.KindSuccess {
		r.mu.Lock()
		r.last = x.lastError()
		r.mu.Unlock()
	}
	return v
}

// newExchange makes the exchange of a later attempt. It returns false if the call has returned.
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

// revokeBodies revokes the permits of all attempts but the winner. The winner still sends its body
// if the server has answered early. A negative winner means that there is none.
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

type requestCopy struct {
	req    http.Request // its Header is nil
	url    url.URL
	header bool // it has a header, maybe an empty one
	fields []field
	room   [8]field // for fields, mostly
}

type field struct {
	key, value string
	none       bool
}

// copyFrom makes c a copy of req. It allocates nothing for a header of up to eight values, since
// most calls need no second attempt.
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

// newHeader returns the header for one attempt.
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

// revokeWait limits how long a call that returns waits for a Read of the caller's body by an
// attempt that has lost. A Read of bytes in memory ends at once. A Read from another process may
// never end.
const revokeWait = 50 * time.Millisecond

// A bodyPermit permits an attempt to read the caller's body. Nil is never revoked.
type bodyPermit struct {
	mu      sync.Mutex
	users   int
	revoked bool
	idle    chan struct{} // closed by the last reader after revoke; nil: nobody waits
}

// acquire reports whether reading is permitted. If so, the reader must call release.
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

// revoke revokes the permit, and waits for its readers, for revokeWait at most.
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
