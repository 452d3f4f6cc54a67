package proxy

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/driver/inbound"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/outlier"
	"github.com/lullgo/lull/server/admission"
)

// A door takes the requests of one address.
type door struct {
	name    string
	address string
	from    any // what it was made of: an Upstream, Forward or Ingress, and Limits
	limits  Limits
	tls     *tlsFiles // nil: it speaks no TLS

	proxy   *Proxy
	handler http.Handler // the whole chain

	calls   http.RoundTripper // what makes the calls
	reverse *httputil.ReverseProxy
	routes  *http.ServeMux // from patterns to what is in byRoute; nil: there are none
	byRoute []*route
	own     *lull.Dependency // of requests without a route; nil: by host

	target *url.URL              // nil: the request names it
	gate   *admission.Middleware // of the ingress door; nil: none
	keep   bool                  // the Host header of the request
	hosts  hostList              // that may be called
}

// A route is what is known of a request before it is made.
type route struct {
	once       bool             // it must not be sent twice
	dependency *lull.Dependency // nil: by host
	options    []lull.CallOption
}

// ServeHTTP makes a route what a pattern leads to. It is never called.
func (*route) ServeHTTP(http.ResponseWriter, *http.Request) {}

// A plan makes the doors of a new Config. It changes nothing that is in force.
type plan struct {
	proxy  *Proxy
	config Config
	policy func(string) lull.Policy
	made   map[string]*lull.Dependency
	doors  map[string]*door
}

func (n *plan) makeDoors() (map[string]*door, error) {
	n.doors = map[string]*door{}
	for name := range n.proxy.named {
		if err := n.policy(name).Validate(); err != nil {
			return nil, fmt.Errorf("policy %s: %w", name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.config.Upstreams)) {
		if err := n.upstream(name, n.config.Upstreams[name]); err != nil {
			return nil, fmt.Errorf("upstream %s: %w", name, err)
		}
	}
	if n.config.Forward.Listen != "" {
		if err := n.forward(n.config.Forward); err != nil {
			return nil, fmt.Errorf("forward: %w", err)
		}
	}
	if n.config.Ingress.Listen != "" {
		if err := n.ingress(n.config.Ingress); err != nil {
			return nil, fmt.Errorf("ingress: %w", err)
		}
	}
	return n.doors, nil
}

// keep reports whether the door of that name is what it was, and keeps it: a new one would lose its connections to
// endpoints and what it has stored.
func (n *plan) keep(name string, from any) bool {
	doors := n.proxy.doors.Load()
	if doors == nil {
		return false
	}
	old := (*doors)[name]
	if old == nil || !reflect.DeepEqual(old.from, from) {
		return false
	}
	n.doors[name] = old
	return true
}

// dependency returns the dependency of that name, and makes it if there is none.
func (n *plan) dependency(name string) (*lull.Dependency, error) {
	if d := n.proxy.named[name]; d != nil {
		return d, nil
	}
	if d := n.made[name]; d != nil {
		return d, nil
	}
	d, err := lull.NewDependency(name, n.policy(name), n.proxy.options(name)...)
	if err != nil {
		return nil, err
	}
	n.made[name] = d
	return d, nil
}

// uses reports whether a door of the plan makes calls to the dependency of that name.
func (n *plan) uses(name string) bool {
	for _, d := range n.doors {
		if d.own != nil && d.own.Name() == name {
			return true
		}
		for _, r := range d.byRoute {
			if r.dependency != nil && r.dependency.Name() == name {
				return true
			}
		}
	}
	return false
}

func (n *plan) upstream(name string, u Upstream) error {
	if n.keep(name, [2]any{u, n.config.Limits}) {
		return nil
	}
	d := &door{name: name, address: u.Listen, from: [2]any{u, n.config.Limits}, limits: n.config.Limits.withDefaults(), proxy: n.proxy, keep: u.KeepHost}
	var err error
	if d.own, err = n.dependency(orName(u.Policy, name)); err != nil {
		return err
	}
	var opts []lullhttp.Option
	if d.target, opts, err = n.targetOf(name, u); err != nil {
		return err
	}
	if err := d.setRoutes(n, u.Routes); err != nil {
		return err
	}
	if err := d.setCalls(u.Replay, u.Stale, u.Resume, opts...); err != nil {
		return err
	}
	n.doors[name] = d
	return nil
}

func orName(name, other string) string {
	if name == "" {
		return other
	}
	return name
}

// targetOf returns where the requests of u go, and the options of the transport for it.
func (n *plan) targetOf(name string, u Upstream) (*url.URL, []lullhttp.Option, error) {
	first, at, err := parseTarget(u.To[0])
	if err != nil {
		return nil, nil, err
	}
	base, err := n.base(at.with(u.CA))
	if err != nil {
		return nil, nil, err
	}
	opts := []lullhttp.Option{n.withBase(base)}
	if len(u.To) == 1 {
		return first, opts, nil
	}
	endpoints := make([]string, len(u.To))
	for i, to := range u.To {
		one, _, err := parseTarget(to)
		if err != nil {
			return nil, nil, err
		}
		endpoints[i] = one.Scheme + "://" + one.Host
	}
	set, err := lullhttp.NewEndpoints(outlier.Config{}, endpoints)
	if err != nil {
		return nil, nil, err
	}
	whole := *first
	whole.Host = name + ".invalid" // no host has this name: the endpoints stand for it
	return &whole, append(opts, lullhttp.WithEndpoints(whole.Host, set)), nil
}

func (n *plan) withBase(pool *http.Transport) lullhttp.Option {
	var base http.RoundTripper = &onceTransport{base: pool}
	if n.proxy.wiring.Attempts != nil {
		base = n.proxy.wiring.Attempts(base)
	}
	return lullhttp.WithBase(base)
}

func (d *door) setRoutes(n *plan, routes []Route) error {
	if len(routes) == 0 {
		return nil
	}
	d.routes = http.NewServeMux()
	for _, r := range routes {
		one := &route{dependency: d.own}
		if r.Policy != "" {
			var err error
			if one.dependency, err = n.dependency(r.Policy); err != nil {
				return fmt.Errorf("route %q: %w", r.Match, err)
			}
		}
		one.once = r.Repeat == No || r.Repeat == Once
		switch r.Repeat {
		case Yes:
			one.options = []lull.CallOption{lull.Idempotent()}
		case No:
			one.options = []lull.CallOption{lull.NotIdempotent()}
		case Once:
			one.options = []lull.CallOption{lull.Once()}
		}
		one.options = append(one.options, lull.Operation(r.Match))
		d.routes.Handle(r.Match, one)
		d.byRoute = append(d.byRoute, one)
	}
	return nil
}

// setCalls makes what makes the calls of the door, and the handler that uses it.
func (d *door) setCalls(replay int64, stale time.Duration, resume bool, opts ...lullhttp.Option) error {
	if replay == 0 {
		replay = defaultReplay
	}
	opts = append(opts, lullhttp.WithReplay(replay), lullhttp.WithDependencies(dependencyOf), lullhttp.WithBeforeRetry(beforeRetry))
	if d.limits.BodyIdle > 0 {
		opts = append(opts, lullhttp.WithBodyIdleTimeout(d.limits.BodyIdle))
	}
	if stale > 0 {
		opts = append(opts, lullhttp.WithStale(lullhttp.Stale{For: stale}))
	}
	if resume {
		opts = append(opts, lullhttp.WithResume())
	}
	calls, err := lullhttp.New(lull.Policy{}, opts...)
	if err != nil {
		return err
	}
	d.calls = calls
	if d.proxy.wiring.Calls != nil {
		d.calls = d.proxy.wiring.Calls(calls)
	}
	d.reverse = d.reverseProxy(d.calls)
	d.handler = http.HandlerFunc(d.serve)
	return nil
}

func (d *door) reverseProxy(calls http.RoundTripper) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport:      calls,
		Rewrite:        d.rewrite,
		ModifyResponse: modifyResponse,
		ErrorHandler:   func(w http.ResponseWriter, r *http.Request, err error) { answer(w, r, err) },
		FlushInterval:  flushAfter,
		BufferPool:     &buffers,
		ErrorLog:       quiet,
	}
}

