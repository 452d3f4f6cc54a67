package lullhttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/driver"
	"github.com/lullgo/lull/engine"
)

// The defaults of a zero Stale.
const (
	DefaultStaleEntries    = 1000
	DefaultStaleBytes      = 16 << 20
	DefaultStaleEntryBytes = 1 << 20
)

// Stale is what WithStale stores, and for how long it is good. Its zero value serves only what the
// server allows by stale-if-error, or what is still fresh.
type Stale struct {
	// For is how long a response may be served after it has ceased to be fresh, if the server gives
	// neither stale-if-error nor a directive that forbids it. A response without max-age, s-maxage
	// and Expires is never fresh. Zero: not at all.
	For time.Duration
	// Private: all requests through the Transport are made for one user. Then responses that are
	// private, or answer a request with credentials, are stored, too. Otherwise they are not, by the
	// rules for shared caches; a Cookie counts as credentials.
	Private bool
	// Entries and Bytes bound what is stored in memory; a quarter of Bytes is kept for bodies that are
	// being read, also if there is a Store. Zero means DefaultStaleEntries and DefaultStaleBytes.
	Entries int
	Bytes   int64
	// EntryBytes is the most that a response may have, with its header. Larger ones are not stored,
	// nor are bodies of more than a quarter of Bytes. Zero means DefaultStaleEntryBytes.
	EntryBytes int64
	// Store replaces the memory of the Transport. It may be shared with other processes.
	Store StaleStore
}

// WithStale serves the last good response to a GET when the call fails: its circuit is open, its
// budget, attempts or time are used up, it was not answered, or the dependency is overloaded. It is
// never served after a permanent failure, or when the caller has gone. [OutcomeOf] returns the failure,
// with Stale set, and the header has the Age. Observers learn of it as of the fallback of lull.DoOr.
//
// It is no cache: each request is made as without it, by as many attempts, and none is made to
// revalidate what is stored. What may be stored and served follows RFC 9111 and RFC 5861: the
// Cache-Control of both sides, Vary, Expires, Age, and Pragma. Responses of 200, 203, 204, 300, 301
// and 308 are stored when their body has been read to its end. A stored one is dropped when the same
// GET is answered by what may not be stored, or by 404 or 410, and when a request that may change it
// (POST, PUT, ...) succeeds for its URL or for one that the response names. Requests with a Range or a
// condition neither fill the store nor are served from it. Cookies are not stored.
//
// The error is nil and the body in memory, even if the deadline of the request's context has passed.
// A body that is stored is copied once as it is read.
func WithStale(s Stale) Option {
	return func(t *Transport) error {
		if s.For < 0 || s.Entries < 0 || s.Bytes < 0 || s.EntryBytes < 0 {
			return fmt.Errorf("lullhttp: WithStale(%+v): want no negative number", s)
		}
		s.Entries, s.Bytes = cmp.Or(s.Entries, DefaultStaleEntries), cmp.Or(s.Bytes, DefaultStaleBytes)
		s.EntryBytes = cmp.Or(s.EntryBytes, DefaultStaleEntryBytes)
		if s.Store == nil {
			s.Store = newMemoryStore(s.Entries, s.Bytes-s.Bytes/4)
		}
		t.stale = &staleResponses{Stale: s}
		return nil
	}
}

// staleResponses is WithStale at work.
type staleResponses struct {
	Stale
	reading atomic.Int64 // bytes kept of bodies that are being read
}

// answers reports whether the request may be answered by what is stored, if its call fails.
func (s *staleResponses) answers(req *http.Request) bool {
	return (req.Method == "" || req.Method == http.MethodGet) && !parseCacheControl(req.Header).noStore && !isConditional(req.Header) && !hasBody(req)
}

// roundTrip is RoundTrip for WithStale.
func (s *staleResponses) roundTrip(t *Transport, req *http.Request) (*http.Response, error) {
	requested := time.Now()
	call := t.makeCall
	if t.resumes {
		call = t.roundTripResuming
	}
	resp, err := call(req)
	if req.Method != "" && req.Method != http.MethodGet {
		if err == nil && resp.StatusCode < 400 {
			s.invalidate(req, resp)
		}
		return resp, err
	}
	if !s.answers(req) {
		return resp, err
	}
	o, degrades := Outcome{}, false
	if err == nil {
		if o = OutcomeOf(resp); o.Reason == engine.Success || o.Stale {
			s.record(req, resp, requested)
			return resp, nil
		}
		degrades = engine.Result{Reason: o.Reason, OutcomeUnknown: o.Verdict.OutcomeUnknown(t.specOf(req).NotIdempotent)}.Degrades()
	} else if e, ok := errors.AsType[*lull.Error](err); ok {
		o, degrades = failedOutcome(e), e.Degrades()
	}
	if !degrades {
		if err == nil && (resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusGone) {
			s.Store.Delete(urlKey(req, nil))
		}
		return resp, err
	}
	older := s.answer(t, req, o)
	if older == nil {
		return resp, err
	}
	if err == nil {
		within := drainTime
		if until, bounded := req.Context().Deadline(); bounded {
			within = max(min(within, time.Until(until)), 0)
		}
		drain(resp.Body, within, driver.Detached{})
	}
	o.Stale = true
	o.record(older)
	return older, nil
}

