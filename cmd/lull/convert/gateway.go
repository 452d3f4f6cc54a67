package convert

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/pretty"
	"github.com/lullgo/lull/internal/tree"
	"github.com/lullgo/lull/internal/waits"
)

// Versions of what is written.
const (
	routeVersion   = "gateway.networking.k8s.io/v1"
	trafficVersion = "gateway.networking.x-k8s.io/v1alpha1"
)

// envoyGatewayGroup is the group of the resources of Envoy Gateway, and what the name of its controller begins with.
const envoyGatewayGroup = "gateway.envoyproxy.io"

const allowedGateway = "a duration such as 500ms, 2s or 1m30s, of up to four whole numbers of at most five digits"

var gatewayDuration = regexp.MustCompile(`^([0-9]{1,5}(h|m|s|ms)){1,4}$`)

const longestGateway = 99999 * time.Hour

func parseGateway(text string) (time.Duration, bool) {
	if !gatewayDuration.MatchString(text) {
		return 0, false
	}
	return tree.ParseGo(text)
}

// formatGateway writes a duration for parseGateway, rounded up to whole milliseconds, or the longest that the form has.
func formatGateway(d time.Duration) string {
	d = toMillis(min(d, longestGateway))
	s := ""
	for _, unit := range []struct {
		d    time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}, {time.Millisecond, "ms"}} {
		if n := d / unit.d; n > 0 {
			s += strconv.FormatInt(int64(n), 10) + unit.name
			d -= n * unit.d
		}
	}
	return s
}

// gatewayBudget has the defaults of GEP-3388 for a retryConstraint.
var gatewayBudget = budget.Config{Ratio: 0.2, Window: 10 * time.Second, Floor: 10, Earn: budget.Arrivals}

type gatewayReader struct {
	r         *reading
	d         *document
	namespace string
	budgets   map[backend]*constrained
	order     []*constrained
	traffics  []*trafficPolicy // of Envoy Gateway
	envoy     map[backend]bool // the Gateways that are Envoy Gateway's
}

type httpRoute struct {
	d               *document
	spec            *tree.Object
	namespace, name string
	parents         []backend // its Gateways
}

// A backend is the name of a Service, or of another object of Kubernetes.
type backend struct{ namespace, name string }

// A constrained is a Service with a retryConstraint.
type constrained struct {
	d      *document
	path   string
	name   string
	budget budget.Config
	used   bool
}

func (r *reading) gateway(docs []*document) {
	g := &gatewayReader{r: r, budgets: map[backend]*constrained{}, envoy: envoyGateways(docs)}
	var routes []httpRoute
	for d, o := range mappings(docs) {
		g.d = d
		group, versions := "gateway.networking.k8s.io", []string{"v1", "v1beta1", "v1alpha2"}
		switch own, _, _ := strings.Cut(textOf(d.root.Get("apiVersion")), "/"); own {
		case "gateway.networking.x-k8s.io", envoyGatewayGroup:
			group, versions = own, []string{"v1alpha1"}
		}
		kind, meta := d.object(o, group, versions...)
		g.namespace = meta.namespace
		var read func(*tree.Object)
		switch {
		case kind == "HTTPRoute":
			read = func(spec *tree.Object) { routes = append(routes, g.route(spec, meta.name)) }
		case group == envoyGatewayGroup && kind == "BackendTrafficPolicy":
			read = func(spec *tree.Object) { g.backendTraffic(spec, meta.name) }
		case group != envoyGatewayGroup && slices.Contains([]string{"XBackendTrafficPolicy", "BackendTrafficPolicy", "BackendLBPolicy"}, kind):
			read = g.traffic
		}
		if read == nil {
			d.unreadObject()
			o.Get("spec") // which may be given twice
		} else if spec := o.Object("spec"); spec != nil {
			read(spec)
		}
	}
	for _, route := range routes {
		g.d, g.namespace = route.d, route.namespace
		for i, rule := range route.spec.Objects("rules") {
			if r.full {
				return
			}
			g.rule(route, rule, i)
		}
		g.d.noteUnread(route.spec, routingWhy)
	}
	for _, c := range g.order {
		if !c.used {
			c.d.assume(true, c.path,
				"no rule in these files leads to "+tree.Quote(c.name)+": one attempt, and no deadline, as nothing is known of it")
			policy := r.base.of(Gateway).policy
			policy.Budget = c.budget
			r.add(c.d, c.name, nil, c.path, policy, Gateway.known())
		}
	}
	g.leftTraffic()
}

