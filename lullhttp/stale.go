package lullhttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/driver"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/problem"
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
	// private, or answer a request with credentials, are stored, too, and a Store must be that user's
	// alone. Otherwise they are not, by the rules for shared caches; a Cookie counts as credentials.
	Private bool
	// Entries and Bytes bound what is stored in memory; a quarter of Bytes is kept for bodies that are
	// being read, also if there is a Store. Zero means DefaultStaleEntries and DefaultStaleBytes.
	Entries int
	Bytes   int64
	// EntryBytes is the most that a response may have, with its header: at most an eighth of Bytes.
	// Larger ones are not stored. Zero means DefaultStaleEntryBytes, or that eighth.
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
// GET is answered by what may not be stored, or a GET, HEAD or DELETE of its URL by 404 or 410, and when
// a request that may change it (POST, PUT, ...) succeeds for its URL or for one that the response names.
// Requests with a Range, a condition or a key that is not canonical neither fill the store nor are
// served from it. Cookies are not stored. A response with neither Vary nor an age is served only to
// callers whose headers are the same, unless Private is set.
//
// The error is nil and the body in memory, even if the deadline of the request's context has passed.
// A body that is stored is copied once as it is read.
func WithStale(s Stale) Option {
	return func(t *Transport) error {
		s.Entries, s.Bytes = cmp.Or(s.Entries, DefaultStaleEntries), cmp.Or(s.Bytes, DefaultStaleBytes)
		var l problem.List
		l.Check(s.For >= 0, "For", s.For, "a positive duration, or 0 for none")
		l.Check(s.Entries > 0, "Entries", s.Entries, "a positive number, or 0 for the default of 1000")
		l.Check(s.Bytes > 0, "Bytes", s.Bytes, "a positive number, or 0 for the default of 16 MiB")
		l.Check(s.EntryBytes >= 0 && s.EntryBytes <= max(s.Bytes, 0)/8, "EntryBytes", s.EntryBytes, "at most an eighth of Bytes, so that a body can be kept while it is read, or 0 for the default")
		if err := l.Err(); err != nil {
			return fmt.Errorf("lullhttp: WithStale: %w", err)
		}
		s.EntryBytes = cmp.Or(s.EntryBytes, min(DefaultStaleEntryBytes, s.Bytes/8))
		if s.Store == nil {
			s.Store = newMemoryStore(s.Entries, s.Bytes-s.Bytes/4)
		}
		t.stale = &staleResponses{Stale: s, seed: maphash.MakeSeed()}
		return nil
	}
}

// staleResponses is WithStale at work.
type staleResponses struct {
	Stale
	reading atomic.Int64 // bytes kept of bodies that are being read
	seed    maphash.Seed
	dropped [512]atomic.Uint32 // how often keys were dropped, by a hash of the key
}

// drops returns the counter of the drops of key. If it changes while a response is under way, that
// is not stored: it may be from before the change for which the key was dropped.
func (s *staleResponses) drops(key string) *atomic.Uint32 {
	return &s.dropped[maphash.String(s.seed, key)%uint64(len(s.dropped))]
}

func (s *staleResponses) drop(key string) {
	s.drops(key).Add(1) // first: see store
	s.Store.Delete(key)
}

// answers reports whether the request may be answered by what is stored, if its call fails.
func (s *staleResponses) answers(req *http.Request) bool {
	return (req.Method == "" || req.Method == http.MethodGet) && !parseCacheControl(req.Header).noStore && !isConditional(req.Header) && !hasBody(req) && hasCanonicalKeys(req.Header)
}

