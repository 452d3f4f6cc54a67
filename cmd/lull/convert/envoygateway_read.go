package convert

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/tree"
)

// Envoy Gateway is Envoy behind the Gateway API: a BackendTrafficPolicy has the settings of Envoy
// that the API lacks. It is read beside the HTTPRoutes that it is for.

// triggers are the words of retryOn: those of Envoy that the resource has.
var triggers = []string{"5xx", "gateway-error", "reset", "connect-failure", "retriable-4xx", "refused-stream", statusCodes,
	"cancelled", "deadline-exceeded", "internal", "resource-exhausted", "unavailable"}

const envoyGatewayVersion = "gateway.envoyproxy.io/v1alpha1"

// A trafficPolicy is a BackendTrafficPolicy.
type trafficPolicy struct {
	d       *document
	spec    *tree.Node
	path    string
	name    string // its own
	targets []routeTarget

	retry    *envoyRetry // nil: there are no retries
	deadline time.Duration
	timed    bool // it has a deadline
	limit    int64
	limited  bool
	retries  int64 // at a time
	bounds   string
	ejection *ejection

	used, retried bool
}

// A routeTarget is what a BackendTrafficPolicy is for.
type routeTarget struct{ kind, namespace, name, section string }

// backendTraffic reads a BackendTrafficPolicy.
func (g *gatewayReader) backendTraffic(spec *tree.Object, name string) {
	d := g.d
	t := &trafficPolicy{d: d, spec: spec.Node, path: spec.Path, name: name, limit: 1024, retries: 1024}
	for _, ref := range append(spec.Objects("targetRefs"), nonNil(spec.Object("targetRef"))...) {
		t.targets = append(t.targets, routeTarget{ref.String("kind"), g.namespace, ref.String("name"), ref.String("sectionName")})
		for _, field := range []string{"kind", "name", "sectionName"} {
			if at, ok := ref.PathOf(field); ok {
				d.note(Aside, at, "routing, not how calls are made")
			}
		}
		d.noteUnread(ref, "routing, not how calls are made")
	}
	d.lost(spec, Lost, "routes that are chosen by labels are not looked for here", "targetSelectors")
	if o := spec.Object("retry"); o != nil {
		t.retry = g.r.triggeredRetry(d, o)
	}
	if o := spec.Object("timeout"); o != nil {
		t.timeouts(o)
	}
	if o := spec.Object("circuitBreaker"); o != nil {
		t.circuitBreaker(o)
	}
	if o := spec.Object("healthCheck"); o != nil {
		t.healthCheck(o)
	}
	d.lost(spec, Lost, "it is merged into that of the Gateway, which is not done here", "mergeType")
	d.lost(spec, Lost, "a policy makes no faults; lull simulate does", "faultInjection")
	d.lost(spec, Lost, "it refuses requests of the gateway's clients: package admission, in a server", "admissionControl", "rateLimit")
	d.noteUnread(spec, "not how calls are made")
	g.traffics = append(g.traffics, t)
}

// nonNil is a list of o, or an empty one.
func nonNil(o *tree.Object) []*tree.Object {
	if o == nil {
		return nil
	}
	return []*tree.Object{o}
}

// triggeredRetry reads the retry of a BackendTrafficPolicy.
func (r *reading) triggeredRetry(d *document, o *tree.Object) *envoyRetry {
	e := &envoyRetry{node: o.Node, path: o.Path, onPath: o.Path, numPath: o.At("numRetries"), retries: 2, given: true, hosts: hosts{others: true, more: 4},
		on: failures{on: []string{"connect-failure", "refused-stream", "unavailable", "cancelled", statusCodes}, statuses: []int{503}}}
	if n, ok := o.Whole("numRetries", 0, math.MaxInt32, "a whole number from 0"); ok {
		e.retries = n
	} else {
		e.implied = append(e.implied, "without numRetries Envoy Gateway makes two")
	}
	if on := o.Object("retryOn"); on != nil {
		e.onPath = on.Path
		e.idle = append(e.idle, on.Path)
		e.triggers(d, on)
	} else {
		e.implied = append(e.implied, "without retryOn Envoy Gateway retries after "+e.on.String())
	}
	const noWaits = "without backOff Envoy waits for up to 25ms before the first retry, and for up to 250ms at most"
	if per := o.Object("perRetry"); per != nil {
		e.perTryPath = per.At("timeout")
		e.perTry, _ = per.Duration("timeout", 0, allowedGateway, parseGateway)
		if b := per.Object("backOff"); b != nil {
			e.idle = append(e.idle, b.Path)
			e.gatewayBackOff(d, b)
		} else if !r.base.given {
			e.implied = append(e.implied, noWaits)
		}
		d.noteUnread(per, "not how calls are made")
	} else if !r.base.given {
		e.implied = append(e.implied, noWaits)
	}
	const perPriority = "numAttemptsPerPriority"
	if n, ok := o.Whole(perPriority, 0, math.MaxInt32, "a whole number from 0"); ok && n > 0 {
		e.hosts.priorities = n
		e.hosted = append(e.hosted, o.At(perPriority))
	} else if ok {
		d.note(Aside, o.At(perPriority), offWhy)
	}
	d.noteUnread(o, "not how calls are made")
	return e
}