func (g *gatewayReader) route(spec *tree.Object, name string) httpRoute {
	route := httpRoute{d: g.d, spec: spec, namespace: g.namespace, name: name}
	for _, p := range spec.Objects("parentRefs") {
		route.parents = append(route.parents, backend{cmp.Or(p.String("namespace"), g.namespace), p.String("name")})
		g.d.noteRouting(p, "name", "namespace")
	}
	return route
}

// envoyGateways are the Gateways that are Envoy Gateway's by their class, or by a policy that is for them.
func envoyGateways(docs []*document) map[backend]bool {
	classes, found := map[string]bool{}, map[backend]bool{}
	for _, d := range docs {
		if textOf(d.root.Get("kind")) == "GatewayClass" && strings.HasPrefix(textOf(d.root.Get("spec").Get("controllerName")), envoyGatewayGroup+"/") {
			classes[textOf(d.root.Get("metadata").Get("name"))] = true
		}
	}
	for _, d := range docs {
		meta, spec := d.root.Get("metadata"), d.root.Get("spec")
		namespace := textOf(meta.Get("namespace"))
		if textOf(d.root.Get("kind")) == "Gateway" && classes[textOf(spec.Get("gatewayClassName"))] {
			found[backend{namespace, textOf(meta.Get("name"))}] = true
		}
		if !strings.HasPrefix(textOf(d.root.Get("apiVersion")), envoyGatewayGroup+"/") {
			continue
		}
		for _, target := range append(slices.Clip(spec.Get("targetRefs").Elements()), spec.Get("targetRef")) {
			if textOf(target.Get("kind")) == "Gateway" {
				found[backend{namespace, textOf(target.Get("name"))}] = true
			}
		}
	}
	return found
}

func (g *gatewayReader) rule(route httpRoute, o *tree.Object, i int) {
	d := g.d
	name := o.String("name")
	traffic := g.trafficOf(route, name)
	name = cmp.Or(name, fmt.Sprintf("rules[%d]", i))
	backends, why := g.backends(o)
	if why != "" {
		d.lost(o, Lost, why, "timeouts", "retry", "sessionPersistence")
		d.noteUnread(o, routingWhy)
		return
	}
	if len(backends) == 0 {
		backends = []backend{{g.namespace, name}}
	}
	of := choice.Either(traffic != nil || g.envoys(route, o), EnvoyGateway, Gateway)
	policy := g.r.base.of(of).policy
	t := o.Object("timeouts")
	request, bounded := gatewayTimeout(t, "request", &policy.Deadline)
	attempt, _ := gatewayTimeout(t, "backendRequest", &policy.AttemptTimeout)
	if request > 0 && attempt > request {
		n := t.Field("backendRequest")
		d.Wrong(n, t.At("backendRequest"), n.Found(), "at most the request's "+pretty.Duration(request), "")
	}
	t.NoMore("request", "backendRequest")
	if traffic != nil {
		traffic.start(&policy, bounded)
	} else if of == EnvoyGateway {
		d.assume(!bounded, o.Path, "without timeouts.request Envoy Gateway ends a call after 15s")
	} else {
		d.assume(!bounded, o.Path,
			"without timeouts.request it is the gateway's own business how long a call may take; here nothing bounds it")
	}
	path := o.Path
	var f *failures
	if r := o.Object("retry"); r != nil {
		f = g.retry(r, &policy)
		path = r.At("codes")
		why = f.apply(&policy)
		if policy.HintLimit == anyHint {
			policy.HintLimit = engine.DefaultHintLimit
		}
	} else if traffic != nil && traffic.retry != nil {
		traffic.retry.apply(&policy, policy.Deadline)
		f, path, why = traffic.retry.failures(), traffic.retry.onPath, traffic.retry.why
	} else if traffic == nil && of == EnvoyGateway {
		d.note(Assumed, o.Path, "without retry Envoy Gateway makes none")
	} else if traffic == nil {
		d.note(Assumed, o.Path, "without retry it is the gateway's own business whether it retries; here it does not")
	}
	d.lost(o, Lost, "a policy knows no sessions", "sessionPersistence")
	d.noteUnread(o, routingWhy)
	var methods []Method
	for _, m := range o.Node.Get("matches").Elements() {
		methods = d.methodsIn(m.Get("method"), methods)
	}
	for _, b := range backends {
		p := policy
		c, constrained := g.budgets[b]
		if constrained {
			p.Budget, c.used = c.budget, true
		} else if !g.r.base.given {
			p.Budget = budget.Config{Unlimited: true}
		}
		extras, on := Gateway.known(), d
		extras.retried = f
		var rest []source
		if traffic != nil {
			extras, rest = traffic.finish(&p, f), []source{traffic.d.source(traffic.path)}
			if o.Field("retry") == nil {
				on = traffic.d
			}
		}
		if f != nil {
			on.noteSelection(path, why, b.name)
		}
		facts := &extras.facts
		facts.Service, facts.Namespace, facts.host, facts.Methods = b.name, b.namespace, b.name, methods
		if traffic == nil { // a policy of the gateway's own may set what is unknown
			d.unknown(facts, "breaker", "limit")
			if !constrained {
				d.unknown(facts, "budget")
			}
			if o.Field("retry") == nil && of == Gateway {
				d.unknown(facts, "attempts")
			}
			if !bounded && of == Gateway {
				d.unknown(facts, "deadline")
			}
		}
		if constrained {
			extras.places["budget"] = c.d.at(tree.Concat(c.path, "retryConstraint")).Position
		}
		g.r.add(g.d, b.name, []string{b.name + "/" + name}, o.Path, p, extras, rest...)
	}
}

