package lullhttp

import (
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
	"github.com/lullgo/lull/internal/attempt"
	"github.com/lullgo/lull/outlier"
)

// Endpoints are the hosts that one dependency can be reached at. For each attempt
// one of them is chosen, by package outlier: the less busy of two, a retry or a
// hedge prefers one that its call has not tried, and those that do worse than the
// others are left out for a while. Give them to a Transport with [WithEndpoints].
// Their methods may be called concurrently.
//
// An endpoint is written as an address, "10.0.0.7:8080": then the request's scheme
// and its Host header stay what they were; or as a base, "https://eu.example.com":
// then it is made as though it had been to that host in the first place, unless
// the caller has set a Host of their own. Over TLS the certificate must be for the endpoint, so those need names.
//
// A status of 500 and above, and an attempt that gets no answer, count against the
// endpoint (502, 503 and 504 as gateway failures); an attempt that was cancelled, or
// failed on the caller's side, counts neither way. It counts as busy until the response's headers have come.
type Endpoints struct {
	set   *outlier.Set
	epoch time.Time
	mu    sync.Mutex // one Update at a time
	table atomic.Pointer[map[string]endpoint]
}

// endpoint is where an attempt goes.
type endpoint struct {
	scheme string // empty: the request's
	host   string
}

// NewEndpoints returns a set of endpoints. The zero outlier.Config is the
// recommended one. Listeners hear of endpoints that are ejected and come back.
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

// Update replaces the endpoints. What is known of those that stay is kept. If one of them
// is not valid, or there is none, nothing changes.
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

// find is the endpoint of a key.
func (e *Endpoints) find(key string) endpoint {
	at, ok := (*e.table.Load())[key]
	if !ok { // it was picked just before it went
		at, _ = parseEndpoint(key)
	}
	return at
}

// Status returns the state of each endpoint.
func (e *Endpoints) Status() []outlier.Status { return e.set.Status(e.now()) }

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

// WithEndpoints sends requests for host ("orders" or "orders:8080", in any spelling)
// to one of the endpoints instead. They remain calls to one dependency, that of host.
// The option may be given for several hosts.
func WithEndpoints(host string, e *Endpoints) Option {
	return func(t *Transport) error {
		if host == "" || e == nil {
			return fmt.Errorf("lullhttp: WithEndpoints(%q, %v): want a host, and endpoints", host, e)
		}
		t.endpoints[canonicalHost("", host)] = e
		return nil
	}
}

// endpointAttempt is one attempt at an endpoint. The zero visit is at the request's own host.
type endpointAttempt struct {
	e    *Endpoints
	at   outlier.Endpoint
	rand func() uint64
}

// endpointPicks is where the attempts of one call have been.
type endpointPicks struct {
	rand  func() uint64 // the dependency's
	mu    sync.Mutex    // of a call that is hedged several may leave at once
	tried outlier.Tried
}

// redirect picks the endpoint of the next attempt, and sends out there.
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
		if out.Host == "" {
			out.Host = out.URL.Host
		}
	} else {
		if out.Host == out.URL.Host {
			out.Host = ""
		}
		u.Scheme = to.scheme
	}
	out.URL = &u
	return endpointAttempt{e, at, i.rand}
}

// report reports to the endpoint how the attempt with that context ended, in a call of caller.
func (v endpointAttempt) report(ctx, caller context.Context, resp *http.Response, verdict lull.Verdict) {
	if v.e == nil {
		return
	}
	if resp == nil {
		verdict = verdict.Failed(attempt.CutOff(ctx, caller))
	}
	o := outlier.Success
	switch {
	case resp == nil && (ctx.Err() == context.Canceled || verdict.Kind == lull.KindUnclassified) || verdict.Kind == lull.KindCanceled || verdict.CallerSide():
		o = outlier.Neutral
	case resp == nil:
		o = outlier.LocalOrigin
	case resp.StatusCode >= 502 && resp.StatusCode <= 504:
		o = outlier.GatewayFailure
	case resp.StatusCode >= 500:
		o = outlier.FiveXX
	}
	v.e.set.Done(v.e.now(), v.at, o, v.rand)
}
