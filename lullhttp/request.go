package lullhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/option"
	"github.com/lullgo/lull/internal/repeatable"
)

// ErrKeyRequired is the error of a request that WithKeysRequired refuses.
var ErrKeyRequired = errors.New("it could not be repeated safely, and WithKeysRequired refuses such requests before their first attempt:" +
	" give it an Idempotency-Key, or what is true of it, lull.Idempotent() or lull.NotIdempotent(), by WithCall or WithRoute")

// WithCall returns a context for requests that are made with opts, as [lull.Do] takes them. It adds
// them to the options of ctx. Of two options that contradict each other the later one counts. An
// option given here overrules one of a route ([WithRoute]).
//
//	lullhttp.WithCall(ctx, lull.Once())        one attempt, whatever the policy allows
//	lullhttp.WithCall(ctx, lull.Idempotent())  this POST may be repeated, without a header
//	lullhttp.WithCall(ctx, lull.Operation("search"))
func WithCall(ctx context.Context, opts ...lull.CallOption) context.Context {
	withCallUsed.Store(true)
	have, _ := ctx.Value(callKey{}).([]lull.CallOption)
	return context.WithValue(ctx, callKey{}, append(have[:len(have):len(have)], opts...))
}

type callKey struct{}

// withCallUsed is true after the first WithCall. Until then no request has to search its context.
var withCallUsed atomic.Bool

// WithRoute makes the requests that match pattern with opts. Patterns are those of [http.ServeMux],
// such as "POST search.internal/{index}/_search", "/v1/messages" or "sqs.eu-west-1.amazonaws.com".
// A host needs its port, unless that is the default of the scheme. A host without a path matches
// all its paths. Of several patterns the most specific one counts. The option may be given for
// several patterns.
func WithRoute(pattern string, opts ...lull.CallOption) Option {
	return func(t *Transport) error {
		if len(opts) == 0 {
			return fmt.Errorf("lullhttp: WithRoute(%q): want something to say of its calls, such as lull.Idempotent()", pattern)
		}
		if err := t.routes.add(pattern, opts); err != nil {
			return fmt.Errorf("lullhttp: WithRoute(%q): %w", pattern, err)
		}
		return nil
	}
}

// WithKeysRequired refuses requests that could not be repeated safely, before their first attempt
// and with [ErrKeyRequired]: POST, PATCH and unknown methods with neither an Idempotency-Key nor
// lull.Idempotent nor lull.NotIdempotent. So a test finds a forgotten key, and not an outage.
func WithKeysRequired() Option {
	return option.Set(func(t *Transport) { t.keysRequired = true })
}

// fillSpec fills in what the engine needs to know about a call. It reports whether attempts may run
// side by side. keyless: the spec is NotIdempotent because there is no key.
func (t *Transport) fillSpec(spec *engine.Spec, req *http.Request) (race, keyless bool) {
	spec.Operation = t.operationOf(req)
	spec.NotIdempotent = !repeatable.IsIdempotent(req.Method)
	spec.NotReplayable = hasBody(req) && req.GetBody == nil
	spec.UnlessUnsent = true // see exchange.errorVerdict
	// An SDK has made the request and retries by itself, or the request is passed on.
	spec.ForRetry = len(req.Header) > 0 && ParseAttempt(req.Header) > 1
	declared := false
	if t.routes.mux != nil {
		if opts, ok := t.routes.find(req, hostOf(req)); ok {
			*spec, declared = applyOptions(*spec, opts)
		}
	}
	if withCallUsed.Load() {
		if opts, ok := req.Context().Value(callKey{}).([]lull.CallOption); ok {
			var too bool
			*spec, too = applyOptions(*spec, opts)
			declared = declared || too
		}
	}
	// An Idempotency-Key does not allow a race. A server that still works on the first request
	// answers the second with 409, and that would be the call's result
	// (draft-ietf-httpapi-idempotency-key-header, section 2.6). A trailer is filled in while the
	// body is sent, so there can be one body at a time.
	race = !spec.NotIdempotent && !spec.NotReplayable && !spec.Once && len(req.Trailer) == 0
	if spec.NotIdempotent && !declared {
		keyless = !repeatable.IsKeyed(req.Header)
		spec.NotIdempotent = keyless
	}
	return race, keyless
}

// applyOptions applies opts, and reports whether they decide if the operation is idempotent.
func applyOptions(spec engine.Spec, opts []lull.CallOption) (engine.Spec, bool) {
	yes, no := engine.Spec{}, engine.Spec{NotIdempotent: true}
	for _, o := range opts {
		o.Apply(&spec)
		o.Apply(&yes)
		o.Apply(&no)
	}
	return spec, yes.NotIdempotent == no.NotIdempotent
}

const headerIdempotencyKey = "Idempotency-Key"

// newKey makes the Idempotency-Key of a call that needs one; empty if it gets none. A server to
// which the first host redirects gets a key only if it is below that host, by the rule of net/http
// for credentials.
func (t *Transport) newKey(req *http.Request) string {
	if t.makeKey == nil || redirectedToOtherHost(req) {
		return ""
	}
	return t.makeKey()
}

// redirectedToOtherHost reports whether redirects have led the request to a host that is neither
// that of the first request nor below it.
func redirectedToOtherHost(req *http.Request) bool {
	if req.Response == nil || req.Response.Request == nil {
		return false
	}
	first := req
	for first.Response != nil && first.Response.Request != nil {
		first = first.Response.Request
		if first.URL == nil {
			return true
		}
	}
	from, to := hostname(first), hostname(req)
	return from != to && !strings.HasSuffix(to, "."+from)
}

// hostname returns the canonical host of a request without its port.
func hostname(req *http.Request) string {
	name, _, _ := splitHost(hostOf(req))
	return name
}

// refuseKeyless closes the body of a request that WithKeysRequired refuses, and returns its error.
func refuseKeyless(req *http.Request) error {
	if req.Body != nil {
		req.Body.Close()
	}
	return fmt.Errorf("lullhttp: %s %s refused: %w", req.Method, req.URL.Redacted(), ErrKeyRequired)
}