func gatewayTimeout(o *tree.Object, name string, into *time.Duration) (t time.Duration, given bool) {
	if t, given = o.Duration(name, 0, allowedGateway, parseGateway); given {
		*into = cmp.Or(t, lull.NoTimeout)
	}
	return t, given
}

// backends are the Services, or what else answers, to which a rule leads. why is the reason if the rule makes no calls.
func (g *gatewayReader) backends(o *tree.Object) (all []backend, why string) {
	for _, filter := range o.Node.Get("filters").Elements() {
		if filter.Get("requestRedirect") != nil {
			why = "the rule redirects, and calls nothing"
		}
	}
	refs := o.Objects("backendRefs")
	if len(refs) == 0 && o.Field("retry") == nil && o.Field("timeouts") == nil && why == "" {
		why = "the rule leads to no backend"
	}
	for _, ref := range refs {
		b := backend{cmp.Or(ref.String("namespace"), g.namespace), ref.String("name")}
		if delegates(ref.Node) {
			if len(all) == 0 {
				why = "the rule hands on to other routes, and what these make of it is the gateway's own business"
			}
			b.name = ""
		}
		if b.name != "" && !slices.Contains(all, b) {
			all = append(all, b)
		}
		g.d.noteRouting(ref, "namespace")
	}
	if len(all) > 0 {
		why = ""
	}
	return all, why
}

// delegates reports whether a backendRef leads to routes: an HTTPRoute, or those with a label (kgateway, Gloo).
func delegates(ref *tree.Node) bool {
	return strings.HasSuffix(textOf(ref.Get("kind")), "Route") || strings.HasPrefix(textOf(ref.Get("group")), "delegation.")
}

// envoys reports whether a rule is Envoy Gateway's: by the class of its Gateway, or because it refers to a resource of it.
func (g *gatewayReader) envoys(route httpRoute, o *tree.Object) bool {
	refs := slices.Concat(o.Node.Get("backendRefs").Elements(), o.Node.Get("filters").Elements())
	return slices.ContainsFunc(refs, func(item *tree.Node) bool {
		return textOf(item.Get("group")) == envoyGatewayGroup || textOf(item.Get("extensionRef").Get("group")) == envoyGatewayGroup
	}) || slices.ContainsFunc(route.parents, func(p backend) bool { return g.envoy[p] })
}

func (g *gatewayReader) retry(o *tree.Object, p *lull.Policy) *failures {
	d := g.d
	items, path := o.List("codes")
	// All implementations retry failed connections, although the API does not require it.
	f := &failures{on: []string{"connect-failure", "refused-stream", "reset", statusCodes}, statuses: d.statuses(items, path, 400)}
	if len(items) == 0 {
		f.statuses = []int{500, 502, 503, 504}
		d.note(Assumed, o.Path, "without codes it is the gateway's own business which it retries: 500, 502, 503 and 504, which each must know")
	}
	if n, ok := o.Whole("attempts", 1, math.MaxInt32, "a whole number from 1"); ok {
		p.Attempts = d.attempts(n, o.At("attempts"))
	} else if !d.based {
		p.Attempts = 2
		d.note(Assumed, o.Path, "without attempts it is the gateway's own business how many; here it is one")
	}
	d.assume(!o.Has("backoff"), o.Path,
		"without backoff it is the gateway's own business how long it waits; here for up to 25ms before the first retry, and for up to 250ms at most")
	if b, ok := o.Duration("backoff", 0, allowedGateway, parseGateway); ok && b > 0 {
		p.Backoff = gatewayWaits(b)
		d.note(Assumed, o.At("backoff"), "it is the shortest wait; how waits grow, and how they are spread, is the gateway's own business: here they double, with full jitter above it")
	}
	o.NoMore("codes", "attempts", "backoff")
	return f
}