func (t *Transport) specOf(req *http.Request) (spec engine.Spec) {
	t.fillSpec(&spec, req)
	return spec
}

var errNothingStored = errors.New("lullhttp: WithStale has no response that may be served")

// answer returns what is served instead of the failure o, or nil. Observers learn of it, as of the
// fallback of lull.DoOr.
func (s *staleResponses) answer(t *Transport, req *http.Request, o Outcome) (older *http.Response) {
	d, failure := t.Dependency(req), errNothingStored
	began := d.Now()
	if !errors.Is(req.Context().Err(), context.Canceled) {
		if older = s.find(req, parseCacheControl(req.Header), time.Now()); older != nil {
			failure = nil
		}
	}
	d.FallbackEnded(req.Context(), t.specOf(req).Operation, engine.Result{Reason: o.Reason, Attempts: o.Attempts, Elapsed: o.Elapsed + d.Now() - began, Verdict: o.Verdict}, failure)
	return older
}

// failedOutcome returns the outcome of a call that ended with e. The reason is that of the layer next
// to the failure.
func failedOutcome(e *lull.Error) (o Outcome) {
	for ok := true; ok; e, ok = errors.AsType[*lull.Error](e.Last) {
		o = Outcome{Attempts: max(o.Attempts, e.Attempts), Reason: e.Reason, Verdict: e.Verdict, Elapsed: max(o.Elapsed, e.Elapsed)}
		if e.Verdict.Code != engine.CodeRetriedBelow {
			break
		}
	}
	return o
}

// isConditional reports whether the answer to a request with the header h may be none of its own.
func isConditional(h http.Header) bool {
	for _, key := range [...]string{"Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range"} {
		if len(h[key]) > 0 {
			return true
		}
	}
	return false
}

// invalidate drops what a request that is not safe may have changed (RFC 9111, 4.4).
func (s *staleResponses) invalidate(req *http.Request, resp *http.Response) {
	switch req.Method {
	case http.MethodHead, http.MethodOptions, http.MethodTrace:
		return
	}
	s.Store.Delete(urlKey(req, nil))
	for _, key := range [...]string{"Location", "Content-Location"} {
		at, err := req.URL.Parse(resp.Header.Get(key))
		if err == nil && at.Scheme == req.URL.Scheme && canonicalHost(at.Scheme, at.Host) == hostOf(req) {
			s.Store.Delete(urlKey(req, at))
		}
	}
}

// find returns the stored response that may be served at now, or nil.
func (s *staleResponses) find(req *http.Request, asked cacheControl, now time.Time) *http.Response {
	key := urlKey(req, nil)
	value, ok := s.Store.Get(key)
	since, names, varies := decodeVary(value)
	if ok && varies {
		value, ok = s.Store.Get(variantKey(key, req, names))
	}
	if !ok {
		return nil
	}
	r, ok := decodeResponse(value, req)
	if !ok || varies && r.answered.Before(since) || !s.mayStore(req, r.Response, r.control) {
		return nil
	}
	if own, one := s.selecting(r.Header); !one || !slices.Equal(own, names) {
		return nil
	}
	age := r.age(now)
	if !s.mayServe(&r, asked, age) {
		return nil
	}
	r.Header["Age"] = []string{strconv.FormatInt(int64(min(age, 1<<31*time.Second)/time.Second), 10)}
	return r.Response
}

// mayServe reports whether a response of that age may answer a request that has failed.
func (s *staleResponses) mayServe(r *storedResponse, asked cacheControl, age time.Duration) bool {
	if asked.noCache || asked.maxAge != absent && age > asked.maxAge {
		return false
	}
	tooOld := age - r.lifetime(s.Private)
	if asked.minFresh != absent {
		return -tooOld >= asked.minFresh
	}
	if tooOld < 0 {
		return true
	}
	c := r.control
	if c.mustRevalidate || !s.Private && (c.proxyRevalidate || c.sharedMaxAge != absent) {
		return false
	}
	switch {
	case asked.staleIfError != absent:
		return tooOld <= asked.staleIfError
	case asked.maxStale != absent:
		return tooOld <= asked.maxStale
	case asked.maxAge != absent:
		return false // RFC 9111, 5.2.1.1
	case c.staleIfError != absent:
		return tooOld <= c.staleIfError
	}
	return tooOld <= s.For
}

