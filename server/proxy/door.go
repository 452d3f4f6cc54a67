package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"reflect"
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
	tls     tlsFiles // none: it speaks no TLS

	proxy   *Proxy
	handler http.Handler // the whole chain

	calls   http.RoundTripper                               // what makes the calls, or sends to the application
	direct  func(out, in *http.Request)                     // completes what is sent
	receive func(*http.Response) error                      // completes the response
	refuse  func(http.ResponseWriter, *http.Request, error) // answers if there is none
	routes  *http.ServeMux                                  // from patterns to routes; nil: there are none
	own     *lull.Dependency                                // of requests without a route; nil: by host
	named   []*lull.Dependency                              // of all routes

	target *url.URL        // nil: the request names it
	gate   *admission.Gate // of the ingress door; nil: none
	keep   bool            // the Host header of the request
	hosts  hostList        // that may be called
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
	named  map[string]*lull.Dependency // those in force, and new ones
	doors  map[string]*door
}

func (n *plan) makeDoors() error {
	var errs []error
	for name := range n.proxy.named {
		if err := n.policy(name).Validate(); err != nil {
			errs = append(errs, fmt.Errorf("policy %s: %w", name, err))
		}
	}
	for name, u := range n.config.Upstreams {
		errs = append(errs, n.door(name, u.Listen, u, func(d *door) error { return n.upstream(d, u) }))
	}
	if f := n.config.Forward; f.Listen != "" {
		errs = append(errs, n.door(ForwardDoor, f.Listen, f, func(d *door) error { return n.forward(d, f) }))
	}
	if i := n.config.Ingress; i.Listen != "" {
		errs = append(errs, n.door(IngressDoor, i.Listen, i, func(d *door) error { return n.ingress(d, i) }))
	}
	return errors.Join(errs...)
}

// door keeps the door of that name if it is what it was: a new one would lose its connections to endpoints and what it has
// stored. Otherwise complete makes one of a door without a handler.
func (n *plan) door(name, address string, from any, complete func(*door) error) error {
	d := &door{name: name, address: address, from: [2]any{from, n.config.Limits}, limits: n.config.Limits.withDefaults(), proxy: n.proxy}
	if old := (*n.proxy.doors.Load())[name]; old != nil && reflect.DeepEqual(old.from, d.from) {
		d = old
	} else if err := complete(d); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	n.doors[name] = d
	return nil
}

// dependency returns the dependency of that name for a door, and makes it if there is none.
func (n *plan) dependency(d *door, name string) (_ *lull.Dependency, err error) {
	one := n.named[name]
	if one == nil {
		if one, err = lull.NewDependency(name, n.policy(name), n.proxy.options(name)...); err != nil {
			return nil, err
		}
		n.named[name] = one
	}
	d.named = append(d.named, one)
	return one, nil
}

// used returns the dependencies that a door of the plan makes calls to.
func (n *plan) used() map[string]*lull.Dependency {
	all := map[string]*lull.Dependency{}
	for _, d := range n.doors {
		for _, one := range d.named {
			all[one.Name()] = one
		}
	}
	return all
}

func (n *plan) upstream(d *door, u Upstream) (err error) {
	d.keep = u.KeepHost
	if d.own, err = n.dependency(d, cmp.Or(u.Policy, d.name)); err != nil {
		return err
	}
	var at target
	d.target, at = parseTarget(u.To[0])
	at.ca = u.CA
	base, err := n.base(at)
	if err != nil {
		return err
	}
	opts := []lullhttp.Option{n.withBase(base)}
	if len(u.To) > 1 {
		endpoints := make([]string, len(u.To))
		for i, to := range u.To {
			one, _ := parseTarget(to)
			endpoints[i] = one.Scheme + "://" + one.Host
		}
		set, err := lullhttp.NewEndpoints(outlier.Config{}, endpoints)
		if err != nil {
			return err
		}
		d.target.Host = d.name + ".invalid" // no host has this name: the endpoints stand for it
		opts = append(opts, lullhttp.WithEndpoints(d.target.Host, set))
	}
	if err := d.setRoutes(n, u.Routes); err != nil {
		return err
	}
	return d.setCalls(u.Replay, u.Stale, u.Resume, opts...)
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
			if one.dependency, err = n.dependency(d, r.Policy); err != nil {
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
	}
	return nil
}

// setCalls makes what makes the calls of the door, and the handler that uses it.
func (d *door) setCalls(replay int64, stale time.Duration, resume bool, opts ...lullhttp.Option) error {
	opts = append(opts, lullhttp.WithReplay(cmp.Or(replay, defaultReplay)), lullhttp.WithDependencies(dependencyOf), lullhttp.WithBeforeRetry(setTimeLeft))
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
	d.direct, d.receive, d.refuse = d.outgoing, modifyResponse, answer
	d.handler = http.HandlerFunc(d.serve)
	return nil
}