func gatewayWaits(shortest time.Duration) backoff.Schedule {
	return backoff.Schedule{Base: min(shortest, math.MaxInt64/2) * 2, Floor: shortest, Cap: min(shortest, math.MaxInt64/20) * 20}
}

func (g *gatewayReader) traffic(spec *tree.Object) {
	d := g.d
	b := gatewayBudget
	c := spec.Object("retryConstraint")
	if c != nil {
		share, rate := c.Object("budget"), c.Object("minRetryRate")
		b.Ratio = max(float64(upTo(100, share, "percent", 20))/100, budget.MinRatio)
		b.Window = interval(share, b.Window)
		share.NoMore("percent", "interval")
		if n, ok := rate.Whole("count", 1, 1_000_000, "a whole number from 1 to 1000000"); ok {
			b.Floor = float64(n)
		}
		b.Floor /= interval(rate, time.Second).Seconds()
		rate.NoMore("count", "interval")
		c.NoMore("budget", "minRetryRate")
		for _, each := range [][3]string{{"budget", "percent", "20 % of the requests"}, {"budget", "interval", "those of 10s"}, {"minRetryRate", "count", "10"}, {"minRetryRate", "interval", "each second"}} {
			d.noteIf(c.Field(each[0]).Get(each[1]) == nil, Assumed, c.Path, "without "+each[0]+"."+each[1]+" it is "+each[2])
		}
		d.note(Changed, c.Path, "a gateway counts all the retries of a request's clients; a budget those of one process")
	}
	for _, t := range spec.Objects("targetRefs") {
		name := t.String("name")
		d.noteUnread(t, routingWhy)
		if c == nil || name == "" {
			continue
		}
		service := backend{g.namespace, name}
		if g.budgets[service] != nil {
			d.Wrong(t.Node, t.At("name"), tree.Quote(name)+" once more", "one constraint for each Service", "")
			continue
		}
		g.budgets[service] = &constrained{d: d, path: spec.Path, name: name, budget: b}
		g.order = append(g.order, g.budgets[service])
	}
	d.lost(spec, Lost, "a policy knows no sessions", "sessionPersistence")
}

func interval(o *tree.Object, otherwise time.Duration) time.Duration {
	t, ok := o.Duration("interval", time.Second, "a duration from 1s to 1h", func(text string) (time.Duration, bool) {
		t, ok := parseGateway(text)
		return t, ok && t <= time.Hour
	})
	return choice.Either(ok, t, otherwise)
}

// gateway writes an HTTPRoute for each dependency, and an XBackendTrafficPolicy if it has a budget.
func (w *writer) gateway() []*tree.Node {
	var routes, policies []*tree.Node
	taken, paid := map[string]bool{}, map[string]bool{}
	w.each("a gateway", func(d config.Dependency, p lull.Policy, note noter) {
		name, service := w.routeTo(d, taken, note)
		note(Assumed, "", "it becomes an HTTPRoute to the Service "+service+"; the port, which requests are meant, and the Gateway are to be filled in")
		rule := tree.NewMap()
		attempts := w.gatewayRule(rule, d, p, note)
		rule.Set("backendRefs", tree.ListOf(tree.NewMap().Set("name", service).Set("port", 80)))
		routes = append(routes, object(routeVersion, "HTTPRoute", name, tree.NewMap().Set("rules", tree.ListOf(rule))))
		switch {
		case attempts < 2:
			unpaid(p.Budget, note)
		case !p.Budget.Unlimited && paid[service]:
			note(Changed, "budget", "the Service has the constraint of the first dependency that leads there")
		case !p.Budget.Unlimited:
			paid[service] = true
			policies = append(policies, object(trafficVersion, "XBackendTrafficPolicy", name, constraint(service, p.Budget, note)))
		}
		note.lost(!p.Breaker.Off, "breaker", "the Gateway API has none")
		note.lost(p.Limit.InFlight > 0, "limit", "the Gateway API has none")
	})
	return append(routes, policies...)
}

