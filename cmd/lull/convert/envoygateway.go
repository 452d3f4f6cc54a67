package convert

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/tree"
	"github.com/lullgo/lull/internal/waits"
)

// Envoy Gateway: a BackendTrafficPolicy has Envoy's settings that the Gateway API lacks. It is read beside its HTTPRoutes.

// triggers are the words of retryOn: those of Envoy that the resource has.
var triggers = []string{"5xx", "gateway-error", "reset", "connect-failure", "retriable-4xx", "refused-stream", statusCodes,
	"cancelled", "deadline-exceeded", "internal", "resource-exhausted", "unavailable"}

const envoyGatewayVersion = "gateway.envoyproxy.io/v1alpha1"

type trafficPolicy struct {
	d       *document
	spec    *tree.Node
	path    string
	name    string // its own
	targets []routeTarget

	retry    *envoyRetry // nil: there are no retries
	deadline time.Duration
	timed    bool // it has a deadline
	guard    guard
	limited  bool // it has a limit of calls

	used bool
}

type routeTarget struct{ kind, namespace, name, section string }

func (g *gatewayReader) backendTraffic(spec *tree.Object, name string) {
	d := g.d
	t := &trafficPolicy{d: d, spec: spec.Node, path: spec.Path, name: name}
	refs := spec.Objects("targetRefs")
	if ref := spec.Object("targetRef"); ref != nil {
		refs = append(refs, ref)
	}
	for _, ref := range refs {
		t.targets = append(t.targets, routeTarget{ref.String("kind"), g.namespace, ref.String("name"), ref.String("sectionName")})
		d.noteRouting(ref, "kind", "name", "sectionName")
	}
	d.lost(spec, Lost, "routes that are chosen by labels are not looked for here", "targetSelectors")
	if o := spec.Object("retry"); o != nil {
		t.retry = d.triggeredRetry(o)
	}
	t.timeouts(spec.Object("timeout"))
	t.circuitBreaker(spec.Object("circuitBreaker"))
	t.healthCheck(spec.Object("healthCheck"))
	d.lost(spec, Lost, "it is merged into that of the Gateway, which is not done here", "mergeType")
	d.lost(spec, Lost, "a policy makes no faults; lull simulate does", "faultInjection")
	d.lost(spec, Lost, "it refuses requests of the gateway's clients: package admission, in a server", "admissionControl", "rateLimit")
	g.traffics = append(g.traffics, t)
}

func (d *document) triggeredRetry(o *tree.Object) *envoyRetry {
	e := &envoyRetry{d: d, of: EnvoyGateway, node: o.Node, path: o.Path, onPath: o.Path, numPath: o.At("numRetries"),
		given: true, hosts: istioHosts, on: failures{on: istioDefault.on, statuses: []int{503}}}
	n, ok := o.Whole("numRetries", 0, math.MaxInt32, "a whole number from 0")
	e.retries = choice.Either(ok, n, 2)
	e.implied.add(!ok, "without numRetries Envoy Gateway makes two")
	if on := o.Object("retryOn"); on != nil {
		e.onPath = on.Path
		e.idle = append(e.idle, on.Path)
		e.triggers(d, on)
	} else {
		e.implied = append(e.implied, "without retryOn Envoy Gateway retries after "+e.on.String())
	}
	per := o.Object("perRetry")
	e.perTryPath = per.At("timeout")
	e.perTry, _ = per.Duration("timeout", 0, allowedGateway, parseGateway)
	if b := per.Object("backOff"); b != nil {
		e.idle = append(e.idle, b.Path)
		form := timeForm{time.Millisecond, allowedGateway, parseGateway, formatGateway}
		if base, longest := e.intervals(d, b, "baseInterval", "maxInterval", form); base > 0 {
			w := proxyWaits(base, longest)
			e.waits = &w
		}
	} else if !d.based {
		e.implied = append(e.implied, "without backOff Envoy waits for up to 25ms before the first retry, and for up to 250ms at most")
	}
	const perPriority = "numAttemptsPerPriority"
	n, ok = o.Whole(perPriority, 0, math.MaxInt32, "a whole number from 0")
	if ok && n > 0 {
		e.hosts.priorities = n
		e.hosted = append(e.hosted, o.At(perPriority))
	}
	d.noteIf(ok && n == 0, Aside, o.At(perPriority), offWhy)
	return e
}

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
	e.on.statuses = d.statuses(codes, path, 100)
	if len(codes) > 0 && !e.on.includes(statusCodes) {
		d.noteWhole(Lost, on.Field("httpStatusCodes"), path, "Envoy heeds them only with "+statusCodes+" among the triggers")
	}
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
		d.noteIf(f.apply(&p) == why && p == with, Assumed, tree.Element(path, i),
			"the others include it, or lull retries it in any case")
	}
}

