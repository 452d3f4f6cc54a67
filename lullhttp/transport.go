package lullhttp

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/driver"
	"github.com/lullgo/lull/driver/inbound"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/attempt"
	"github.com/lullgo/lull/internal/option"
	"github.com/lullgo/lull/internal/recent"
)

// A Transport is an http.RoundTripper that makes each request as a call under a [lull.Policy], with
// one [lull.Dependency] for each host. Make one with New. It may be used concurrently. Share it: it
// learns about a host from every request.
type Transport struct {
	base            http.RoundTripper
	registry        *lull.Registry
	pickDependency  func(*http.Request) *lull.Dependency
	ownDependencies patternTable[*lull.Dependency] // of WithPolicies
	usualTimeout    formattedTimeout               // of the policy's AttemptTimeout
	// announcers are the hosts that have sent AnnounceHeader. Nil: every host is sent the time.
	announcers *recent.Cache[struct{}]
	givenUp    givenUp
	netHTTP    bool // base is an *http.Transport
	limited    bool // base has MaxConnsPerHost
	options
}

// New returns a Transport under policy p.
func New(p lull.Policy, opts ...Option) (*Transport, error) {
	t := &Transport{options: defaultOptions()}
	if err := option.Apply(t, opts); err != nil {
		return nil, err
	}
	if t.base == nil {
		t.base = http.DefaultTransport
	}
	if base, ok := t.base.(*http.Transport); ok {
		t.netHTTP, t.limited = true, base.MaxConnsPerHost > 0
	}
	var err error
	if t.registry, err = lull.NewRegistry(p, t.hosts, append(t.wiring, lull.ClassifiedBy("lullhttp.WithClassifier"))...); err != nil {
		return nil, err
	}
	if err = t.makeDependencies(); err != nil {
		return nil, err
	}
	if !t.timeoutAlways {
		t.announcers = recent.New(cmp.Or(t.hosts, 1024), func(string) struct{} { return struct{}{} })
	}
	usual := p.WithDefaults().AttemptTimeout
	t.usualTimeout = formattedTimeout{usual, FormatTimeout(usual)}
	return t, nil
}

// NewClient returns an http.Client on a Transport under policy p. It also sets
// [WithBodyIdleTimeout] to DefaultBodyIdleTimeout.
func NewClient(p lull.Policy, opts ...Option) (*http.Client, error) {
	t, err := New(p, append([]Option{WithBodyIdleTimeout(DefaultBodyIdleTimeout)}, opts...)...)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: t}, nil
}

// errUnmade is for a Transport that New has not made.
var errUnmade = errors.New("lullhttp: a nil or zero Transport is used: make it with lullhttp.New, and look at its error")

// WrappedRoundTripper returns the base transport, for code that looks for one beneath it, such as
// k8s.io/client-go.
func (t *Transport) WrappedRoundTripper() http.RoundTripper { return t.base }

// CloseIdleConnections calls CloseIdleConnections of the base transport. A Transport never calls
// that by itself, since others may share the pool.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip makes the request as often as the policy allows. If the last attempt had a response,
// RoundTrip returns it, whatever its status, with its body unread. [OutcomeOf] returns how many
// attempts were made and why they stopped. Otherwise the error is a [*lull.Error]. RoundTrip does
// not change the request.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req == nil || req.URL == nil {
		if req != nil && req.Body != nil {
			req.Body.Close()
		}
		return nil, errors.New("lullhttp: a request needs a URL")
	}
	if t == nil || t.registry == nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, errUnmade
	}
	if t.stale != nil {
		return t.stale.roundTrip(t, req)
	}
	if t.resumes {
		return t.roundTripResuming(req, false)
	}
	return t.makeCall(req, false)
}