// routeTo are the name of the route, and the Service: the one that it led to when it was read of a gateway.
func (w *writer) routeTo(d config.Dependency, taken map[string]bool, note noter) (name, service string) {
	f := w.set.known[d.Name].facts
	if of := w.set.Format(d.Name); of != Gateway || !properHost(f.host) || strings.Contains(f.host, ".") {
		name = w.host(d.Name, taken, note)
		return name, name
	}
	return w.host(d.Name, taken, func(k Kind, field, why string) {}), f.host
}

// gatewayRule writes the rule for a policy that has its defaults, and returns the number of attempts of a call.
func (w *writer) gatewayRule(rule *tree.Node, d config.Dependency, p lull.Policy, note noter) int {
	const system = "the Gateway API"
	timeouts, span := tree.NewMap(), gatewaySpans(system, note)
	if p.Deadline > 0 {
		timeouts.Set("request", span(p.Deadline, "deadline"))
	}
	if waits.Bounded(p) {
		timeouts.Set("backendRequest", span(p.AttemptTimeout, "attempt_timeout"))
	}
	rule.SetIf(len(timeouts.Members) > 0, "timeouts", timeouts)
	attempts := p.MaxAttempts()
	note.changed(p.Hedge.Attempts > 1, "hedge",
		system+" knows no hedging, so the policy is written as one that retries as often")
	if attempts < 2 {
		note(Assumed, "attempts", system+" cannot say that nothing is retried; it is left out, and the gateway's own business")
		return attempts
	}
	f := w.failures(d.Name, p)
	codes := tree.ListOf()
	for status := 400; status < 600; status++ {
		if f.retried(status) && (status < 506 || !f.includes("5xx")) {
			codes.Items = append(codes.Items, tree.Int(status))
		}
	}
	retry := tree.NewMap().SetIf(len(codes.Items) > 0, "codes", codes).Set("attempts", attempts-1)
	shortest := waits.Range(p.Backoff, 1)[0]
	written := backoff.Schedule{}
	if shortest > 0 {
		text := formatGateway(shortest)
		retry.Set("backoff", text)
		b, _ := parseGateway(text)
		written = gatewayWaits(b)
	}
	note.changed(shortest == 0 || !waits.Same(p.Backoff, written, attempts-1), "backoff",
		system+" has the shortest wait and nothing else: how waits grow, and how they are spread, is the gateway's own business")
	switch known := w.set.known[d.Name]; {
	case known.of == Gateway && known.retried != nil:
		w.took[selection+about(":"+d.Name)] = true
	case known.retried != nil:
		note(Changed, "", "of what is retried, "+system+" can say the statuses only: "+f.String())
	case len(known.codes) > 0:
		note(Lost, "", system+" knows no gRPC status here")
	default:
		note(Assumed, "", "which statuses are retried is written as lullhttp sees them")
		rateLimitedWaits(p, f, "a gateway", note)
	}
	note.lost(p.Timeouts != lull.TimeoutsAlways, "timeouts", system+" cannot say whether they are retried; most gateways do")
	note(Lost, "hint_limit", system+" knows nothing of Retry-After")
	w.unsafe(d, "a gateway retries a request whether it is safe to repeat or not: match the methods that are")
	rule.Set("retry", retry)
	return attempts
}

func gatewaySpans(system string, note noter) func(t time.Duration, field string) string {
	return func(t time.Duration, field string) string {
		text := formatGateway(t)
		back, _ := parseGateway(text)
		note.changed(back != t, field, system+" has durations in whole milliseconds, of up to 99999h: "+text)
		return text
	}
}

func constraint(name string, c budget.Config, note noter) *tree.Node {
	b := proxyBudgetOf(c)
	interval, count := gatewayBudget.Window, float64(b.least)
	if c.Window > 0 {
		interval = min(max(c.Window, time.Second), time.Hour)
		count = math.Round(c.Floor * interval.Seconds())
	}
	note(Changed, "budget", "a gateway counts all the retries of a request's clients, and what it lets pass is a rate; a budget is that of one process")
	target := tree.NewMap().Set("group", "").Set("kind", "Service").Set("name", name)
	return tree.NewMap().Set("targetRefs", tree.ListOf(target)).Set("retryConstraint", tree.NewMap().
		Set("budget", tree.NewMap().Set("percent", int64(math.Round(b.percent))).Set("interval", formatGateway(interval))).
		Set("minRetryRate", tree.NewMap().Set("count", int64(min(max(count, 1), 1_000_000))).Set("interval", formatGateway(interval))))
}