// flushAfter is how long a part of a body of known length is held back for more. Others are sent on at once.
const flushAfter = 10 * time.Millisecond

// ServeHTTP takes a request of the door.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.TLS == nil && d.tls != nil {
		r.TLS = tlsOf(r.Context())
	}
	dropH2C(r.Header)
	c := &call{Context: r.Context(), door: d}
	c.Record = Record{Time: time.Now(), Door: d.name, Method: r.Method, Host: r.Host, Path: r.URL.Path, Protocol: r.Proto}
	c.writer = writer{ResponseWriter: w, call: c, old: !r.ProtoAtLeast(1, 1)}
	out := &c.writer
	c.last = maySwitch(r)
	if d.proxy.wiring.Record != nil {
		defer c.end()
	}
	defer c.cut()
	var ctx context.Context = c
	if d.calls != nil {
		if c.above = d.proxy.layers.above(r); len(c.above) > 0 {
			claim(r.Header, c.above)
		}
		left, bounded := timeLeft(r.Header)
		ctx, c.in = inbound.With(ctx, lullhttp.ParseAttempt(r.Header), left)
		defer c.in.End()
		if bounded && left <= 0 {
			answer(out, r.WithContext(ctx), &lull.Error{Dependency: d.name, Reason: engine.Deadline})
			return
		}
	}
	r = r.WithContext(ctx) // net/http looks at the body of its own
	c.body = takeBody(w, r, d.limits)
	defer c.body.wait(true)
	if text := refusalOf(r); text != "" {
		fail(out, r, http.StatusBadRequest, errorText(text), "http_request_error")
		return
	}
	if loops(r.Header) {
		out.Header()["X-Should-Retry"] = []string{"false"}
		fail(out, r, http.StatusBadGateway, errorText("the request goes round in circles: see its Via header"), "proxy_loop_detected")
		return
	}
	if c.body != nil {
		limit := d.limits.BodyBytes
		if limit > 0 && r.ContentLength > limit {
			fail(out, r, http.StatusRequestEntityTooLarge, fmt.Errorf("the body has %d bytes, and this door takes at most %d", r.ContentLength, limit), "http_request_denied")
			return
		}
		if limit > 0 {
			r.Body = http.MaxBytesReader(w, r.Body, limit)
		}
		if r.ProtoMajor == 1 {
			// The response may begin while the request is still being sent.
			_ = http.NewResponseController(w).EnableFullDuplex()
		}
	}
	d.handler.ServeHTTP(out, r)
	if c.resp != nil && len(c.resp.Trailer) > 0 {
		for _, name := range forApplication {
			delete(w.Header(), http.TrailerPrefix+name) // it is the upstream's
		}
	}
}

