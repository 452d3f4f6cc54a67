package idempotency

import (
	"context"
	"net/http"
	"sync/atomic"
)

// A KeyedRequest describes a request under a key to its handler.
// It may be used concurrently, until the handler returns.
type KeyedRequest struct {
	// Key is the caller's key, without quotes.
	Key string
	// Resumed: an earlier request with this key began, and its outcome was not recorded
	// (Config.Resume). It may have done everything, nothing, or a part. If its process is
	// alive but slow, it may still be running. Find out first.
	Resumed bool
	// Token belongs to this request alone; its successor has another. Write it together
	// with an effect to know later which request caused it.
	Token FencingToken

	declared atomic.Uint32
}

const (
	declaredNoEffect  = 1
	declaredCommitted = 2
)

type keyedRequestKey struct{}

// KeyedRequestFrom returns the KeyedRequest that ctx belongs to, or nil if no key protects it.
func KeyedRequestFrom(ctx context.Context) *KeyedRequest {
	a, _ := ctx.Value(keyedRequestKey{}).(*KeyedRequest)
	return a
}

// NoEffect declares that the request has had no effect, and that it may be carried
// out again: the response is not recorded, whatever it is, and the key is free.
// For a handler that was resumed it declares the same of its predecessor.
//
// It is overruled by [Committed], before or after. It does nothing where no key
// protects ctx.
func NoEffect(ctx context.Context) { declare(ctx, declaredNoEffect) }

// Committed declares that the request has had its effect, and must not be carried
// out again: the response is recorded, whatever it is. If the handler panics
// afterwards, it is recorded that there is no response.
//
// It cannot be taken back. It does nothing where no key protects ctx.
func Committed(ctx context.Context) { declare(ctx, declaredCommitted) }

func declare(ctx context.Context, what uint32) {
	if a := KeyedRequestFrom(ctx); a != nil {
		a.declared.Or(what)
	}
}

// A keyDecision decides the state of a key after its handler has ended.
type keyDecision uint8

const (
	keepResponse keyDecision = iota // record the response
	releaseKey                      // the key is free
	abandonKey                      // the outcome is unknown
)

// event returns the event that observers get once v is stored.
func (v keyDecision) event() EventKind {
	switch v {
	case releaseKey:
		return Released
	case abandonKey:
		return Abandoned
	}
	return Ran
}

// decide applies the rules of c to a handler that returned, having written status and
// header, or that did not return but panicked. In a transaction what is not recorded is
// rolled back, so a failure has no effect, and leaves nothing unknown.
func (a *KeyedRequest) decide(returned bool, status int, header http.Header, c *Config) keyDecision {
	declared := a.declared.Load()
	switch {
	case declared&declaredCommitted != 0:
		return keepResponse
	case declared&declaredNoEffect != 0, c.Transactional && status >= 500:
		return releaseKey
	case !returned:
		return abandonKey
	case a.Resumed && !c.Transactional && (status >= 500 || meansNotDone(status)):
		// It may have failed before it found out what its predecessor did.
		return abandonKey
	case !c.Strict && asksForRetry(status, header):
		return releaseKey
	}
	return keepResponse
}

// meansNotDone reports whether a status means, by its definition, that the request was not
// carried out and may be sent again: RFC 9110 (15.5.9, 15.6.4), RFC 8470 (5.2), RFC
// 6585 (4).
func meansNotDone(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true
	}
	return false
}

// asksForRetry reports whether a refusal asks the client to send the request again. 408 and 425
// are about how the request arrived. 429 and 503 may also be those of a dependency, passed
// on after an effect: they count only with a Retry-After.
func asksForRetry(status int, header http.Header) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return header.Get("Retry-After") != ""
	}
	return meansNotDone(status)
}
