package admission

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/lullgo/lull/internal/response"
	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/lullhttp"
)

// Middleware puts admission control before an http.Handler. Make one with
// NewMiddleware; one may stand before several handlers, which then share the limit.
type Middleware struct {
	gate     *Gate
	priority func(*http.Request) Priority // nil: the header's, of requests that are trusted
	trusted  func(*http.Request) bool     // nil: what harms nobody but the liar is believed
	skip     func(*http.Request) bool
	result   func(status int) Result
	status   int
}

// A MiddlewareOption wires a Middleware. It fails if what it was given makes no sense.
type MiddlewareOption func(*Middleware) error

// WithTrust has the middleware believe what a request says of itself only if trusted
// returns true: how much it matters (HeaderCriticality), which attempt it is, whether it
// is a hedge, and how long its client waits. The others are first attempts that are
// Critical. It must be safe for concurrent use. lullhttp.TrustNobody, TrustEverybody and
// TrustMutualTLS are such functions; lullhttp.NewHandler and lullgrpc have an option of the
// same name.
//
// Without it HeaderCriticality is believed from nobody, since it takes from others: half
// of the clients, forging it, left 4 of 939 requests to the rest. The other three are
// believed from anybody. They make a request wait behind others, or be refused, and
// without them retries and hedges could not be told from first attempts. One thing they
// take from others: who calls first attempts retries uses up Config.RetryRatio. At an edge
// use lullhttp.TrustNobody.
func WithTrust(trusted func(*http.Request) bool) MiddlewareOption {
	return func(m *Middleware) error {
		if trusted == nil {
			return errors.New("admission: WithTrust(nil): want a function; lullhttp.TrustNobody is one")
		}
		m.trusted = trusted
		return nil
	}
}

// WithPriority has priority return how much a request matters, whatever its header
// Lull-Criticality says. It must be safe for concurrent use.
func WithPriority(priority func(*http.Request) Priority) MiddlewareOption {
	return func(m *Middleware) error {
		if priority == nil {
			return errors.New("admission: WithPriority(nil): want a function")
		}
		m.priority = priority
		return nil
	}
}

// WithSkip lets requests for which skip is true pass without asking and without being
// counted: health checks, and what is long by design (event streams, long polls), which
// would hold a place for as long.
func WithSkip(skip func(*http.Request) bool) MiddlewareOption {
	return func(m *Middleware) error {
		m.skip = skip
		return nil
	}
}

// WithStatus is the status of refusals, 503 or 429. Without it, 503: it is the server
// that is overloaded, not the client who sends too many requests (RFC 6585); and many
// clients repeat a 429 whatever else it says.
func WithStatus(status int) MiddlewareOption {
	return func(m *Middleware) error {
		if status != http.StatusServiceUnavailable && status != http.StatusTooManyRequests {
			return fmt.Errorf("admission: WithStatus(%d): want 503 or 429", status)
		}
		m.status = status
		return nil
	}
}

// WithResult makes result say what a status means for the adaptive limit. Without it,
// what is below 500 is Done, and the rest Failed.
func WithResult(result func(status int) Result) MiddlewareOption {
	return func(m *Middleware) error {
		if result == nil {
			return errors.New("admission: WithResult(nil): want a function")
		}
		m.result = result
		return nil
	}
}

// NewMiddleware returns a middleware under c.
func NewMiddleware(c Config, opts ...MiddlewareOption) (*Middleware, error) {
	a, err := New(c)
	if err != nil {
		return nil, err
	}
	return NewGate(a).Middleware(opts...)
}

// Middleware returns a middleware at this gate, for a Controller with options of its
// own, or one that is shared with gRPC.
func (g *Gate) Middleware(opts ...MiddlewareOption) (*Middleware, error) {
	m := &Middleware{
		gate: g,
		result: func(status int) Result {
			if status >= 500 {
				return Failed
			}
			return Done
		},
		status: http.StatusServiceUnavailable,
	}
	for _, o := range opts {
		if o == nil {
			continue
		}
		if err := o(m); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Gate is where requests wait: for its Snapshot.
func (m *Middleware) Gate() *Gate { return m.gate }

// Handler is next behind admission control.
//
// That a caller has gone while its request waits is noticed by the request's context,
// which net/http ends only once the request's body was read, or if there is none. A
// connection that next takes over (Hijack) gives its place back there and then.
func (m *Middleware) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m.skip != nil && m.skip(r) {
			next.ServeHTTP(w, r)
			return
		}
		pass, d := m.gate.Enter(r.Context(), m.request(r))
		if d.Outcome != Admitted {
			m.refuse(w, d)
			return
		}
		out := response.New(w, func(status int) {
			if status == 0 { // who has taken the connection over may keep it for hours
				pass.Depart(Unmeasured)
			}
		})
		result := Failed // should it panic
		defer func() { pass.Depart(result) }()
		next.ServeHTTP(out.Shown(), r)
		// Nobody has had the answer of a request whose caller is gone.
		if r.Context().Err() == nil {
			result = m.result(out.Final())
		}
	})
}

func (m *Middleware) request(r *http.Request) Request {
	var q Request
	trusted := m.trusted != nil && m.trusted(r)
	switch {
	case m.priority != nil:
		q.Priority = m.priority(r)
	case trusted:
		q.Priority = PriorityOf(r.Header)
	}
	if m.trusted != nil && !trusted {
		return q
	}
	q.Attempt, q.Hedge = lullhttp.ParseAttempt(r.Header), lullhttp.ParseHedge(r.Header)
	if d, ok := lullhttp.ParseTimeout(r.Header); ok {
		q.Deadline = saturating.Add(m.gate.Now(), d)
	}
	return q
}

// refuse answers a request that is not to be worked on.
func (m *Middleware) refuse(w http.ResponseWriter, d Decision) {
	h := w.Header()
	d.SetHeader(h)
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(m.status)
	_, _ = w.Write(d.problem(m.status)) // whether it arrives is nobody's business any more
}

// SetHeader says in h what the caller of a refused request should do: Retry-After, in
// whole seconds, rounded up; and X-Should-Retry: false if it should not come back.
func (d Decision) SetHeader(h http.Header) {
	if d.Outcome != Refused {
		return
	}
	seconds := (d.RetryAfter + time.Second - 1) / time.Second
	h.Set("Retry-After", strconv.FormatInt(int64(max(seconds, 1)), 10))
	if d.DontRetry {
		h.Set("X-Should-Retry", "false")
	}
}

// problem is the body of a refusal.
func (d Decision) problem(status int) []byte {
	b := make([]byte, 0, 192)
	b = append(b, `{"type":"`...)
	if d.DontRetry {
		b = append(b, lullhttp.ProblemOverloaded...)
		b = append(b, `","title":"overloaded; don't retry"`...)
	} else {
		b = append(b, `about:blank","title":"overloaded","retry_after_ms":`...)
		b = strconv.AppendInt(b, max(d.RetryAfter.Milliseconds(), 1), 10)
	}
	b = append(b, `,"status":`...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, `,"reason":"`...)
	b = append(b, d.Reason.String()...)
	return append(b, "\"}\n"...)
}