// begin completes the header of an answer.
func (c *call) begin(h http.Header, status int) {
	if c.in != nil {
		c.in.Began()
		h[lullhttp.AnnounceHeader] = announcement
		if status >= 500 && c.in.GaveUp() {
			if _, hinted := lullhttp.ParseHint(h, status, c.Time); !hinted {
				h["X-Should-Retry"] = []string{"false"} // a retry from further up would multiply those made here
			}
		}
	}
	if _, typed := h["Content-Type"]; !typed {
		h["Content-Type"] = nil // net/http would guess it
	}
	// An answer before the end of the request: what is left of that is not read. (net/http would panic when it has read it.)
	if c.Protocol != "HTTP/2.0" && (c.last || c.door.proxy.draining.Load() || !c.body.whole()) {
		h["Connection"] = []string{"close"}
	}
}

var announcement = []string{"1"}

// cut sends what there is of an answer that breaks off, so that the client does not take the request for one without any.
func (c *call) cut() {
	if c.writer.status < 200 {
		return
	}
	if v := recover(); v != nil {
		_ = http.NewResponseController(c.writer.ResponseWriter).Flush()
		panic(v)
	}
}

// serve makes the request of an upstream or of the forward door.
func (d *door) serve(w http.ResponseWriter, r *http.Request) {
	c := callOf(r.Context())
	if r.Method == http.MethodConnect {
		d.connect(w, r)
		return
	}
	if d.target == nil && !d.mayForward(w, r) || endsHere(w, r) {
		return
	}
	c.route = d.routeOf(r)
	options := c.route.options
	switch r.Header.Get(retryHeader) {
	case "?1":
		options = append(options[:len(options):len(options)], lull.Idempotent())
	case "?0":
		options, c.once = append(options[:len(options):len(options)], lull.Once()), true
	}
	c.once = c.once || c.route.once || c.route.dependency.Plan().Attempts() == 1
	if len(options) > 0 {
		r = r.WithContext(lullhttp.WithCall(r.Context(), options...))
	}
	d.reverse.ServeHTTP(w, r)
}

// routeOf returns the route of a request. A path that is not the shortest, such as "/a/../b" or "/a/%2e%2e", is sent as it
// is, and who gets it may read it in two ways: it has none.
func (d *door) routeOf(r *http.Request) route {
	found := route{dependency: d.own}
	if path := r.URL.Path + "/"; d.routes != nil && !strings.Contains(path, "/../") && !strings.Contains(path, "/./") {
		if h, _ := d.routes.Handler(forMux(r, d.target == nil)); h != nil {
			if one, ok := h.(*route); ok {
				found = *one
			}
		}
	}
	if found.dependency == nil {
		found.dependency = d.proxy.hosts.Get(hostName(r.URL))
	}
	return found
}

// forMux returns what of r decides its route.
func forMux(r *http.Request, byHost bool) *http.Request {
	u, host := r.URL, ""
	if u.Path == "" {
		u = &url.URL{Path: "/"}
	}
	if byHost {
		host = r.URL.Host
	}
	return &http.Request{Method: r.Method, URL: u, Host: host}
}

// dependencyOf is lullhttp's: the route has been found.
func dependencyOf(r *http.Request) *lull.Dependency {
	if c := callOf(r.Context()); c != nil {
		return c.route.dependency
	}
	return nil
}

// timeLeft returns the time that an application gives a request, of which the shortest counts.
func timeLeft(h http.Header) (left time.Duration, bounded bool) {
	left, bounded = lullhttp.ParseTimeout(h)
	if v := h["X-Envoy-Upstream-Rq-Timeout-Ms"]; len(v) > 0 {
		if ms, err := strconv.ParseUint(v[0], 10, 31); err == nil && ms > 0 {
			if d := time.Duration(ms) * time.Millisecond; !bounded || d < left {
				left, bounded = d, true
			}
		}
	}
	return left, bounded
}