// roundTrip is RoundTrip for WithStale.
func (s *staleResponses) roundTrip(t *Transport, req *http.Request) (*http.Response, error) {
	requested := time.Now()
	key := urlKey(req, nil)
	drops := s.drops(key).Load()
	call := t.makeCall
	if t.resumes {
		call = t.roundTripResuming
	}
	answers := s.answers(req)
	resp, err := call(req, answers)
	if err == nil && isGone(req, resp) {
		s.drop(key)
	}
	if req.Method != "" && req.Method != http.MethodGet {
		if err == nil && resp.StatusCode < 400 {
			s.invalidate(req, resp, key)
		}
		return resp, err
	}
	if !answers {
		return resp, err
	}
	o, degrades := Outcome{}, false
	if err == nil {
		if o = OutcomeOf(resp); o.Reason == engine.Success || o.Stale {
			s.record(req, resp, requested, key, drops)
			return resp, nil
		}
		degrades = engine.Result{Reason: o.Reason, OutcomeUnknown: o.OutcomeUnknown}.Degrades()
	} else if e, ok := errors.AsType[*lull.Error](err); ok {
		o, degrades = failedOutcome(e), e.Degrades()
	}
	if !degrades {
		return resp, err
	}
	older := s.answer(t, req, key, o)
	if older == nil {
		return resp, err
	}
	if err == nil {
		if cookies := resp.Header["Set-Cookie"]; len(cookies) > 0 {
			older.Header["Set-Cookie"] = cookies // RFC 6265, 3: those of failures count
		}
		left := drainTime
		if limit := t.Dependency(req).Policy().Deadline; limit > 0 {
			left = limit - time.Since(requested)
		}
		drain(resp.Body, drainLimit(req.Context(), left), driver.Detached{})
	}
	o.Stale = true
	o.record(older)
	return older, nil
}

var errNothingStored = errors.New("lullhttp: WithStale has no response that may be served")

// answer returns what is served instead of the failure o, or nil. Observers learn of it, as of the
// fallback of lull.DoOr.
func (s *staleResponses) answer(t *Transport, req *http.Request, key string, o Outcome) (older *http.Response) {
	d, failure := t.Dependency(req), errNothingStored
	began := d.Now()
	if !errors.Is(req.Context().Err(), context.Canceled) {
		if older = s.find(req, key, parseCacheControl(req.Header), time.Now()); older != nil {
			failure = nil
		}
	}
	var spec engine.Spec
	t.fillSpec(&spec, req)
	d.FallbackEnded(req.Context(), spec.Operation, engine.Result{Reason: o.Reason, Attempts: o.Attempts, Elapsed: o.Elapsed + d.Now() - began, Verdict: o.Verdict}, failure)
	return older
}

// isGone reports whether a response is an answer, and no failure to answer, that the request's URL
// has nothing. A DELETE that is repeated is answered so by the work of the attempt before.
func isGone(req *http.Request, resp *http.Response) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodDelete:
		return (resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusGone) && !engine.Result{Reason: OutcomeOf(resp).Reason}.Degrades()
	}
	return false
}

// hasCanonicalKeys reports whether h.Get finds every field of h.
func hasCanonicalKeys(h http.Header) bool {
	for key := range h {
		if http.CanonicalHeaderKey(key) != key {
			return false
		}
	}
	return true
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
	headers := []string{"Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range"}
	return slices.ContainsFunc(headers, func(key string) bool { return len(h[key]) > 0 })
}

// invalidate drops what a request that is not safe may have changed (RFC 9111, 4.4).
func (s *staleResponses) invalidate(req *http.Request, resp *http.Response, key string) {
	switch req.Method {
	case http.MethodHead, http.MethodOptions, http.MethodTrace:
		return
	}
	s.drop(key)
	for _, name := range [...]string{"Location", "Content-Location"} {
		at, err := req.URL.Parse(resp.Header.Get(name))
		if err == nil && at.Scheme == req.URL.Scheme && canonicalHost(at.Scheme, at.Host) == hostOf(req) {
			s.drop(urlKey(req, at))
		}
	}
}