func (t *trafficPolicy) timeouts(o *tree.Object) {
	h, c := o.Object("http"), o.Object("tcp")
	_, t.timed = gatewayTimeout(h, "requestTimeout", &t.deadline)
	t.d.lost(h, Lost, "a policy bounds calls and attempts, not the time between two parts of a stream", "maxStreamDuration", "streamTimeout",
		"streamIdleTimeout")
	t.d.lost(h, Lost, connectionsWhy, "connectionIdleTimeout", "maxConnectionDuration")
	t.d.lost(c, Lost, "it is that of the net.Dialer, not of a policy", "connectTimeout")
}

func (t *trafficPolicy) circuitBreaker(o *tree.Object) {
	t.guard = guard{retries: 1024, bounded: true}
	t.guard.calls, t.limited = t.d.limit(o, "maxParallelRequests", 1024)
	t.guard.limited = t.limited || !t.d.based
	if n, ok := o.Whole("maxParallelRetries", 0, unlimited, allowedUint32); ok {
		if t.guard.retries = n; !t.d.noLimit(o.At("maxParallelRetries"), n) {
			t.guard.bound = &bound{t.d, o.At("maxParallelRetries"), stockWhy}
		}
	}
	t.d.connectionLimits(o, "maxConnections", "maxPendingRequests", "maxRequestsPerConnection")
	t.d.lost(o, Lost, "a policy does not know hosts", "perEndpoint")
}

func (t *trafficPolicy) healthCheck(o *tree.Object) {
	d := t.d
	d.lost(o, Lost, "a policy knows no endpoints", "active")
	below, p := upTo(100, o, "panicThreshold", 50), o.Object("passive")
	if o.Has("panicThreshold") && p != nil {
		d.noteAbout(true, ejected, Lost, o.At("panicThreshold"), panicWhy)
	} else {
		d.noteIf(o.Has("panicThreshold"), Aside, o.At("panicThreshold"),
			"without passive that a breaker can say it is about health checks")
	}
	if p != nil {
		t.passive(p, int(below))
	}
}

func (t *trafficPolicy) passive(o *tree.Object, below int) {
	d := t.d
	var implied unsaid
	x := ejection{panic: below}
	span := func(name string, otherwise time.Duration) time.Duration {
		t, ok := o.Duration(name, time.Millisecond, allowedMillis, tree.ParseGo)
		implied.add(!ok, name+" "+formatGateway(otherwise))
		return choice.Either(ok, t, otherwise)
	}
	x.base, x.interval = span("baseEjectionTime", 30*time.Second), span("interval", 3*time.Second)
	x.max = max(300*time.Second, x.base)
	const failures, most = "consecutive5XxErrors", "maxEjectionPercent"
	x.five, x.most = count(o, failures, 5), int(upTo(100, o, most, 10))
	implied.add(!o.Has(failures), failures+" 5")
	implied.add(!o.Has(most), most+" 10")
	d.lost(o, Lost, "a breaker has one number, and gateway errors count as 5xx", "consecutiveGatewayErrors")
	d.lost(o, Lost, "a breaker does not know endpoints; outlier.Config of lullhttp.NewEndpoints does", "splitExternalLocalOriginErrors", "consecutiveLocalOriginFailures", "failurePercentageThreshold", "alwaysEjectOneEndpoint")
	d.noteAbout(x.most < 100 && o.Has(most) && x.ejects(), ejected, Lost, o.At(most),
		"not all endpoints are ejected; a breaker stops all calls")
	t.guard.ejection = x.becomesBreaker(d, o, "Envoy Gateway", implied, "interval", "baseEjectionTime", most, failures)
}

// start sets in p what the policy says of a call, but for its retries. timed: the route's own timeout takes precedence.
func (t *trafficPolicy) start(p *lull.Policy, timed bool) {
	t.used = true
	if t.timed && !timed {
		p.Deadline = t.deadline
	}
	t.d.assume(!t.timed && !timed, t.path, "without requestTimeout Envoy ends a call after 15s")
}