// triggers reads retryOn.
func (e *envoyRetry) triggers(d *document, on *tree.Object) {
	words, path := on.List("triggers")
	if len(words) > 0 {
		e.on.on = nil
	}
	for i, w := range words {
		if w.Kind != tree.Text && w.Kind != tree.Number || !slices.Contains(triggers, w.Text) {
			d.Wrong(w, tree.Element(path, i), w.Found(), choice.List(triggers), choice.Nearest(w.Text, triggers))
			continue
		}
		e.on.on = append(e.on.on, w.Text)
	}
	codes, path := on.List("httpStatusCodes")
	e.on.statuses = nil
	for i, c := range codes {
		n, ok := tree.WholeNumber(c)
		if d.Check(ok && n >= 100 && n <= 599, c, tree.Element(path, i), "a status from 100 to 599") {
			e.on.statuses = append(e.on.statuses, int(n))
		}
	}
	if len(codes) > 0 && !e.on.includes(statusCodes) {
		d.noteWhole(Lost, on.Field("httpStatusCodes"), path, "Envoy heeds them only with "+statusCodes+" among the triggers")
	}
	d.noteUnread(on, "not how calls are made")
	if len(d.Mistakes) == 0 {
		needless(d, e.on, words, on.At("triggers"), e.on.on, func(f *failures, left []string) { f.on = left })
		if e.on.includes(statusCodes) {
			needless(d, e.on, codes, on.At("httpStatusCodes"), e.on.statuses, func(f *failures, left []int) { f.statuses = left })
		}
	}
}

// needless records the elements of a list without which the same failures would be retried.
func needless[T any](d *document, all failures, nodes []*tree.Node, path string, list []T, set func(*failures, []T)) {
	if len(nodes) != len(list) {
		return
	}
	var with, without lull.Policy
	why := all.apply(&with)
	for i := range nodes {
		f, p := all, without
		set(&f, slices.Delete(slices.Clone(list), i, i+1))
		if f.apply(&p) == why && p == with {
			d.note(Assumed, tree.Element(path, i), "the others include it, or lull retries it in any case")
		}
	}
}

// gatewayBackOff reads the waits. Envoy refuses a longest wait without a base.
func (e *envoyRetry) gatewayBackOff(d *document, b *tree.Object) {
	const field = "baseInterval"
	if !b.Has(field) {
		b.Require(field, allowedGateway)
	}
	before := len(d.Mistakes)
	base, _ := b.Duration(field, time.Millisecond, allowedGateway, parseGateway)
	longest, given := b.Duration("maxInterval", time.Millisecond, allowedGateway, parseGateway)
	d.noteUnread(b, "not how calls are made")
	if len(d.Mistakes) > before || base == 0 {
		return
	}
	switch {
	case given && longest < base:
		n := b.Node.Get("maxInterval")
		d.Wrong(n, b.At("maxInterval"), n.Found(), "at least baseInterval, "+formatGateway(base), "")
		return
	case !given:
		longest = min(base, math.MaxInt64/proxyGrowth) * proxyGrowth
		e.implied = append(e.implied, "without maxInterval Envoy waits for up to ten times baseInterval")
	}
	w := proxyWaits(base, longest)
	e.waits = &w
}

func (t *trafficPolicy) timeouts(o *tree.Object) {
	if h := o.Object("http"); h != nil {
		if t.deadline, t.timed = h.Duration("requestTimeout", 0, allowedGateway, parseGateway); t.timed {
			t.deadline = orNone(t.deadline)
		}
		t.d.lost(h, Lost, "a policy bounds calls and attempts, not the time between two parts of a stream", "maxStreamDuration", "streamTimeout", "streamIdleTimeout")
		t.d.lost(h, Lost, connectionsWhy, "connectionIdleTimeout", "maxConnectionDuration")
		t.d.noteUnread(h, "not how calls are made")
	}
	if c := o.Object("tcp"); c != nil {
		t.d.lost(c, Lost, "it is that of the net.Dialer, not of a policy", "connectTimeout")
		t.d.noteUnread(c, "not how calls are made")
	}
	t.d.noteUnread(o, "not how calls are made")
}

