package admission

import (
	"net/http"

	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/option"
	"github.com/lullgo/lull/internal/response"
	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/lullhttp"
)

// Middleware puts admission control before an http.Handler. Make one with
// NewMiddleware; one may stand before several handlers, which then share the limit.
type Middleware struct {
	gate     *Gate
	priority func(*http.Request) Priority // nil: the header's, of requests that are trusted
	trusted  func(*http.Request) bool     // nil: WithTrust was not used
	skip     func(*http.Request) bool
	result   func(status int) WorkResult
	status   int
}

// A MiddlewareOption wires a Middleware. It returns an error if its argument is invalid.
type MiddlewareOption func(*Middleware) error

// WithTrust makes the middleware believe the headers of a request only if trusted returns
// true: its priority (HeaderCriticality), which attempt it is, whether it is a hedge, and
// how long its client waits. Other requests are first attempts that are Critical. trusted
// must be safe for concurrent use. Without WithTrust, HeaderCriticality is ignored, because a false one harms
// others; the other three are believed. docs/servers.md, under "Whom to believe", has the reasons.
// lullhttp.TrustNobody, TrustEverybody and TrustMutualTLS are such functions.
func WithTrust(trusted func(*http.Request) bool) MiddlewareOption {
	return option.If(trusted != nil, func(m *Middleware) { m.trusted = trusted },
		"admission: WithTrust(nil): want a function; lullhttp.TrustNobody is one")
}

// WithPriority sets the function that returns a request's priority. Its header
// Lull-Criticality is ignored then. priority must be safe for concurrent use.
func WithPriority(priority func(*http.Request) Priority) MiddlewareOption {
	return option.If(priority != nil, func(m *Middleware) { m.priority = priority }, "admission: WithPriority(nil): want a function")
}

// WithSkip lets requests pass, uncounted, for which skip returns true. Use it for health
// checks, and for requests that are long by design (event streams, long polls): they
// would hold a place all the time.
func WithSkip(skip func(*http.Request) bool) MiddlewareOption {
	return option.Set(func(m *Middleware) { m.skip = skip })
}

// WithStatus sets the status of refusals, 503 or 429. The default is 503: the server is
// overloaded, and 429 would mean that the client sends too many requests (RFC 6585).
// Besides, many clients repeat a 429 whatever its other headers are.
func WithStatus(status int) MiddlewareOption {
	return option.If(status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests,
		func(m *Middleware) { m.status = status }, "admission: WithStatus(%d): want 503 or 429", status)
}

// WithResult sets the function that returns what a status means for the adaptive limit.
// By default a status below 500 is Done, and the rest Failed.
func WithResult(result func(status int) WorkResult) MiddlewareOption {
	return option.If(result != nil, func(m *Middleware) { m.result = result }, "admission: WithResult(nil): want a function")
}

// NewMiddleware returns a middleware with the configuration c.
func NewMiddleware(c Config, opts ...MiddlewareOption) (*Middleware, error) {
	a, err := New(c)
	if err != nil {
		return nil, err
	}
	return NewGate(a).Middleware(opts...)
}

// Middleware returns a middleware at this gate. Use it for a Controller that has options,
// or that is shared with gRPC.
func (g *Gate) Middleware(opts ...MiddlewareOption) (*Middleware, error) {
	m := &Middleware{
		gate:   g,
		result: func(status int) WorkResult { return choice.Either(status >= 500, Failed, Done) },
		status: http.StatusServiceUnavailable,
	}
	if err := option.Apply(m, opts); err != nil {
		return nil, err
	}
	return m, nil
}

// Gate returns the gate at which requests wait. It has the Snapshot.
func (m *Middleware) Gate() *Gate { return m.gate }

// Handler returns next behind admission control.
//
// The request's context ends when its caller goes while the request waits. net/http ends
// it only if the request's body was read, or if there is none. A connection that next
// takes over (Hijack) gives its place back at that moment.
func (m *Middleware) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m.skip != nil && m.skip(r) {
			next.ServeHTTP(w, r)
			return
		}
		q, believed := m.request(r)
		if believed {
			w.Header()[lullhttp.AnnounceHeader] = announced
		}
		pass, d := m.gate.Enter(r.Context(), q)
		if d.Outcome != Admitted {
			m.refuse(w, d)
			return
		}
		out := response.New(w, func(status int) {
			if status == 0 { // a connection that was taken over may stay open for hours
				pass.Depart(Unmeasured)
			}
		})
		result := Failed // if next panics
		defer func() { pass.Depart(result) }()
		next.ServeHTTP(out.ForHandler(), r)
		// If the caller has gone, nobody got the answer: it stays Failed.
		if r.Context().Err() == nil {
			result = m.result(out.FinalStatus())
		}
	})
}

// announced is the value of lullhttp.AnnounceHeader.
var announced = []string{"1"}

// request converts r for the gate, and reports whether its headers are believed.
func (m *Middleware) request(r *http.Request) (q Request, believed bool) {
	trusted := m.trusted != nil && m.trusted(r)
	switch {
	case m.priority != nil:
		q.Priority = m.priority(r)
	case trusted:
		q.Priority = PriorityOf(r.Header)
	}
	if m.trusted != nil && !trusted {
		return q, false
	}
	q.Attempt, q.Hedge = lullhttp.ParseAttempt(r.Header), lullhttp.ParseHedge(r.Header)
	if d, ok := lullhttp.ParseTimeout(r.Header); ok {
		q.Deadline = saturating.Add(m.gate.Now(), d)
	}
	return q, true
}

// refuse answers a request that is not to be worked on.
func (m *Middleware) refuse(w http.ResponseWriter, d Decision) {
	d.SetHeader(w.Header())
	p := refusalBody{Type: "about:blank", Title: http.StatusText(m.status), RetryAfter: max(d.RetryAfter.Milliseconds(), 1), Status: m.status, Reason: d.Reason.String()}
	if d.DontRetry {
		p.Type, p.Title, p.RetryAfter = lullhttp.ProblemOverloaded, "overloaded; don't retry", 0
	}
	response.Problem(w, m.status, p)
}

// refusalBody is the body of a refusal (RFC 9457).
type refusalBody struct {
	Type       string `json:"type"`
	Title      string `json:"title"`
	RetryAfter int64  `json:"retry_after_ms,omitempty"` // zero: the caller should not come back
	Status     int    `json:"status"`
	Reason     string `json:"reason"`
}

// SetHeader sets what the caller of a refused request should do in h: Retry-After, in
// whole seconds, rounded up; and X-Should-Retry: false if it should not come back.
func (d Decision) SetHeader(h http.Header) {
	if d.Outcome != Refused {
		return
	}
	response.SetRetryAfter(h, max(d.RetryAfter, 1))
	if d.DontRetry {
		h.Set("X-Should-Retry", "false")
	}
}
