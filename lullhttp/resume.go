package lullhttp

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/driver/inbound"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/option"
)

// WithResume continues a download whose body breaks off, so that its reader notices only a pause.
// The request for the rest has Range and If-Range. It is an attempt like any other: its number counts
// on, the policy decides about it, and the budget pays for it, also if it succeeds. No attempt
// follows after Policy.Deadline, which counts from the beginning of the call. For downloads that
// take longer set it to lull.NoTimeout, and a deadline in the request's context.
//
// The answer to a GET is continued if it is a 200 with a strong ETag and without trailers, if the
// request has no Range of its own, and if http.Transport has not decompressed the body. The answer
// to the request for the rest must be a 206 with the same ETag and Content-Encoding, and with all
// that is missing, by its Content-Range. No byte is read twice, and none is left out. Otherwise the
// Read returns an error that wraps both the one that broke the body off and what ended the call.
//
// The breaker learns the end of a call from its header, and of a continued one once more. Observers
// get the events of the rest as those of another call. A continued download costs one allocation,
// even if it does not break off. A body is not read concurrently, but may be closed at any time.
func WithResume() Option {
	return option.Set(func(t *Transport) { t.resumes = true })
}

// roundTripResuming is RoundTrip for WithResume.
func (t *Transport) roundTripResuming(req *http.Request, fallback bool) (*http.Response, error) {
	d := t.Dependency(req)
	began := d.Now()
	resp, err := t.makeCall(req, fallback)
	if err == nil && canResume(req, resp) {
		b := &resumingBody{t: t, dependency: d, req: req, etag: strongETag(resp.Header), encoding: resp.Header.Get("Content-Encoding"),
			made: OutcomeOf(resp).Attempts, length: resp.ContentLength, body: resp.Body}
		if limit := d.Policy().Deadline; limit > 0 {
			b.deadline = began + limit
		}
		resp.Body = b
	}
	return resp, err
}

func canResume(req *http.Request, resp *http.Response) bool {
	_, partial := req.Header["Range"]
	return !partial && (req.Method == "" || req.Method == http.MethodGet) && resp.StatusCode == http.StatusOK &&
		!resp.Uncompressed && len(resp.Trailer) == 0 && !bodiless(resp) && strongETag(resp.Header) != "" &&
		!strings.EqualFold(resp.Header.Get("Accept-Ranges"), "none")
}

// A resumingBody is the body of a response, in as many parts as it takes.
type resumingBody struct {
	t          *Transport
	dependency *lull.Dependency
	req        *http.Request // the caller's
	deadline   time.Duration // of the call, on the clock of the dependency; 0: none
	etag       string
	encoding   string

	// Used by the reader alone.
	made   int   // attempts
	next   int64 // the position of the next byte
	length int64 // of the whole; -1: unknown
	broken error // what broke the part off
	failed error // what Read returns from now on

	mu     sync.Mutex // guards what follows
	body   io.ReadCloser
	cancel context.CancelFunc // ends the attempt that body is of; nil: it is the caller's response
	closed bool
}

func (b *resumingBody) Read(p []byte) (int, error) {
	for b.failed == nil {
		if b.broken == nil {
			n, err := b.readPart(p)
			if n > 0 || err == nil {
				return n, nil
			}
		}
		if b.failed == nil {
			b.failed = b.resume()
		}
	}
	return 0, b.failed
}

// readPart reads from the part under way. Its error is kept in broken, or in failed if nothing can
// follow.
func (b *resumingBody) readPart(p []byte) (int, error) {
	b.mu.Lock()
	body := b.body
	b.mu.Unlock()
	n, err := body.Read(p)
	if b.length >= 0 && int64(n) > b.length-b.next {
		n, b.failed = int(b.length-b.next), errTooLong
	}
	b.next += int64(n)
	switch {
	case err == nil || b.failed != nil:
	case b.length >= 0 && b.next == b.length, b.length < 0 && err == io.EOF:
		b.failed = io.EOF
	case err == io.EOF:
		b.broken = io.ErrUnexpectedEOF
	default:
		b.broken = err
	}
	return n, err
}

var errTooLong = fmt.Errorf("lullhttp: the rest of the body is longer than its Content-Range: %w", io.ErrUnexpectedEOF)

// resume makes the attempts for the rest of the body. It returns the error for the reader, or nil.
func (b *resumingBody) resume() error {
	ctx, cancel := context.WithCancel(b.req.Context())
	if !b.endPart(ctx, cancel) {
		cancel()
		return b.broken
	}
	t := b.t
	req := b.req.WithContext(ctx)
	if req.Header = req.Header.Clone(); req.Header == nil {
		req.Header = make(http.Header, 2)
	}
	req.Header["Range"] = []string{"bytes=" + strconv.FormatInt(b.next, 10) + "-"}
	req.Header["If-Range"] = []string{b.etag}
	spec := engine.Spec{Deadline: b.deadline}
	t.fillSpec(&spec, req)
	x := exchange{t: t, req: req, attempts: b.made, inboundRetries: inbound.From(ctx).Attempt() - 1, err: b.broken}
	if len(t.endpoints) > 0 && t.endpoints[hostOf(req)] != nil {
		x.picks = &endpointPicks{rand: b.dependency.Rand()}
	}
	v := t.classifyError(b.broken, classifyError)
	v.NeverSent = false
	r := b.dependency.Continue(ctx, spec, b.made, v, x.attempt, x.discard, x.lastError)
	b.made = r.Attempts
	if x.resp == nil && r.Reason == engine.Success {
		return &resumeError{b.broken, x.err} // for the classifier this error is an answer
	}
	if x.resp == nil || r.Reason != engine.Success {
		left := drainTime
		if b.deadline > 0 {
			left = b.deadline - b.dependency.Now()
		}
		x.discard(drainLimit(ctx, left))
		return &resumeError{b.broken, b.dependency.Error(spec.Operation, r, x.err)}
	}
	part := x.bindContext(x.resp).Body
	if err := b.check(x.resp); err != nil {
		part.Close()
		return &resumeError{b.broken, err}
	}
	b.broken = nil
	b.mu.Lock()
	b.body = part
	closed := b.closed
	b.mu.Unlock()
	if closed {
		part.Close()
	}
	return nil
}