const connectionsWhy = "connections, and who waits for one, are the http.Transport's business (MaxConnsPerHost)"

func (t *trafficPolicy) circuitBreaker(o *tree.Object) {
	const allowed = "a whole number from 0 to 4294967295"
	if n, ok := o.Whole("maxParallelRequests", 0, unlimited, allowed); ok {
		t.limit, t.limited = n, true
		if n == 0 {
			t.d.note(Changed, o.At("maxParallelRequests"), "a limit is 1 at least")
		}
	}
	if n, ok := o.Whole("maxParallelRetries", 0, unlimited, allowed); ok {
		t.retries = n
		if n < math.MaxInt32 {
			t.bounds = o.At("maxParallelRetries")
		} else {
			t.d.note(Aside, o.At("maxParallelRetries"), noLimitWhy)
		}
	}
	for _, name := range []string{"maxConnections", "maxPendingRequests", "maxRequestsPerConnection"} {
		switch n, ok := o.Whole(name, 0, unlimited, allowed); {
		case ok && n < unlimited:
			t.d.note(Lost, o.At(name), connectionsWhy)
		case ok:
			t.d.note(Aside, o.At(name), noLimitWhy)
		}
	}
	t.d.lost(o, Lost, "a policy does not know hosts", "perEndpoint")
	t.d.noteUnread(o, "not how calls are made")
}

func (t *trafficPolicy) healthCheck(o *tree.Object) {
	d := t.d
	d.lost(o, Lost, "a policy knows no endpoints", "active")
	below, panics := o.Whole("panicThreshold", 0, 100, "a whole number from 0 to 100")
	p := o.Object("passive")
	switch {
	case panics && p == nil:
		d.note(Aside, o.At("panicThreshold"), "without passive that a breaker can say it is about health checks")
	case panics:
		d.noteAbout(ejected, Lost, o.At("panicThreshold"), panicWhy)
	default:
		below = 50
	}
	if p != nil {
		t.passive(p, int(below))
	}
	d.noteUnread(o, "not how calls are made")
}

// passive reads the outlier detection.
func (t *trafficPolicy) passive(o *tree.Object, below int) {
	d := t.d
	var implied []string
	x := ejection{panic: below}
	span := func(name string, otherwise time.Duration) time.Duration {
		if v, ok := o.Duration(name, time.Millisecond, allowedMillis, tree.ParseGo); ok {
			return v
		}
		implied = append(implied, name+" "+formatGateway(otherwise))
		return otherwise
	}
	x.base, x.interval = span("baseEjectionTime", 30*time.Second), span("interval", 3*time.Second)
	x.max = max(300*time.Second, x.base)
	const count = "consecutive5XxErrors"
	if n, ok := o.Whole(count, 0, unlimited, "a whole number from 0 to 4294967295"); ok {
		x.five = int(min(n, math.MaxInt32))
	} else {
		x.five = 5
		implied = append(implied, count+" 5")
	}
	x.most = 10
	if n, ok := o.Whole("maxEjectionPercent", 0, 100, "a whole number from 0 to 100"); ok {
		x.most = int(n)
	} else {
		implied = append(implied, "maxEjectionPercent 10")
	}
	d.lost(o, Lost, "a breaker has one number, and gateway errors count as 5xx", "consecutiveGatewayErrors")
	d.lost(o, Lost, "a breaker does not know endpoints; outlier.Config of lullhttp.NewEndpoints does", "splitExternalLocalOriginErrors", "consecutiveLocalOriginFailures", "failurePercentageThreshold", "alwaysEjectOneEndpoint")
	d.noteUnread(o, "not how calls are made")
	if x.five == 0 {
		for _, name := range []string{"interval", "baseEjectionTime", "maxEjectionPercent", count} {
			if o.Has(name) {
				d.note(Lost, o.At(name), "nothing is left for which a breaker would open")
			}
		}
		return
	}
	if o.Has("interval") {
		d.noteAbout(ejected, Lost, o.At("interval"), sweepWhy)
	}
	if x.most < 100 && o.Has("maxEjectionPercent") {
		d.noteAbout(ejected, Lost, o.At("maxEjectionPercent"), "not all endpoints are ejected; a breaker stops all calls")
	}
	if len(implied) > 0 {
		d.note(Assumed, o.Path, "what is not said is as Envoy Gateway has it: "+strings.Join(implied, ", "))
	}
	d.noteAbout(ejected, Changed, o.Path, breakerWhy)
	t.ejection = &x
}