// makeCall is RoundTrip without WithStale and WithResume. fallback: an older response may be served if
// the call fails.
func (t *Transport) makeCall(req *http.Request, fallback bool) (*http.Response, error) {
	d := t.Dependency(req)
	x := exchange{t: t, req: req, inboundRetries: inbound.From(req.Context()).Attempt() - 1}
	var spec engine.Spec
	mayRace, keyless := t.fillSpec(&spec, req)
	spec.Fallback = fallback
	ctx := req.Context()
	if spec.ForRetry || t.givenUp.hasRecent.Load() {
		if above := t.layerAbove(req, spec.ForRetry); above != nil {
			ctx = attempt.Under(ctx, above)
		}
	}
	if keyless {
		x.key = t.newKey(req)
		spec.NotIdempotent = x.key == ""
		if spec.NotIdempotent && t.keysRequired {
			return nil, refuseKeyless(req)
		}
	}
	if len(t.endpoints) > 0 && t.endpoints[hostOf(req)] != nil {
		x.picks = &endpointPicks{rand: d.Rand()}
	}
	x.needsProgress = spec.NotIdempotent
	if spec.NotReplayable {
		return x.callOnce(ctx, d, spec)
	}
	plan := d.Plan()
	if mayRace && plan.Hedges() {
		race := &race{first: x}
		return race.drive(ctx, d, spec)
	}
	if plan.AttemptTimeout() > 0 && !hasBody(req) {
		ctx = x.reserveContext(ctx)
	}
	r := d.Drive(ctx, spec, x.attempt, x.discard, x.lastError)
	if r.Attempts == 1 && r.Reason == engine.Success && x.resp != nil {
		return x.bindContext(x.resp), nil // as endCall does; this path is hot
	}
	return x.endCall(d, spec, r)
}

// callOnce makes the call of a request whose body can be read once, unless WithReplay can send it
// again.
func (x *exchange) callOnce(ctx context.Context, d *lull.Dependency, spec engine.Spec) (*http.Response, error) {
	if x.t.replays {
		x.replay = x.t.replayOf(x.req)
	}
	defer x.endBody()
	if x.replay != nil {
		spec.NotReplayable = false
		ctx = new(attempt.Context).For(ctx) // for driver.NotReplayable
		return x.endCall(d, spec, d.Drive(ctx, spec, x.attemptReplayed, x.discard, x.lastError))
	}
	x.bodyOnce, x.needsProgress = true, true
	return x.endCall(d, spec, d.Drive(ctx, spec, x.attempt, x.discard, x.lastError))
}

// attemptReplayed is attempt for a body of WithReplay.
func (x *exchange) attemptReplayed(ctx context.Context) lull.Verdict {
	v := x.attempt(ctx)
	if v.Kind != lull.KindSuccess && !x.replay.attemptFailed() {
		driver.NotReplayable(ctx)
	}
	return v
}

// endCall records the end of a call with the result r, and returns what RoundTrip returns.
func (x *exchange) endCall(d *lull.Dependency, spec engine.Spec, r engine.Result) (*http.Response, error) {
	if r.Attempts > 0 && r.Reason.GaveUp() {
		x.t.givenUp.record(x.req)
	}
	return x.callResult(d, spec, r)
}

// callResult returns what RoundTrip returns for a call with the result r that ended with the
// attempt of x.
func (x *exchange) callResult(d *lull.Dependency, spec engine.Spec, r engine.Result) (*http.Response, error) {
	if r.Attempts == 0 {
		if x.req.Body != nil {
			x.req.Body.Close() // RoundTrip must, and no attempt did
		}
		return nil, x.failure(d.Error(spec.Operation, r, nil))
	}
	if x.resp == nil {
		if r.Reason == engine.Success {
			return nil, x.err // for the classifier this error is an answer
		}
		return nil, x.failure(d.Error(spec.Operation, r, x.err))
	}
	if r.Attempts > 1 || r.Reason != engine.Success {
		return x.responseWithOutcome(r), nil
	}
	return x.bindContext(x.resp), nil
}

// failure returns err without the host and the method in its text: http.Client adds both. Names
// that the user has given stay.
func (x *exchange) failure(err error) error {
	text := strings.TrimPrefix(err.Error(), x.req.URL.Host+": ")
	return &failure{err, strings.TrimPrefix(text, x.req.Method+": ")}
}

// failure is the error that RoundTrip returns.
type failure struct {
	call error // *lull.Error
	text string
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.call }

// Timeout is for url.Error.
func (f *failure) Timeout() bool { return f.call.(*lull.Error).Timeout() }

// operationOf returns the name of the operation in errors and events.
func (t *Transport) operationOf(req *http.Request) string {
	switch {
	case t.operation != nil:
		return t.operation(req)
	case req.Method == "":
		return http.MethodGet
	}
	return req.Method
}