// find returns the stored response that may be served at now, or nil.
func (s *staleResponses) find(req *http.Request, key string, asked cacheControl, now time.Time) *http.Response {
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
	if own, one := s.selecting(req, r.Header); !one || !slices.Equal(own, names) {
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
	if c.noStore || c.noCache || len(resp.Trailer) > 0 || !hasCanonicalKeys(resp.Header) {
		return false
	}
	if s.Private {
		return true
	}
	allowed := c.public || c.sharedMaxAge != absent || c.mustRevalidate
	return !c.private && (allowed || len(req.Header["Authorization"]) == 0 && len(req.Header["Cookie"]) == 0)
}

// selecting returns the names of the request's fields that choose a response with the header h; false
// if nothing can choose it. If the service says nothing to caches, neither Vary nor how long the
// response is fresh, then in a shared store that is every field that may name the caller, such as
// X-Api-Key. A response with a Content-Encoding is for those who asked as its caller did:
// http.Transport decompresses for a caller that did not ask.
func (s *staleResponses) selecting(req *http.Request, h http.Header) ([]string, bool) {
	names, ok := varyNames(h)
	switch c := parseCacheControl(h); {
	case !ok:
	case s.Private:
		names = withName(names, "Authorization")
	case len(h["Vary"])+len(h["Expires"]) == 0 && !c.public && c.sharedMaxAge == absent && c.maxAge == absent && c.staleIfError == absent:
		for name := range req.Header {
			if !namesNobody(name) {
				names = withName(names, name)
			}
		}
	}
	if ok && len(h["Content-Encoding"]) > 0 {
		names = withName(names, "Accept-Encoding")
	}
	return names, ok
}

// namesNobody reports whether a field of a request is another one with each request, or says nothing
// of who asks for what.
func namesNobody(name string) bool {
	switch name {
	case "User-Agent", "Via", "Date", "Cache-Control", "Pragma", "Connection", "Te", "Content-Length",
		"Traceparent", "Tracestate", "X-Request-Id", "X-Correlation-Id", "X-Amzn-Trace-Id", "X-Cloud-Trace-Context", "B3":
		return true
	}
	return strings.HasPrefix(name, "X-B3-") || strings.HasPrefix(name, "X-Envoy-") || strings.HasPrefix(name, "Lull-")
}

func withName(names []string, name string) []string {
	if at, have := slices.BinarySearch(names, name); !have {
		names = slices.Insert(names, at, name)
	}
	return names
}

func headerSize(h http.Header) (n int64) {
	for key, values := range h {
		for _, v := range values {
			n += int64(len(key) + len(v))
		}
	}
	return n
}

// record stores a response when its body has been read, if it may be stored. drops is what the key's
// counter was before the request.
func (s *staleResponses) record(req *http.Request, resp *http.Response, requested time.Time, key string, drops uint32) {
	answered := time.Now()
	names, one := s.selecting(req, resp.Header)
	if !one || !s.mayStore(req, resp, parseCacheControl(resp.Header)) || max(resp.ContentLength, headerSize(resp.Header)) > s.EntryBytes {
		s.drop(key)
		return
	}
	b := &recordingBody{ReadCloser: resp.Body, s: s, length: resp.ContentLength}
	variant := variantKey(key, req, names)
	kept := &http.Response{StatusCode: resp.StatusCode, Header: resp.Header.Clone(), Uncompressed: resp.Uncompressed}
	b.store = func(body []byte) {
		head := encodeHeader(kept, len(body), requested, answered)
		if int64(len(head)+len(body)) > s.EntryBytes || s.drops(key).Load() != drops {
			return
		}
		s.set(key, variant, names, answered, slices.Concat(head, body))
		if s.drops(key).Load() != drops { // it was dropped between
			s.Store.Delete(key)
		}
	}
	if bodiless(resp) {
		b.store(nil)
		return
	}
	resp.Body = b
}

// set stores a response, unless what is stored was answered later. A time to come is of a wrong clock.
func (s *staleResponses) set(key, variant string, names []string, answered time.Time, response []byte) {
	isNewer := func(value []byte) bool {
		at := storedAt(value)
		return at.After(answered) && !at.After(time.Now())
	}
	value, _ := s.Store.Get(key)
	if _, have, ok := decodeVary(value); !ok || !slices.Equal(have, names) {
		if isNewer(value) {
			return
		}
		if len(names) > 0 {
			s.Store.Set(key, encodeVary(answered, names))
		}
	}
	if len(names) > 0 {
		if value, _ = s.Store.Get(variant); isNewer(value) {
			return
		}
	}
	s.Store.Set(variant, response)
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