// ServeHTTP takes a request of the door.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{Context: r.Context(), door: d}
	defer c.leave()
	if r = c.enter(w, r); !c.settles(r) {
		d.handler.ServeHTTP(&c.writer, r)
	}
}

// enter begins the call, and returns r in its context.
func (c *call) enter(w http.ResponseWriter, r *http.Request) *http.Request {
	if conn, ok := c.Value(connKey{}).(*doorConn); ok && r.TLS == nil {
		r.TLS = conn.tls()
	}
	dropH2C(r.Header)
	c.Record = Record{Time: time.Now(), Door: c.door.name, Method: r.Method, Host: r.Host, Path: r.URL.Path, Protocol: r.Proto}
	c.writer = writer{ResponseWriter: w, call: c}
	c.last = maySwitch(r)
	var ctx context.Context = c
	if c.door.calls != nil && c.door.name != IngressDoor {
		if c.above = c.door.proxy.layers.above(r); len(c.above) > 0 {
			claim(r.Header, c.above)
		}
		left, bounded := timeLeft(r.Header)
		c.late = bounded && left <= 0
		ctx, c.in = inbound.With(ctx, lullhttp.ParseAttempt(r.Header), left)
	}
	c.early.trace.Got1xxResponse = c.early.pass
	r = r.WithContext(httptrace.WithClientTrace(ctx, &c.early.trace)) // net/http looks at the body of its own
	c.body = takeBody(w, r, c.door.limits)
	return r
}

// settles reports whether r goes no further: it has been answered.
func (c *call) settles(r *http.Request) bool {
	d, w := c.door, &c.writer
	text := refusalOf(r)
	most := d.limits.BodyBytes
	switch {
	case text != "":
		fail(w, r, http.StatusBadRequest, errors.New(text), "http_request_error")
	case c.late:
		answer(w, r, &lull.Error{Dependency: d.name, Reason: engine.Deadline})
	case loops(r.Header):
		w.Header()["X-Should-Retry"] = []string{"false"}
		fail(w, r, http.StatusBadGateway, errors.New("the request goes round in circles: see its Via header"), "proxy_loop_detected")
	case c.body != nil && most > 0 && r.ContentLength > most:
		fail(w, r, http.StatusRequestEntityTooLarge, fmt.Errorf("the body has %d bytes, and this door takes at most %d", r.ContentLength, most), "http_request_denied")
	case r.Method == http.MethodConnect && d.calls != nil: // a door that is gone has none
		d.connect(w, r)
	default:
		if c.body != nil && most > 0 {
			r.Body = http.MaxBytesReader(w.ResponseWriter, r.Body, most)
		}
		if c.body != nil && r.ProtoMajor == 1 {
			// The response may begin while the request is still being sent.
			_ = http.NewResponseController(w.ResponseWriter).EnableFullDuplex()
		}
		return false
	}
	return true
}

// leave ends the call. What there is of an answer that breaks off is sent, so that the client does not take the request for one
// without any, and the connection is reset: some clients take half an answer for a whole one if the connection ends in order.
func (c *call) leave() {
	broken := recover()
	c.body.wait(true)
	if c.in != nil {
		c.in.End()
	}
	if broken != nil && c.writer.status >= 200 {
		_ = http.NewResponseController(c.writer.ResponseWriter).Flush()
		if conn, ok := c.Value(connKey{}).(*doorConn); ok && c.Protocol != "HTTP/2.0" {
			if tcp, ok := conn.Conn.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
			}
		}
	}
	if c.door.proxy.wiring.Record != nil {
		c.end()
	}
	if broken != nil {
		panic(broken)
	}
}

// begin completes the header of an answer.
func (c *call) begin(h http.Header, status int) {
	if c.in != nil {
		c.in.Began()
		h[lullhttp.AnnounceHeader] = oneText
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

// serve makes the request of an upstream or of the forward door.
func (d *door) serve(w http.ResponseWriter, r *http.Request) {
	c := callOf(r.Context())
	if d.target == nil && !d.mayForward(w, r) || endsHere(w, r) {
		return
	}
	c.route = d.routeOf(r)
	options := c.route.options
	switch said := r.Header.Get(retryHeader); {
	case said == "?1" && !c.route.once: // the file has the last word
		options = append(options[:len(options):len(options)], lull.Idempotent())
	case said == "?0":
		options, c.once = append(options[:len(options):len(options)], lull.Once()), true
	}
	c.once = c.once || c.route.once || c.route.dependency.Plan().Attempts() == 1
	if len(options) > 0 {
		r = r.WithContext(lullhttp.WithCall(r.Context(), options...))
	}
	d.pass(w, r)
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
