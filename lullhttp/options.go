package lullhttp

import (
	"fmt"
	"net/http"
	"net/textproto"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/option"
)

// DefaultAttemptHeader is the request header with the number of the attempt, from the second on.
// The first has no header, since adding one costs a copy of the request.
const DefaultAttemptHeader = "Lull-Attempt"

type options struct {
	hosts         int
	wiring        []lull.Option
	operation     func(*http.Request) string // nil: the method
	bodyIdle      time.Duration              // 0: no limit
	attemptHeader string                     // canonical; empty: not sent
	timeoutHeader string                     // the same
	timeoutAlways bool                       // it does not wait for AnnounceHeader
	makeKey       func() string
	keysRequired  bool
	replays       bool
	replayLimit   int64
	hinted429     bool            // WithHinted429
	resumes       bool            // WithResume
	stale         *staleResponses // nil: none
	routes        patternTable[[]lull.CallOption]
	policies      map[string]lull.Policy // of WithPolicies, by pattern
	statuses      map[int]engine.VerdictKind
	problems      map[string]engine.VerdictKind
	classifier    func(*http.Response, error) lull.Verdict
	beforeRetry   func(*http.Request, error) error
	endpoints     map[string]*Endpoints // by the host in a request's URL
}

func defaultOptions() options {
	return options{
		attemptHeader: DefaultAttemptHeader, timeoutHeader: DefaultTimeoutHeader,
		policies: map[string]lull.Policy{}, statuses: map[int]engine.VerdictKind{}, problems: map[string]engine.VerdictKind{}, endpoints: map[string]*Endpoints{},
	}
}

// An Option wires a Transport. It fails if what it was given makes no sense.
type Option func(*Transport) error

// WithBase sends the requests through base. The default, also for nil, is http.DefaultTransport.
func WithBase(base http.RoundTripper) Option {
	return option.Set(func(t *Transport) { t.base = base })
}

// WithHosts bounds how many hosts are remembered at a time. Those not called for the longest are
// forgotten first. The default is 1024.
func WithHosts(n int) Option {
	return option.If(n > 0, func(t *Transport) { t.hosts = n }, "lullhttp: WithHosts(%d): want a positive number of hosts", n)
}

// With wires the dependencies that the transport makes: observers, a budget of another kind, a
// source of randomness. A lull.WithClassifier is refused: use WithClassifier of this package.
func With(opts ...lull.Option) Option {
	return option.Set(func(t *Transport) { t.wiring = append(t.wiring, opts...) })
}

// WithObserver sends every event of the dependencies that the transport makes to o.
func WithObserver(o event.Observer) Option { return With(lull.WithObserver(o)) }

// WithOperation names the operation of a request in errors and events. The default is the method. A
// name should stand for many requests: a route, not a path.
func WithOperation(name func(*http.Request) string) Option {
	return option.If(name != nil, func(t *Transport) { t.operation = name }, "lullhttp: WithOperation(nil): want a function")
}

// WithAttemptHeader sends the number of the attempt (from 2) in the named header instead of
// DefaultAttemptHeader. An empty name sends none.
func WithAttemptHeader(name string) Option {
	return func(t *Transport) (err error) {
		t.attemptHeader, err = headerName("WithAttemptHeader", name)
		return err
	}
}

// WithTimeoutHeader sends what is left of the attempt's time, in milliseconds, to all hosts in the
// named header. An empty name sends none. The default is DefaultTimeoutHeader, for hosts that have
// sent AnnounceHeader. Attempts without a time limit send none.
func WithTimeoutHeader(name string) Option {
	return func(t *Transport) (err error) {
		t.timeoutAlways = true
		t.timeoutHeader, err = headerName("WithTimeoutHeader", name)
		return err
	}
}

// headerName returns the canonical form of a header's name, or "" for none.
func headerName(option, name string) (string, error) {
	for _, r := range name {
		if r <= ' ' || r > '~' || r == ':' {
			return "", fmt.Errorf("lullhttp: %s(%q): want a header name of letters, digits and dashes", option, name)
		}
	}
	return textproto.CanonicalMIMEHeaderKey(name), nil
}

// WithIdempotencyKeys makes an Idempotency-Key for each call by POST or PATCH (or another method
// that is not idempotent by itself) that has none, and repeats such calls with the same key. Use it
// only for servers that honour the header. A foreign host to which one of them redirects gets no
// key.
//
// A nil newKey makes random UUIDs without quotes, as most services (Stripe among them) want them.
// The draft standard wants double quotes: give a newKey that returns them if your server does, too.
// newKey must be safe for concurrent use, and should never return the same key twice.
func WithIdempotencyKeys(newKey func() string) Option {
	if newKey == nil {
		newKey = uuid
	}
	return option.Set(func(t *Transport) { t.makeKey = newKey })
}

const settableKinds = "success, transient, rate_limited, overloaded or permanent"

// WithStatus makes responses with the given status mean kind, instead of the verdict of
// [ClassifyStatus]. Statuses below 400 are successes and cannot be changed.
func WithStatus(status int, kind engine.VerdictKind) Option {
	return option.If(status >= 400 && status <= 599 && kind <= lull.KindPermanent, func(t *Transport) { t.statuses[status] = kind },
		"lullhttp: WithStatus(%d, %v): want a status from 400 to 599, and "+settableKinds, status, kind)
}

// WithHinted429 repeats a 429 only if the server names a time, or allows it (any hint of [ParseHint]
// or of problem details, also a wait of zero). Without one it is permanent, as a 403 is: the call
// ends with it, and it opens no circuit. WithStatus and WithClassifier overrule it.
func WithHinted429() Option {
	return option.Set(func(t *Transport) { t.hinted429 = true })
}

// WithProblem makes a problem details response (RFC 9457) of the given type URI mean kind, whatever
// its status.
func WithProblem(typeURI string, kind engine.VerdictKind) Option {
	return option.If(typeURI != "" && kind <= lull.KindPermanent, func(t *Transport) { t.problems[typeURI] = kind },
		"lullhttp: WithProblem(%q, %v): want a type URI, and "+settableKinds, typeURI, kind)
}