// start sets in p what the policy says of a call, but for its retries. timed: the route has a
// timeout of its own, which takes precedence.
func (t *trafficPolicy) start(g *gatewayReader, p *lull.Policy, timed bool) {
	t.used = true
	if t.timed && !timed {
		p.Deadline = t.deadline
	}
	if !t.timed && !timed && !g.r.base.given {
		t.d.note(Assumed, t.path, "without requestTimeout Envoy ends a call after 15s")
	}
}

// finish sets in p, which has its retries, what bounds calls and retries, and returns what no policy
// can hold.
func (t *trafficPolicy) finish(g *gatewayReader, p *lull.Policy, retried *failures) foreign {
	given := g.r.base.given
	if t.limited || !given {
		p.Limit = limitOf(t.limit)
	}
	if !t.limited && !given {
		t.d.note(Assumed, t.path, "without maxParallelRequests Envoy lets 1024 requests be under way")
	}
	if t.bounds == "" && !given && p.MaxAttempts() > 1 {
		t.d.note(Assumed, t.path, "without maxParallelRetries Envoy Gateway lets 1024 retries be under way")
	}
	if p.MaxAttempts() > 1 {
		t.d.bounded(t.bounds, stockWhy)
		t.retried = true
		if p.Budget = maxRetries(t.retries); t.retries == 0 {
			p.Attempts, p.Hedge = 1, hedge.Config{}
		}
	}
	if t.ejection != nil {
		p.Breaker = t.ejection.policy()
	}
	extras := foreign{of: EnvoyGateway, retried: retried, retries: t.retries, ejection: t.ejection, ignoresHints: true}
	if t.retry != nil {
		extras.hosts = t.retry.hosts
		t.retry.longIn(t.d, &extras.facts)
	}
	return extras.at(t.d.fieldsOf(EnvoyGateway, t.path))
}

// trafficOf returns the BackendTrafficPolicy for a rule of an HTTPRoute: the most specific one; nil:
// there is none.
func (g *gatewayReader) trafficOf(route httpRoute, rule string) *trafficPolicy {
	find := func(want func(routeTarget) bool) *trafficPolicy {
		for _, t := range g.traffics {
			if slices.ContainsFunc(t.targets, want) {
				return t
			}
		}
		return nil
	}
	own := func(r routeTarget) bool {
		return r.kind == "HTTPRoute" && r.name == route.name && r.namespace == route.namespace
	}
	if t := find(func(r routeTarget) bool { return own(r) && r.section == rule && rule != "" }); t != nil {
		return t
	}
	if t := find(func(r routeTarget) bool { return own(r) && r.section == "" }); t != nil {
		return t
	}
	return find(func(r routeTarget) bool {
		return r.kind == "Gateway" && slices.ContainsFunc(route.parents, func(p backend) bool { return p.name == r.name && p.namespace == r.namespace })
	})
}

// connects reports whether routes of that kind lead connections, and no requests.
func connects(kind string) bool {
	return slices.Contains([]string{"TCPRoute", "TLSRoute", "UDPRoute"}, kind)
}

// leftTraffic adds a dependency for each target of a BackendTrafficPolicy that no rule in the files
// has used.
func (g *gatewayReader) leftTraffic() {
	for _, t := range g.traffics {
		g.d = t.d
		if !t.used {
			names := []string{}
			for _, target := range t.targets {
				if !connects(target.kind) {
					names = append(names, target.name)
				}
			}
			if len(names) == 0 && len(t.targets) > 0 {
				t.d.lost(t.d.Object(t.spec, t.path), Lost, "its target is a route of connections, and a policy is for requests", "retry", "timeout", "circuitBreaker", "healthCheck")
				continue
			}
			if len(names) == 0 {
				names = append(names, t.name)
			}
			if !g.r.base.given {
				t.d.note(Assumed, t.path, "no HTTPRoute in these files is its target: the dependency is called after the target")
			}
			for _, name := range names {
				p, preset := g.r.base.of(EnvoyGateway)
				t.start(g, &p, false)
				var retried *failures
				if t.retry != nil {
					t.retry.apply(t.d, &p, p.Deadline)
					t.d.noteSelection(t.retry.onPath, t.retry.why, name)
					retried = t.retry.failures()
				}
				g.r.add(t.d, name, nil, t.path, p, preset, t.finish(g, &p, retried))
			}
		} else if t.retry != nil && !t.retry.applied {
			t.d.noteWhole(Lost, t.retry.node, t.retry.path, "each rule there has its own")
		}
		if !t.retried {
			t.d.unbounded(t.bounds)
		}
	}
}