// An exchange is one call in flight, or one of its attempts if they may run side by side.
type exchange struct {
	t              *Transport
	req            *http.Request // the caller's own, or that of copy
	key            string        // Idempotency-Key made for this call, if any
	attempts       int
	inboundRetries int // retries of the request that a server makes this call for
	resp           *http.Response
	err            error
	cookies        []string // Set-Cookie of the answers that were discarded

	// Only of an attempt that may run beside others.
	permit *bodyPermit
	copy   *requestCopy // not of the first

	replay        *replay // the request's body, if it has no GetBody and can be sent again
	bodyOnce      bool    // the body can be sent again only while nothing was read of it
	needsProgress bool    // another attempt depends on whether the request was sent

	// The endpoints that its attempts have used, if the host has endpoints.
	picks *endpointPicks

	// Only of an attempt that has a context of its own. Before the first attempt it is the memory
	// that reserveContext has made, or nil.
	out *outgoing
}

// outgoing is a copy of the request, with the wrapper of the response's body: both in one
// allocation.
type outgoing struct {
	req          http.Request
	progress     requestProgress // the context of req
	responseBody io.ReadCloser   // the response's body
}

// outgoingWithContext is outgoing with the attempt's context.
type outgoingWithContext struct {
	outgoing
	own attempt.Context
}

// outgoingWithBody is outgoing for a request whose body is wrapped as well.
type outgoingWithBody struct {
	outgoing
	requestBody outgoingBody
}

// reserveContext makes the request of a first attempt, and the context of its own that it will
// need, in one allocation. It returns the context for Drive.
func (x *exchange) reserveContext(caller context.Context) context.Context {
	if _, bounded := caller.Deadline(); bounded {
		return caller // it may be the nearer one
	}
	both := new(outgoingWithContext)
	x.out = &both.outgoing
	return both.own.For(caller)
}

// attempt makes one attempt.
func (x *exchange) attempt(ctx context.Context) lull.Verdict {
	x.attempts++
	if x.attempts > 1 {
		if v, left := x.callerHasLeft(); left {
			return v
		}
	}
	out, err := x.outgoingRequest(ctx)
	if err != nil {
		x.err = err
		return lull.Verdict{Kind: engine.KindCallerSide, Code: "get_body", NeverSent: true}
	}
	if x.picks != nil {
		return x.sendToEndpoint(ctx, out)
	}
	return x.send(ctx, out)
}

// sendToEndpoint is send for a host with endpoints.
func (x *exchange) sendToEndpoint(ctx context.Context, out *http.Request) lull.Verdict {
	at := x.picks.redirect(x.t, out)
	v := lull.Verdict{Kind: engine.KindCanceled} // should it panic
	defer func() { at.report(ctx, x.req.Context(), x.resp, v) }()
	v = x.send(ctx, out)
	return v
}

// send sends the request of an attempt, and returns its verdict.
func (x *exchange) send(ctx context.Context, out *http.Request) lull.Verdict {
	if x.attempts > 1 && x.t.beforeRetry != nil {
		if v, ok := x.runBeforeRetry(out); !ok {
			return v
		}
	}
	resp, err := x.t.base.RoundTrip(out)
	if err != nil || resp == nil || resp.Body == nil {
		resp, err = corrected(out, resp, err)
	}
	if err != nil {
		x.err = err
		if v, left := x.callerHasLeft(); left {
			return v
		}
		return x.errorVerdict(ctx, err)
	}
	if x.out != nil && x.t.netHTTP {
		x.out.progress.recycleTracer()
	}
	x.resp = resp
	if x.t.announcers != nil && len(resp.Header[AnnounceHeader]) > 0 {
		x.t.announcers.Get(x.req.URL.Host)
	}
	if x.copy != nil {
		resp.Request = out // the caller's may be in use again
	} else if resp.Request != x.req {
		resp.Request = x.req
	}
	v := lull.Verdict{Kind: lull.KindSuccess}
	if resp.StatusCode >= 400 || x.t.classifier != nil || isGRPC(resp) {
		// It may read the beginning of the body, so the attempt's timeout still holds.
		v = x.responseVerdict(ctx, resp)
	}
	// Otherwise the attempt has no context of its own, or nothing is left to do in it.
	if x.out != nil && !(bodiless(resp) && x.out.progress.bodyState.Load()&bodySending == 0) {
		x.out.progress.detached = driver.Detach(ctx) != (driver.Detached{})
		if v.Kind == lull.KindSuccess && !x.out.progress.detached && ctx.Err() == context.DeadlineExceeded && x.req.Context().Err() == nil {
			// Its time ended just as the header came, so the body cannot be read.
			resp.Body.Close()
			x.resp, x.err = nil, context.DeadlineExceeded
			return x.errorVerdict(ctx, x.err)
		}
	}
	return v
}

