package lullhttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/attempt"
	"github.com/lullgo/lull/internal/option"
	"github.com/lullgo/lull/outlier"
)

// Endpoints are the hosts at which one dependency can be reached. Package outlier chooses one for
// each attempt: the less busy of two. A retry or a hedge prefers one that its call has not tried.
// Endpoints that do worse than the others are ejected for a while. Give them to a Transport with
// [WithEndpoints]. Their methods may be called concurrently.
//
// An endpoint is an address, "10.0.0.7:8080", or a base, "https://eu.example.com". With an address
// the request keeps its scheme and Host header. With a base the request is made as if its URL had
// that host, unless the caller has set a Host. Over TLS the certificate must be for the endpoint,
// so those need names.
//
// A status of 500 and above, and an attempt without an answer, count against the endpoint (502, 503
// and 504 as gateway failures). A cancelled attempt, and one that failed on the caller's side, are
// neutral. An endpoint is busy until the response's header has arrived.
type Endpoints struct {
	set   *outlier.Set
	epoch time.Time
	mu    sync.Mutex // one Update at a time
	table atomic.Pointer[map[string]endpoint]
}

type endpoint struct {
	scheme string // empty: the request's
	host   string
}

// NewEndpoints returns a set of endpoints. The zero outlier.Config is the recommended one.
// Listeners are called when an endpoint is ejected or comes back.
func NewEndpoints(c outlier.Config, endpoints []string, listeners ...func(outlier.Change)) (*Endpoints, error) {
	set, err := outlier.New(c, listeners...)
	if err != nil {
		return nil, fmt.Errorf("lullhttp: endpoints: %w", err)
	}
	e := &Endpoints{set: set, epoch: time.Now()}
	if err := e.Update(endpoints); err != nil {
		return nil, err
	}
	return e, nil
}

// Update replaces the endpoints. It keeps what is known of those that stay. If one of them is
// invalid, or there is none, nothing changes.
func (e *Endpoints) Update(endpoints []string) error {
	table := make(map[string]endpoint, len(endpoints))
	for i, text := range endpoints {
		at, err := parseEndpoint(text)
		if err != nil {
			return fmt.Errorf("lullhttp: endpoint %d is %q: %w", i+1, text, err)
		}
		table[text] = at
	}
	if len(table) == 0 {
		return errors.New("lullhttp: no endpoints: want at least one")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.table.Store(&table)
	e.set.Update(e.now(), endpoints)
	return nil
}

func (e *Endpoints) find(key string) endpoint {
	at, ok := (*e.table.Load())[key]
	if !ok { // it was picked just before Update removed it
		at, _ = parseEndpoint(key)
	}
	return at
}

// Status returns the state of each endpoint.
func (e *Endpoints) Status() []outlier.EndpointState { return e.set.States(e.now()) }

func (e *Endpoints) now() time.Duration { return time.Since(e.epoch) }

var errEndpoint = errors.New("want an address such as 10.0.0.7:8080, or a base such as https://eu.example.com without path or query")

func parseEndpoint(text string) (endpoint, error) {
	scheme, rest, isBase := strings.Cut(text, "://")
	if !isBase {
		scheme, rest = "", text
	}
	u, err := url.Parse("http://" + rest)
	switch {
	case err != nil || u.Host != strings.TrimSuffix(rest, "/") || u.Hostname() == "":
		return endpoint{}, errEndpoint
	case isBase && scheme != "http" && scheme != "https":
		return endpoint{}, errEndpoint
	}
	return endpoint{scheme, u.Host}, nil
}

// WithEndpoints sends requests for host ("orders" or "orders:8080", in any spelling) to one of the
// endpoints instead. They remain calls to one dependency, that of host. The option may be given for
// several hosts.
func WithEndpoints(host string, e *Endpoints) Option {
	return option.If(host != "" && e != nil, func(t *Transport) { t.endpoints[canonicalHost("", host)] = e },
		"lullhttp: WithEndpoints(%q, %v): want a host, and endpoints", host, e)
}

// endpointAttempt is an attempt at an endpoint. The zero value is one at the request's own host.
type endpointAttempt struct {
	e    *Endpoints
	at   outlier.Endpoint
	rand func() uint64
}

// endpointPicks are the endpoints that one call has used.
type endpointPicks struct {
	rand  func() uint64 // the dependency's
	mu    sync.Mutex    // of a call that is hedged several may leave at once
	tried outlier.Tried
}

// redirect picks the endpoint of the next attempt, and directs out to it.
func (i *endpointPicks) redirect(t *Transport, out *http.Request) endpointAttempt {
	e := t.endpoints[hostOf(out)]
	i.mu.Lock()
	at, ok := e.set.Pick(e.now(), i.rand, &i.tried)
	i.mu.Unlock()
	if !ok {
		return endpointAttempt{}
	}
	to := e.find(at.Key())
	u := *out.URL
	u.Host = to.host
	if to.scheme == "" {
		out.Host = cmp.Or(out.Host, out.URL.Host)
	} else {
		if out.Host == out.URL.Host {
			out.Host = ""
		}
		u.Scheme = to.scheme
	}
	out.URL = &u
	return endpointAttempt{e, at, i.rand}
}

// report records how the attempt ended. ctx is its context, and caller that of its call.
func (v endpointAttempt) report(ctx, caller context.Context, resp *http.Response, verdict lull.Verdict) {
	if v.e == nil {
		return
	}
	if resp == nil {
		verdict = verdict.Failed(attempt.CutOff(ctx, caller))
	}
	o := outlier.Success
	switch {
	case resp == nil && (ctx.Err() == context.Canceled || verdict.Kind == lull.KindUnclassified) || verdict.Kind == engine.KindCanceled || verdict.CallerSide():
		o = outlier.Neutral
	case resp == nil:
		o = outlier.LocalOrigin
	case resp.StatusCode >= 502 && resp.StatusCode <= 504, verdict.Kind == lull.KindTransient && isGRPC(resp):
		o = outlier.GatewayFailure
	case resp.StatusCode >= 500:
		o = outlier.FiveXX
	}
	v.e.set.Done(v.e.now(), v.at, o, v.rand)
}