// mayStore reports whether the rules of RFC 9111, 3, let a response be stored.
func (s *staleResponses) mayStore(req *http.Request, resp *http.Response, c cacheControl) bool {
	switch resp.StatusCode {
	case http.StatusOK, http.StatusNonAuthoritativeInfo, http.StatusNoContent, http.StatusMultipleChoices, http.StatusMovedPermanently, http.StatusPermanentRedirect:
	default:
		return false
	}
	if c.noStore || c.noCache || len(resp.Trailer) > 0 {
		return false
	}
	if s.Private {
		return true
	}
	allowed := c.public || c.sharedMaxAge != absent || c.mustRevalidate
	return !c.private && (allowed || len(req.Header["Authorization"]) == 0 && len(req.Header["Cookie"]) == 0)
}

// selecting returns the names of the request's fields that choose a response with the header h; false
// if nothing can choose it.
func (s *staleResponses) selecting(h http.Header) ([]string, bool) {
	names, ok := varyNames(h)
	if at, have := slices.BinarySearch(names, "Authorization"); ok && s.Private && !have {
		names = slices.Insert(names, at, "Authorization")
	}
	return names, ok
}

func headerSize(h http.Header) (n int64) {
	for key, values := range h {
		for _, v := range values {
			n += int64(len(key) + len(v))
		}
	}
	return n
}

// record stores a response when its body has been read, if it may be stored.
func (s *staleResponses) record(req *http.Request, resp *http.Response, requested time.Time) {
	answered := time.Now()
	names, one := s.selecting(resp.Header)
	if !one || !s.mayStore(req, resp, parseCacheControl(resp.Header)) || max(resp.ContentLength, headerSize(resp.Header)) > s.EntryBytes {
		s.Store.Delete(urlKey(req, nil))
		return
	}
	b := &recordingBody{ReadCloser: resp.Body, s: s, length: resp.ContentLength}
	key := urlKey(req, nil)
	variant := variantKey(key, req, names)
	kept := &http.Response{StatusCode: resp.StatusCode, Header: resp.Header.Clone(), Uncompressed: resp.Uncompressed}
	b.store = func(body []byte) {
		head := encodeHeader(kept, len(body), requested, answered)
		if int64(len(head)+len(body)) > s.EntryBytes {
			return
		}
		if len(names) > 0 {
			value, _ := s.Store.Get(key)
			if _, have, ok := decodeVary(value); !ok || !slices.Equal(have, names) {
				s.Store.Set(key, encodeVary(answered, names))
			}
		}
		s.Store.Set(variant, slices.Concat(head, body))
	}
	if bodiless(resp) {
		b.store(nil)
		return
	}
	resp.Body = b
}

// A recordingBody keeps what is read of a body, and stores it at the end.
type recordingBody struct {
	io.ReadCloser
	s      *staleResponses
	length int64 // -1: unknown

	mu    sync.Mutex        // guards what follows
	store func(body []byte) // nil: no longer
	kept  []byte            // its capacity is reserved of s.reading
}

func (b *recordingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if store, body := b.add(p[:n], err); store != nil {
		defer b.s.reading.Add(-int64(cap(body)))
		store(body) // not under the lock: the store is the user's
	}
	return n, err
}

// add keeps what was read. If that was the end it returns the whole, still reserved, and what stores it.
func (b *recordingBody) add(p []byte, err error) (store func([]byte), body []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.store == nil {
		return nil, nil
	}
	if !b.keep(p) || err != nil && err != io.EOF {
		b.end()
		return nil, nil
	}
	switch length := int64(len(b.kept)); {
	case length == b.length, b.length < 0 && err == io.EOF:
		store, body = b.store, b.kept
		b.store, b.kept = nil, nil
	case err == io.EOF || b.length >= 0 && length > b.length:
		b.end()
	}
	return store, body
}

// keep keeps what was read, if there is room for it. The lock is held.
func (b *recordingBody) keep(p []byte) bool {
	need := len(b.kept) + len(p)
	if int64(need) > b.s.EntryBytes {
		return false
	}
	if need > cap(b.kept) {
		room := min(max(2*need, 512), int(b.s.EntryBytes))
		if b.s.reading.Add(int64(room)) > b.s.Bytes/4 {
			b.s.reading.Add(-int64(room))
			return false
		}
		larger := append(make([]byte, 0, room), b.kept...)
		b.s.reading.Add(-int64(cap(b.kept)))
		b.kept = larger
	}
	b.kept = append(b.kept, p...)
	return true
}

// end gives back what is kept. The lock is held.
func (b *recordingBody) end() {
	b.s.reading.Add(-int64(cap(b.kept)))
	b.store, b.kept = nil, nil
}

func (b *recordingBody) Close() error {
	b.mu.Lock()
	if b.store != nil {
		b.end()
	}
	b.mu.Unlock()
	return b.ReadCloser.Close()
}