// corrected returns what the base transport should have returned for out by the rules of
// http.Client: a response with a body, or an error.
func corrected(out *http.Request, resp *http.Response, err error) (*http.Response, error) {
	switch {
	case err != nil:
		if resp != nil && resp.Body != nil {
			resp.Body.Close()
		}
		return nil, err
	case resp == nil:
		return nil, errors.New("lullhttp: the base transport returned neither response nor error")
	case resp.ContentLength > 0 && out.Method != http.MethodHead:
		return nil, fmt.Errorf("lullhttp: the base transport returned a response of %d bytes without a Body", resp.ContentLength)
	}
	resp.Body = http.NoBody
	return resp, nil
}

// callerHasLeft reports whether the caller has closed Request.Cancel, and returns the verdict for
// that. http.Client closes it when its Timeout is over. That is also the deadline of the context,
// whose own timer may be about to fire.
func (x *exchange) callerHasLeft() (lull.Verdict, bool) {
	select {
	case <-x.req.Cancel: //lint:ignore SA1019 http.Client closes it
	default:
		return lull.Verdict{}, false
	}
	if until, bounded := x.req.Context().Deadline(); bounded && !time.Now().Before(until) {
		x.err = context.DeadlineExceeded
		return lull.Verdict{Kind: lull.KindTransient, Code: engine.CodeTimeout}, true
	}
	return lull.Verdict{Kind: engine.KindCanceled, Code: "canceled"}, true
}

// outgoingRequest returns the request of an attempt. It is the caller's own for a first attempt
// that adds nothing to it, else a copy.
func (x *exchange) outgoingRequest(ctx context.Context) (*http.Request, error) {
	req := x.req
	t, number, left, hedge := x.t, "", "", ""
	if n := x.attempts + x.inboundRetries; n > 1 && t.attemptHeader != "" {
		number = strconv.Itoa(n)
	}
	if t.timeoutHeader != "" && (t.announcers == nil || t.announcers.Has(req.URL.Host)) {
		bound := ctx
		if isUpload(req) {
			bound = req.Context() // AttemptTimeout does not run while it makes progress
		}
		if until, bounded := bound.Deadline(); bounded {
			left = t.formatTimeout(time.Until(until))
		}
	}
	if number != "" {
		if a, _ := lull.AttemptFrom(ctx); a.Hedge {
			hedge = "?1"
		}
	}
	adds := number != "" || left != "" || x.key != ""
	own := ctx != req.Context()
	wraps := hasBody(req) && (own || !inMemory(req))
	if !adds && x.picks == nil && x.replay == nil && !own && !wraps && !x.needsProgress && !t.limited {
		x.out = nil
		return req, nil
	}
	var wrapped *outgoingBody
	switch {
	case wraps:
		both := new(outgoingWithBody)
		x.out, wrapped = &both.outgoing, &both.requestBody
	case x.out == nil || x.attempts > 1:
		x.out = new(outgoing)
	}
	out := &x.out.req
	x.out.progress.Context = ctx
	if t.limited {
		x.out.progress.Context = newDialTrace(ctx)
	}
	*out = *req.WithContext(&x.out.progress)
	if x.copy != nil {
		out.Header = x.copy.newHeader()
	} else if adds {
		out.Header = req.Header.Clone()
	}
	if adds {
		if out.Header == nil {
			out.Header = make(http.Header, 3)
		}
		values := [...]string{number, hedge, left, x.key}
		for i, key := range [...]string{t.attemptHeader, DefaultHedgeHeader, t.timeoutHeader, headerIdempotencyKey} {
			if values[i] != "" {
				out.Header[key] = []string{values[i]}
			}
		}
	}
	if x.replay != nil {
		again, attempt := x.replay, x.attempts
		body, err := again.bodyFor(ctx, attempt)
		if err != nil {
			return nil, fmt.Errorf("lullhttp: body for attempt %d: %w", attempt, err)
		}
		out.Body = body
		// A base transport may repeat the request by itself, as http.Transport does after a refused
		// stream.
		out.GetBody = func() (io.ReadCloser, error) { return again.bodyFor(ctx, attempt) }
	} else if x.attempts > 1 && req.GetBody != nil && hasBody(req) {
		body, err := bodyOf(req.GetBody, x.permit)
		if err != nil {
			return nil, fmt.Errorf("lullhttp: body for attempt %d: %w", x.attempts, err)
		}
		out.Body = body
	}
	if wrapped != nil {
		x.out.wrapBody(ctx, wrapped, x.bodyOnce, req.GetBody == nil, x.permit)
	}
	return out, nil
}