// finish sets in p, which has its retries, what bounds calls and retries, and returns what no policy can hold.
func (t *trafficPolicy) finish(p *lull.Policy, retried *failures) known {
	t.d.assume(!t.limited, t.path, "without maxParallelRequests Envoy lets 1024 requests be under way")
	t.d.assume(t.guard.bound == nil && p.MaxAttempts() > 1, t.path,
		"without maxParallelRetries Envoy Gateway lets 1024 retries be under way")
	t.guard.apply(p)
	extras := known{foreign: foreign{of: EnvoyGateway, retried: retried, ignoresHints: true}}
	t.guard.addTo(&extras.foreign)
	if t.retry != nil {
		extras.hosts = t.retry.hosts
		t.retry.longIn(&extras.facts)
	}
	extras.places = t.d.fieldsOf(EnvoyGateway, t.path)
	return extras
}

// trafficOf returns the BackendTrafficPolicy for a rule of an HTTPRoute: the most specific one; nil: there is none.
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
	return cmp.Or(
		find(func(r routeTarget) bool { return own(r) && r.section == rule && rule != "" }),
		find(func(r routeTarget) bool { return own(r) && r.section == "" }),
		find(func(r routeTarget) bool {
			return r.kind == "Gateway" && slices.Contains(route.parents, backend{r.namespace, r.name})
		}))
}

// leftTraffic adds a dependency for each target of a BackendTrafficPolicy that no rule in the files has used.
func (g *gatewayReader) leftTraffic() {
	for _, t := range g.traffics {
		if !t.used && !g.targeted(t) {
			continue
		}
		if t.used && t.retry != nil && !t.retry.applied {
			t.d.noteWhole(Lost, t.retry.node, t.retry.path, "each rule there has its own")
		}
		t.guard.bound.unused()
	}
}

func (g *gatewayReader) targeted(t *trafficPolicy) bool {
	var names []string
	for _, target := range t.targets {
		if !slices.Contains([]string{"TCPRoute", "TLSRoute", "UDPRoute"}, target.kind) { // which lead connections, and no requests
			names = append(names, target.name)
		}
	}
	if len(t.targets) == 0 {
		names = []string{t.name}
	}
	if len(names) == 0 {
		t.d.lost(t.d.Object(t.spec, t.path), Lost, "its target is a route of connections, and a policy is for requests", "retry", "timeout", "circuitBreaker",
			"healthCheck")
		return false
	}
	t.d.assume(true, t.path, "no HTTPRoute in these files is its target: the dependency is called after the target")
	for _, name := range names {
		p := g.r.base.of(EnvoyGateway).policy
		t.start(&p, false)
		if t.retry != nil {
			t.retry.apply(&p, p.Deadline)
			t.d.noteSelection(t.retry.onPath, t.retry.why, name)
		}
		extras := t.finish(&p, t.retry.failures())
		g.r.add(t.d, name, nil, t.path, p, extras)
	}
	return true
}

func (w *writer) envoyGateway() (policies []*tree.Node) {
	taken := map[string]bool{}
	w.each("Envoy Gateway", func(d config.Dependency, p lull.Policy, note noter) {
		name := w.host(d.Name, taken, note)
		note(Assumed, "", "it becomes a BackendTrafficPolicy for the HTTPRoute "+name+", which is to be written")
		target := tree.NewMap().Set("group", "gateway.networking.k8s.io").Set("kind", "HTTPRoute").Set("name", name)
		spec := tree.NewMap().Set("targetRefs", tree.ListOf(target))
		w.backendTraffic(spec, d, p, note)
		policies = append(policies, object(envoyGatewayVersion, "BackendTrafficPolicy", name, spec))
	})
	return policies
}

func (w *writer) backendTraffic(spec *tree.Node, d config.Dependency, p lull.Policy, note noter) {
	const system = "Envoy Gateway"
	span := gatewaySpans(system, note)
	attempts, deadline := proxyDeadline(p, system, note)
	timeout := "0s"
	if deadline > 0 {
		timeout = span(deadline, "deadline")
	}
	spec.Set("timeout", tree.NewMap().Set("http", tree.NewMap().Set("requestTimeout", timeout)))
	if attempts > 1 {
		spec.Set("retry", w.triggeredRetry(d, p, attempts, span, note))
	}
	limits := tree.NewMap().Set("maxConnections", int64(unlimited)).Set("maxPendingRequests", int64(unlimited)).
		Set("maxParallelRequests", limitNumber(p.Limit))
	b, most := w.atATime(d.Name, p, note)
	if b != nil {
		most = max(int64(b.least), 1)
	}
	spec.Set("circuitBreaker", limits.Set("maxParallelRetries", min(most, unlimited)))
	if e := w.ejection(d.Name, p, false, system, note); e != nil {
		spec.Set("healthCheck", w.passive(*e, span, note))
	}
}

