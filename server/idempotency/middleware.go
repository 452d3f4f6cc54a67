package idempotency

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/option"
	"github.com/lullgo/lull/internal/repeatable"
	"github.com/lullgo/lull/internal/storecall"
)

// A Middleware carries out requests with an Idempotency-Key once. It may be used
// concurrently, and for several handlers: their keys are one set.
type Middleware struct {
	store   Store
	config  Config // with its defaults
	scope   Scope  // nil: AuthorizationScope
	payload func(*http.Request, []byte) []byte
	observe Observer

	claims    *lull.Dependency // the store, while a client waits
	saves     *lull.Dependency // the store, when a response has to be stored
	saving    sync.WaitGroup   // what is stored in the background
	undoSlots chan struct{}    // has one for each claim that is being taken back

	mu           sync.Mutex
	pendingFrees map[string]int // by key: how many calls will tell the store that nothing was done
}

// An Option wires a Middleware: what cannot be data in a Config.
type Option func(*Middleware) error

// WithScope replaces AuthorizationScope.
func WithScope(s Scope) Option {
	return option.If(s != nil, func(m *Middleware) { m.scope = s },
		"idempotency: WithScope(nil): want a function; SharedScope is one for callers that need not be told apart")
}

// WithPayload sets which bytes of a request's body are compared with those of others with
// the same key: f returns them. Use it for bodies that differ between attempts in details
// without meaning: a timestamp, the order of JSON's members. It must be safe for concurrent
// use and must not change body.
func WithPayload(f func(r *http.Request, body []byte) []byte) Option {
	return option.If(f != nil, func(m *Middleware) { m.payload = f }, "idempotency: WithPayload(nil): want a function")
}

// WithObserver passes every event to o; several observers receive it in their order.
// Without one, what an operator should know is written to slog.Default: see
// [NewLog], which is an observer that can stand beside others.
func WithObserver(o Observer) Option {
	return option.If(o != nil, func(m *Middleware) {
		first := m.observe
		m.observe = func(ctx context.Context, e Event) {
			if first != nil {
				first(ctx, e)
			}
			o(ctx, e)
		}
	}, "idempotency: WithObserver(nil): want a function")
}

// maxUndo is how many claims whose answer was lost are taken back at a time. The others
// wait for their turn.
const maxUndo = 64

// New returns a Middleware over store, or an error if the configuration is wrong.
func New(store Store, c Config, opts ...Option) (*Middleware, error) {
	if store == nil {
		return nil, errors.New("idempotency: New: the store is nil")
	}
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("idempotency: %w", err)
	}
	if _, ok := store.(Transactor); c.Transactional && !ok {
		return nil, fmt.Errorf("idempotency: Transactional is true: want a store that is a Transactor; %T is none", store)
	}
	m := &Middleware{
		store: store, config: c.WithDefaults(),
		payload:   func(_ *http.Request, body []byte) []byte { return body },
		undoSlots: make(chan struct{}, maxUndo), pendingFrees: map[string]int{},
	}
	if err := option.Apply(m, opts); err != nil {
		return nil, err
	}
	if m.observe == nil {
		m.observe = defaultObserver()
	}
	var err error
	if m.claims, err = lull.NewDependency("idempotency store", m.config.Store, lull.WithClassifier(classify)); err != nil {
		return nil, err
	}
	m.saves, err = lull.NewDependency("idempotency store", savePolicy(m.config.Lease), lull.WithClassifier(classify))
	return m, err
}

// classify: every method of a Store may be called again, so an unknown error may be
// worth another attempt.
func classify(err error) lull.Verdict {
	if errors.Is(err, ErrFull) {
		return lull.Verdict{Kind: lull.KindPermanent, Code: "store_full"}
	}
	v := lull.Classify(err)
	if v.Kind == lull.KindUnclassified {
		v.Kind, v.Code = lull.KindTransient, "store"
	}
	return v
}

// Wrap returns next under the middleware. Put authentication outside of it.
func (m *Middleware) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.serve(w, r, next) })
}

// Wait returns when everything that is stored in the background is stored or lost,
// or with ctx's error. Call it after http.Server.Shutdown, before the store is closed.
func (m *Middleware) Wait(ctx context.Context) error {
	return storecall.Wait(ctx, func() error {
		m.saving.Wait()
		return nil
	})
}

func (m *Middleware) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if safe(r.Method) {
		next.ServeHTTP(w, r)
		return
	}
	key, bad := m.keyOf(r.Header)
	switch {
	case bad.Type == ProblemKeyMissing && (m.config.Optional || repeatable.IsIdempotent(r.Method)):
		next.ServeHTTP(w, r)
		return
	case bad.Type != "":
		m.problem(w, bad)
		return
	}
	scope, err := m.callerOf(r)
	if err != nil {
		m.observe(r.Context(), Event{Kind: RefusedNoCaller, Err: err})
		m.problem(w, m.details(ProblemNoCaller))
		return
	}
	body, err := readBody(w, r, m.config.MaxBody)
	switch {
	case errors.Is(err, errTooLong):
		m.problem(w, m.tooLong(ProblemBodyTooLarge, m.config.MaxBody))
		return
	case err != nil:
		m.problem(w, m.details(ProblemBodyUnreadable))
		return
	}
	storeKey := StoreKey(scope, key)
	x := &exchange{
		m: m, next: next, w: w, key: key, body: body,
		claim: Claim{
			Key: storeKey, Caller: callerOf(scope, storeKey),
			Fingerprint: fingerprint(r, scope, m.payload(r, body)), Lease: m.config.Lease,
			Retention: m.config.Retention, Resume: m.config.Resume, CommitTimeout: m.saveTimeout(),
		},
	}
	rand.Read(x.claim.Token[:])
	ctx, cancelHandler, cancel := m.detach(r.Context())
	defer cancel()
	x.r, x.cancelHandler = r.WithContext(ctx), cancelHandler
	if m.config.Transactional {
		x.transact(m.store.(Transactor))
		return
	}
	x.serve()
}

// callerOf returns the scope of r. The error is for the operator.
func (m *Middleware) callerOf(r *http.Request) (scope string, err error) {
	of, unknown := m.scope, errNoScope
	if of == nil {
		of, unknown = AuthorizationScope, errNoAuthorization
	}
	scope, ok := of(r)
	if !ok {
		return "", unknown
	}
	return scope, nil
}

var (
	errNoAuthorization = errors.New("idempotency: keys belong to callers, and the request has no Authorization header: " +
		"give New the option WithScope, with a function that returns the account that your authentication found; " +
		"or WithScope(SharedScope), if all callers may see each other's responses")
	errNoScope = errors.New("idempotency: keys belong to callers, and the function given to WithScope returned false: " +
		"does the authentication run outside of the middleware?")
)

// safe reports whether a method changes nothing (RFC 9110, 9.2.1).
func safe(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// detach returns the context of the handler, and of the claim before it: the request's,
// which ends with the client's connection only under Config.FollowClient.
func (m *Middleware) detach(ctx context.Context) (context.Context, context.CancelCauseFunc, context.CancelFunc) {
	stop := func() {}
	if !m.config.FollowClient {
		deadline, has := ctx.Deadline()
		ctx = context.WithoutCancel(ctx)
		if has {
			ctx, stop = context.WithDeadline(ctx, deadline)
		}
	}
	ctx, cancelHandler := context.WithCancelCause(ctx)
	return ctx, cancelHandler, func() {
		cancelHandler(nil)
		stop()
	}
}