// discard drains and closes a response that will not be returned, so that its connection can be
// used again.
func (x *exchange) discard(within time.Duration) {
	if x.resp == nil {
		return
	}
	x.err = x.lastError()
	x.cookies = append(x.cookies, x.setCookies()...)
	drain(x.resp.Body, within, x.detached())
	x.detached().Release()
	x.resp = nil
}

// detached returns the context of the last attempt, or zero if that ran in the caller's own.
func (x *exchange) detached() driver.Detached {
	if x.out == nil {
		return driver.Detached{}
	}
	return x.out.detached()
}

func (out *outgoing) detached() driver.Detached {
	if !out.progress.detached {
		return driver.Detached{}
	}
	return driver.Detach(out.progress.Context)
}

// lastError returns the error of the last attempt for observers, and for the breaker, which keeps it.
// The caller may change the response's header.
func (x *exchange) lastError() error {
	if x.resp != nil {
		return &StatusError{StatusCode: x.resp.StatusCode, Header: headerOf(x.resp)}
	}
	return x.err
}

// setCookies returns the cookies that the last response sets.
func (x *exchange) setCookies() []string {
	if x.resp == nil {
		return nil
	}
	return x.resp.Header["Set-Cookie"]
}

// responseWithOutcome returns the response of a call that was repeated or has failed. It is a copy:
// the base transport may return its response again for another call.
func (x *exchange) responseWithOutcome(r engine.Result) *http.Response {
	resp := new(*x.resp)
	if len(x.cookies) > 0 {
		// RFC 6265, 3: cookies of failures count as well. The last response's own come last, and win.
		if resp.Header = resp.Header.Clone(); resp.Header == nil {
			resp.Header = make(http.Header, 1)
		}
		resp.Header["Set-Cookie"] = append(x.cookies, resp.Header["Set-Cookie"]...)
	}
	if resp.Trailer == nil && !bodiless(resp) {
		if _, upgraded := resp.Body.(io.Writer); !upgraded {
			resp.Body = &trailedBody{resp.Body, x.resp, resp}
		}
	}
	x.bindContext(resp)
	Outcome{Attempts: r.Attempts, Reason: r.Reason, Verdict: r.Verdict, Elapsed: r.Elapsed, OutcomeUnknown: r.OutcomeUnknown}.record(resp)
	return resp
}

// bindContext gives resp a body whose end ends the attempt's context.
func (x *exchange) bindContext(resp *http.Response) *http.Response {
	if x.out != nil && x.out.progress.detached {
		x.out.bindContext(resp)
	}
	if x.t.bodyIdle > 0 {
		limitIdle(resp, x.t.bodyIdle, x.detached())
	}
	return resp
}

// A StatusError stands for a response that was discarded. It is the last error of a call that ended
// while it waited for another attempt. A function for http.Transport.OnProxyConnectResponse can
// return one: a Transport then obeys the status and the Retry-After of a proxy that refuses to
// connect.
type StatusError struct {
	StatusCode int
	Header     http.Header
}

func (e *StatusError) Error() string {
	text := "server answered " + strconv.Itoa(e.StatusCode) + " " + http.StatusText(e.StatusCode)
	if code := e.Header[hdrGRPCStatus]; len(code) > 0 {
		text += ", grpc-status " + code[0]
	}
	return text
}

// requestIDs are the headers in which servers send the ID of a request.
var requestIDs = [...]string{"X-Request-Id", "Request-Id", "X-Amzn-Requestid", "X-Amz-Request-Id", "X-Ms-Request-Id", "X-Correlation-Id", "Cf-Ray"}

// RequestID returns the ID by which the server knows the request, from X-Request-Id or a header
// like it; empty if there is none. event.NewLog logs it.
func (e *StatusError) RequestID() string {
	for _, name := range requestIDs {
		if id := e.Header.Get(name); id != "" {
			return id
		}
	}
	return ""
}

// uuid returns a random UUID, version 4.
func uuid() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
