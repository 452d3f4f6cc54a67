// Package proxy makes HTTP calls under a lull.Policy for programs that are not written in Go.
//
//	p, err := proxy.New(proxy.Config{Upstreams: map[string]proxy.Upstream{
//		"payments": {Listen: "127.0.0.1:9001", To: []string{"https://payments.example"}},
//	}}, proxy.Wiring{})
//	...
//	return p.Serve(ctx)
//
// A [Proxy] has doors: addresses at which it takes requests. An [Upstream] leads to one service, [Forward] is for programs
// with HTTP_PROXY, and [Ingress] stands in front of an application. Requests are made by package lullhttp, so a call through
// an Upstream or Forward has retries, a budget, a breaker and one deadline, as a call in Go. The command "lull proxy" runs a
// Proxy from a file. docs/proxy.md has the headers, what is repeated, and what it costs.
package proxy

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/driver/inbound"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/recent"
	"github.com/lullgo/lull/server/admission"
	"github.com/lullgo/lull/server/idempotency"
)

// A Proxy takes requests at its doors, and makes them under the policies of its Config. Make one with New. It may be used
// concurrently.
type Proxy struct {
	wiring Wiring

	updating sync.Mutex                               // one Update at a time
	named    map[string]*lull.Dependency              // of upstreams and routes, by name; guarded by updating
	hosts    *recent.Cache[*lull.Dependency]          // of the forward door, by host
	policy   atomic.Pointer[func(string) lull.Policy] // of the Config
	doors    atomic.Pointer[map[string]*door]         // by name
	bases    map[target]*http.Transport               // guarded by updating
	servers  map[string]*server                       // that Serve has started, by name of the door; guarded by updating
	serving  bool                                     // guarded by updating
	draining atomic.Bool
	never    atomic.Pointer[[]netip.AddrPort] // of Config.Private
	tunnels  tunnels
	layers   layers
	failed   chan error // of a server
}

// The names of the doors that are not those of upstreams.
const (
	ForwardDoor = "forward"
	IngressDoor = "ingress"
)

// Wiring is what a Proxy works with, beside its Config. The zero Wiring is good for every Proxy without Keys.
type Wiring struct {
	// Observe receives every event of the proxy's dependencies.
	Observe event.Observer
	// Record is called at the end of each request, for an access log. It must be quick, and safe for concurrent use.
	Record func(*Record)
	// Warn is called with what an operator should mend although the proxy goes on, such as a new certificate that cannot be read. It
	// must be safe for concurrent use.
	Warn func(error)
	// Options returns further options for the dependency of that name, such as a budget that sidecars share.
	Options func(dependency string) []lull.Option
	// Calls wraps what makes calls, for traces: it gets a lullhttp.Transport, and returns what calls it.
	Calls func(http.RoundTripper) http.RoundTripper
	// Attempts wraps what sends each attempt of a call, for traces.
	Attempts func(http.RoundTripper) http.RoundTripper
	// Admission receives what the ingress door admits and refuses, as with admission.WithObserver.
	Admission func(admission.Event)
	// Store has the Idempotency-Keys of the ingress door.
	Store idempotency.Store
	// Listen opens the listener of an address. Nil: net.Listen, also for "unix:/path".
	Listen func(address string) (net.Listener, error)
	// Drain bounds how long Serve waits for requests in flight when its context has ended. Zero means DefaultDrain.
	Drain time.Duration
}

// DefaultDrain is how long Serve waits for requests in flight.
const DefaultDrain = 20 * time.Second

// New returns a proxy. It opens no listener: Serve does.
func New(c Config, w Wiring) (*Proxy, error) {
	p := &Proxy{
		wiring:  w,
		named:   map[string]*lull.Dependency{},
		bases:   map[target]*http.Transport{},
		servers: map[string]*server{},
		failed:  make(chan error, 1),
	}
	p.doors.Store(&map[string]*door{})
	p.layers.open = map[string]map[*inbound.Request]context.Context{}
	p.tunnels.ctx, p.tunnels.end = context.WithCancel(context.Background())
	if w.Listen == nil {
		p.wiring.Listen = listen
	}
	p.wiring.Drain = cmp.Or(w.Drain, DefaultDrain)
	p.hosts = recent.New(1024, p.makeHost)
	if err := p.Update(c); err != nil {
		return nil, err
	}
	return p, nil
}