// endPart closes the part that broke off, and takes the context of the next one, which Close
// cancels. It returns false if the body is closed or the caller has gone.
func (b *resumingBody) endPart(next context.Context, cancel context.CancelFunc) bool {
	b.mu.Lock()
	body, last := b.body, b.cancel
	ok := !b.closed && next.Err() == nil
	if ok {
		b.cancel = cancel
	}
	b.mu.Unlock()
	if !ok {
		return false
	}
	body.Close()
	if last != nil {
		last()
	}
	return true
}

// check returns why resp is not the rest of the body, or nil.
func (b *resumingBody) check(resp *http.Response) error {
	r, ok := contentRange{}, false
	if v := resp.Header["Content-Range"]; len(v) == 1 {
		r, ok = parseContentRange(v[0])
	}
	switch {
	case resp.StatusCode != http.StatusPartialContent:
		return fmt.Errorf("lullhttp: the request for the rest was answered with %d, not 206: the resource has changed, or the server has no ranges", resp.StatusCode)
	case strongETag(resp.Header) != b.etag:
		return fmt.Errorf("lullhttp: the rest has the ETag %q, not %q", resp.Header.Get("Etag"), b.etag)
	case strings.HasPrefix(strings.ToLower(resp.Header.Get("Content-Type")), "multipart/byteranges"):
		return fmt.Errorf("lullhttp: the rest comes in several parts, and one was asked for")
	case resp.Uncompressed || resp.Header.Get("Content-Encoding") != b.encoding:
		return fmt.Errorf("lullhttp: the rest has another Content-Encoding")
	case !ok || r.first != b.next || r.complete != r.last+1 || b.length >= 0 && r.complete != b.length,
		resp.ContentLength >= 0 && resp.ContentLength != r.last-r.first+1:
		return fmt.Errorf("lullhttp: the rest has the Content-Range %q and %d bytes; it should begin at %d and end with the body", resp.Header.Values("Content-Range"), resp.ContentLength, b.next)
	}
	b.length = r.complete
	return nil
}

// Close ends the part, also while it is read or waited for.
func (b *resumingBody) Close() error {
	b.mu.Lock()
	body, cancel := b.body, b.cancel
	b.closed = true
	b.mu.Unlock()
	err := body.Close()
	if cancel != nil {
		cancel()
	}
	return err
}

// resumeError is the error of a body that broke off and was not continued.
type resumeError struct{ broken, why error }

func (e *resumeError) Error() string   { return e.broken.Error() + "; not resumed: " + e.why.Error() }
func (e *resumeError) Unwrap() []error { return []error{e.broken, e.why} }

// contentRange is the value of a Content-Range field of a 206 (RFC 9110, 14.4). Both positions are
// inclusive, in bytes.
type contentRange struct {
	first, last int64
	complete    int64 // the length of the whole; -1: unknown ("*")
}

// parseContentRange returns false for anything but a range of bytes that is possible.
func parseContentRange(s string) (contentRange, bool) {
	unit, rest, _ := strings.Cut(s, " ")
	positions, complete, _ := strings.Cut(rest, "/")
	first, last, _ := strings.Cut(positions, "-")
	r := contentRange{complete: -1}
	var ok [3]bool
	r.first, ok[0] = parsePosition(first)
	r.last, ok[1] = parsePosition(last)
	if ok[2] = complete == "*"; !ok[2] {
		r.complete, ok[2] = parsePosition(complete)
	}
	if !strings.EqualFold(unit, "bytes") || ok != [3]bool{true, true, true} || r.last < r.first || r.complete >= 0 && r.last >= r.complete {
		return contentRange{}, false
	}
	return r, true
}

// parsePosition reads 1*DIGIT below the largest int64, so that the next position is one, too.
func parsePosition(s string) (int64, bool) {
	if strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n < math.MaxInt64
}

// strongETag returns the entity tag of a response if it has exactly one, and that is strong and
// well-formed (RFC 9110, 8.8.3); otherwise "". Only a strong one proves that two bodies are the
// same byte by byte.
func strongETag(h http.Header) string {
	v := h["Etag"]
	if len(v) != 1 || len(v[0]) < 2 || v[0][0] != '"' || v[0][len(v[0])-1] != '"' {
		return ""
	}
	for _, c := range []byte(v[0][1 : len(v[0])-1]) {
		if c <= ' ' || c == '"' || c == 0x7f {
			return ""
		}
	}
	return v[0]
}