// proxyDeadline is the number of attempts, and the deadline to write for a proxy that bounds an attempt only where there are retries.
func proxyDeadline(p lull.Policy, system string, note noter) (attempts int, deadline time.Duration) {
	note.changed(p.Hedge.Attempts > 1, "hedge", system+" does not hedge, so the policy is written as one that retries as often")
	attempts = p.MaxAttempts()
	if attempts > 1 || !waits.Bounded(p) {
		return attempts, p.Deadline
	}
	note(Changed, "attempt_timeout", system+" bounds an attempt only where there are retries: it is the timeout of the call")
	note(Changed, "deadline", "attempt_timeout is less, and there is one attempt")
	return attempts, p.AttemptTimeout
}

// atATime is bounds for a system that has no share of the calls.
func (w *writer) atATime(name string, p lull.Policy, note noter) (b *proxyBudget, most int64) {
	b, most = w.bounds(name, p, func(k Kind, field, why string) {
		if k == Changed {
			why = "Envoy Gateway has no share of the calls, and bounds the retries that are under way: it is the stock"
		}
		note(k, field, why)
	})
	known, ok := w.set.proxied(name)
	note.changed(ok && known.budget != nil, "budget",
		"Envoy Gateway has no retry budget: it is the number of retries that are always allowed")
	return b, most
}

func (w *writer) triggeredRetry(d config.Dependency, p lull.Policy, attempts int, span func(time.Duration, string) string, note noter) *tree.Node {
	const system = "Envoy Gateway"
	f := w.failures(d.Name, p)
	known := w.set.known[d.Name]
	words, codes := tree.ListOf(), tree.ListOf()
	var left []string
	for _, word := range f.on {
		switch {
		case slices.Contains(triggers, word):
			words.Items = append(words.Items, tree.String(word))
		case word == "reset-before-request" && known.retried == nil: // part of what timeouts decides
		default:
			left = append(left, word)
		}
	}
	for _, status := range f.statuses {
		if f.includes(statusCodes) {
			codes.Items = append(codes.Items, tree.Int(status))
		}
	}
	note.lost(len(left) > 0, "", system+" has no trigger "+strings.Join(left, ","))
	if len(words.Items) == 0 {
		words.Items = append(words.Items, tree.String(statusCodes))
	}
	on := tree.NewMap().Set("triggers", words).SetIf(len(codes.Items) > 0, "httpStatusCodes", codes)
	per := tree.NewMap()
	if waits.Bounded(p) {
		note.changed(p.Deadline > 0 && toMillis(p.AttemptTimeout) >= toMillis(p.Deadline), "attempt_timeout",
			"rounded it is not less than the timeout, so that it has no effect in Envoy")
		per.Set("timeout", span(p.AttemptTimeout, "attempt_timeout"))
	}
	base, longest := fit(p, attempts, 0, system, note)
	note.changed(longest > longestGateway, "backoff.cap", "durations of Kubernetes end at 99999h")
	per.Set("backOff", tree.NewMap().Set("baseInterval", formatGateway(base)).Set("maxInterval", formatGateway(longest)))
	w.retries(d, p, f, system, note)
	note.lost(!known.ignoresHints, "hint_limit", system+" does not look at Retry-After")
	h := known.hosts
	note.changed((known.of == Envoy || known.of == Istio) && !h.others, "",
		system+" sends a retry to a host that was not tried, where there is one")
	w.unsafe(d, system+" retries a request whether it is safe to repeat or not: match the methods that are")
	return tree.NewMap().Set("numRetries", attempts-1).Set("retryOn", on).Set("perRetry", per).
		SetIf(h.priorities > 0, "numAttemptsPerPriority", h.priorities)
}

func (w *writer) passive(e ejection, span func(time.Duration, string) string, note noter) *tree.Node {
	e.unsaid("Envoy Gateway", note)
	n := tree.NewMap().Set("consecutive5XxErrors", min(e.consecutive(), math.MaxInt32))
	if e.interval > 0 {
		n.Set("interval", span(toMillis(e.interval), "breaker.window"))
	}
	n.Set("baseEjectionTime", span(e.base, "breaker.open_for")).Set("maxEjectionPercent", e.most)
	return tree.NewMap().Set("passive", n).Set("panicThreshold", e.panic)
}