// Update puts a new Config into force. Calls under way end as they began. Dependencies keep what they know: budgets that
// are spent stay spent, and open circuits stay open; one that no door uses any more is forgotten. If the Config is wrong, or a
// new address cannot be opened, nothing changes. A door that is gone takes no new connections, and closes those it has when
// their requests have ended.
func (p *Proxy) Update(c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	p.updating.Lock()
	defer p.updating.Unlock()
	policy := c.Policy
	if policy == nil {
		policy = func(string) lull.Policy { return lull.Policy{} }
	}
	next := &plan{proxy: p, config: c, policy: policy, named: maps.Clone(p.named), doors: map[string]*door{}}
	if err := next.makeDoors(); err != nil {
		return err
	}
	if p.serving {
		if err := p.openDoors(next.doors); err != nil {
			return err
		}
	}
	for name, d := range p.named {
		if err := d.Update(policy(name)); err != nil {
			panic(err) // the plan has looked
		}
	}
	p.named = next.used()
	private := privateAddresses(c.Private)
	p.never.Store(&private)
	p.policy.Store(&policy)
	for host, d := range p.hosts.All {
		_ = d.Update(p.hostPolicy(host)) // a policy that is wrong changes nothing
	}
	p.doors.Store(&next.doors)
	for name, s := range p.servers {
		if next.doors[name] == nil {
			delete(p.servers, name)
			go p.endLater(s)
		}
	}
	return nil
}

// makeHost makes the dependency of a host that the forward door calls.
func (p *Proxy) makeHost(host string) *lull.Dependency {
	d, err := lull.NewDependency(host, p.hostPolicy(host), p.options(host)...)
	if err != nil {
		d, _ = lull.NewDependency(host, lull.Policy{}, p.options(host)...)
	}
	return d
}

func (p *Proxy) hostPolicy(host string) lull.Policy { return (*p.policy.Load())(host) }

// options returns the options of the dependency of that name.
func (p *Proxy) options(name string) []lull.Option {
	var opts []lull.Option
	if p.wiring.Record != nil {
		opts = append(opts, lull.WithObserver(observer{}))
	}
	if p.wiring.Observe != nil {
		opts = append(opts, lull.WithObserver(p.wiring.Observe))
	}
	if p.wiring.Options != nil {
		opts = append(opts, p.wiring.Options(name)...)
	}
	return opts
}

// Dependencies calls yield with each dependency of the proxy, in any order, until it returns false.
func (p *Proxy) Dependencies(yield func(*lull.Dependency) bool) {
	p.updating.Lock()
	all := slices.Collect(maps.Values(p.named))
	p.updating.Unlock()
	for _, d := range p.hosts.All {
		all = append(all, d)
	}
	for _, d := range all {
		if !yield(d) {
			return
		}
	}
}

// Gate returns what admits requests at the ingress door, or nil.
func (p *Proxy) Gate() *admission.Gate {
	if d := (*p.doors.Load())[IngressDoor]; d != nil {
		return d.gate
	}
	return nil
}

// Handler returns the handler of a door: that of an upstream by its name, ForwardDoor or IngressDoor. It follows Update.
func (p *Proxy) Handler(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d := (*p.doors.Load())[name]
		if d == nil {
			d = &door{name: name, proxy: p, handler: http.HandlerFunc(gone)}
		}
		d.ServeHTTP(w, r)
	})
}

func gone(w http.ResponseWriter, r *http.Request) {
	callOf(r.Context()).last = true
	fail(w, r, http.StatusServiceUnavailable, errors.New("the door has been closed"), "destination_unavailable")
}
