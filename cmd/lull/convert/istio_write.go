package convert

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/pretty"
	"github.com/lullgo/lull/internal/tree"
	"github.com/lullgo/lull/internal/waits"
)

// istioVersion is the version of the resources that are written.
const istioVersion = "networking.istio.io/v1"

// An istioHost is a host, with what leads to it and to its subsets.
type istioHost struct {
	name   string
	routes []*tree.Node
	whole  *tree.Node // the traffic policy of the host; nil: there is none
	own    bool       // a dependency is the host itself
	parts  []istioPart
}

// An istioPart is a subset of a host, and its traffic policy.
type istioPart struct {
	name   string
	labels *tree.Node
	policy *tree.Node
	note   noter
}

// istio writes a VirtualService and a DestinationRule for each host. Dependencies that were read of
// Istio have the host, and the subset of it, that they had there.
func (w *writer) istio() []*tree.Node {
	var hosts []*istioHost
	byName, taken := map[string]*istioHost{}, map[string]bool{}
	for _, d := range w.set.File.Dependencies {
		if f := w.destination(d.Name); f.host != "" {
			taken[f.host] = true
		}
	}
	for _, d := range w.set.File.Dependencies {
		note := w.of(d)
		p := d.Policy.WithDefaults()
		f := w.destination(d.Name)
		host := f.host
		if host == "" {
			host = w.host(d.Name, taken, note)
		}
		note(Assumed, "", "it becomes a VirtualService and a DestinationRule for the host "+host+"; which requests are meant is to be filled in")
		h := byName[host]
		if h == nil {
			h = &istioHost{name: host}
			byName[host], hosts = h, append(hosts, h)
		}
		route := w.istioRoute(host, f.subset, d, p, note)
		if rest, ok := strings.CutPrefix(d.Name, host+"/"); ok && rest != f.subset {
			route.Members = append([]tree.Member{{Key: "name", Value: tree.String(rest)}}, route.Members...)
		}
		h.routes = append(h.routes, route)
		t := w.trafficPolicy(d.Name, p, note)
		switch {
		case f.subset != "" && !slices.ContainsFunc(h.parts, func(part istioPart) bool { return part.name == f.subset }):
			h.parts = append(h.parts, istioPart{f.subset, f.labels, t, note})
		case f.subset == "" && !h.own:
			h.own, h.whole = true, t
		}
		noteUnsupported(p, "Istio", note)
		w.facts(d)
	}
	w.services()
	var services, rules []*tree.Node
	for _, h := range hosts {
		services = append(services, object(istioVersion, "VirtualService", h.name, tree.NewMap().
			Set("hosts", tree.ListOf(tree.String(h.name))).Set("http", tree.ListOf(h.routes...))))
		if rule := h.rule(); rule != nil {
			rules = append(rules, object(istioVersion, "DestinationRule", h.name, rule))
		}
	}
	return append(services, rules...)
}

// destination are the host and the subset that a dependency had in Istio; none if it is of another
// system.
func (w *writer) destination(name string) Facts {
	f := w.set.facts[name]
	if w.set.Format(name) != Istio || !properHost(f.host) || f.subset != "" && !properHost(f.subset) {
		return Facts{}
	}
	return f
}

// properHost reports whether a name is one of DNS, to which a route may lead.
func properHost(name string) bool {
	return len(name) <= 253 && labels.MatchString(name) && strings.Trim(name, "0123456789.") != ""
}

// labels are those of a name of DNS.
var labels = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)

// rule is the spec of the DestinationRule; nil: there is nothing to say.
func (h *istioHost) rule() *tree.Node {
	rule := tree.NewMap().Set("host", tree.String(h.name))
	if h.whole != nil && len(h.whole.Members) > 0 {
		rule.Set("trafficPolicy", h.whole)
	}
	subsets := tree.ListOf()
	for _, part := range h.parts {
		if part.labels == nil {
			part.note(Assumed, "", "the labels of the subset "+part.name+" are in none of the files: they are to be filled in")
		}
		s := tree.NewMap().Set("name", tree.String(part.name)).Set("labels", part.labels)
		if part.inherits(h.whole); len(part.policy.Members) > 0 {
			s.Set("trafficPolicy", part.policy)
		}
		subsets.Items = append(subsets.Items, s)
	}
	if len(subsets.Items) > 0 {
		rule.Set("subsets", subsets)
	}
	if len(rule.Members) == 1 {
		return nil
	}
	return rule
}

// inherits switches off in the policy of a subset what it would otherwise have from that of the host.
func (part istioPart) inherits(whole *tree.Node) {
	if whole.Get("outlierDetection") != nil && part.policy.Get("outlierDetection") == nil {
		part.policy.Set("outlierDetection", tree.NewMap().Set("consecutive5xxErrors", tree.Int(0)))
	}
	if whole.Get("connectionPool") != nil && part.policy.Get("connectionPool") == nil {
		part.policy.Set("connectionPool", tree.NewMap().Set("http", tree.NewMap().
			Set("http2MaxRequests", tree.Int(math.MaxInt32)).Set("maxRetries", tree.Int(math.MaxInt32))))
	}
	if whole.Get("retryBudget") != nil && part.policy.Get("retryBudget") == nil {
		part.note(Changed, "budget", "the subset has the retryBudget of its host, which Istio cannot switch off")
	}
}

// object is a Kubernetes object.
func object(version, kind, name string, spec *tree.Node) *tree.Node {
	return tree.NewMap().Set("apiVersion", tree.String(version)).Set("kind", tree.String(kind)).
		Set("metadata", tree.NewMap().Set("name", tree.String(name))).Set("spec", spec)
}

// host is the name of a dependency as the name of a host and of an object. No other dependency has
// it.
func (w *writer) host(name string, taken map[string]bool, note noter) string {
	host := strings.Trim(notHost.ReplaceAllString(strings.ToLower(name), "-"), "-.")
	host = dots.ReplaceAllString(host, ".")
	if len(host) > 200 {
		host = strings.Trim(host[:200], "-.")
	}
	if host == "" || strings.Trim(host, "0123456789.") == "" {
		host = strings.Trim("dependency-"+host, "-.")
	}
	for label := range strings.SplitSeq(host, ".") {
		if len(label) > 63 {
			host = strings.Trim(strings.ReplaceAll(host, ".", "-")[:63], "-")
			break
		}
	}
	for n, own := 2, strings.Trim(host[:min(len(host), 55)], "-."); taken[host]; n++ {
		host = own + "-" + strconv.Itoa(n)
	}
	taken[host] = true
	if host != name {
		note(Changed, "", "hosts have names of DNS: it becomes "+host)
	}
	return host
}

var (
	notHost = regexp.MustCompile(`[^a-z0-9.-]+`)
	dots    = regexp.MustCompile(`-*\.[-.]*`)
)

// istioRoute writes the route for a policy that has its defaults.
func (w *writer) istioRoute(host, subset string, d config.Dependency, p lull.Policy, note noter) *tree.Node {
	destination := tree.NewMap().Set("host", tree.String(host))
	if subset != "" {
		destination.Set("subset", tree.String(subset))
	}
	route := tree.NewMap().Set("route", tree.ListOf(tree.NewMap().Set("destination", destination)))
	attempts := p.MaxAttempts()
	if p.Hedge.Attempts > 1 {
		note(Changed, "hedge", "Istio does not hedge, so the policy is written as one that retries as often")
	}
	deadline := p.Deadline
	if attempts < 2 && waits.Bounded(p) {
		note(Changed, "attempt_timeout", "Istio bounds an attempt only where there are retries: it is the timeout of the call")
		deadline = p.AttemptTimeout
		note(Changed, "deadline", "attempt_timeout is less, and there is one attempt")
	}
	if deadline > 0 {
		route.Set("timeout", tree.String(pretty.Duration(millis(deadline, "deadline", "Istio", note))))
	}
	if attempts < 2 {
		return route.Set("retries", tree.NewMap().Set("attempts", tree.Int(0)))
	}
	retries := tree.NewMap().Set("attempts", tree.Int(attempts-1))
	if waits.Bounded(p) {
		t := millis(p.AttemptTimeout, "attempt_timeout", "Istio", note)
		if p.Deadline > 0 && t >= toMillis(p.Deadline) {
			note(Changed, "attempt_timeout", "rounded it is not less than the timeout, so that it has no effect in Istio")
		}
		retries.Set("perTryTimeout", tree.String(pretty.Duration(t)))
	}
	f := w.failures(d.Name, p)
	on, left := f.istioOn()
	retries.Set("retryOn", tree.String(on))
	if len(left) > 0 {
		note(Lost, "", "Istio knows no status "+joined(left))
	}
	base, _ := fit(p, attempts, proxyGrowth, "Istio", note)
	if whole := base.Truncate(time.Millisecond); whole != base { // the longest duration that there is
		note(Changed, "backoff.base", "Istio counts in whole milliseconds")
		base = whole
	}
	retries.Set("backoff", tree.String(pretty.Duration(base)))
	w.istioHosts(retries, d.Name, note)
	w.retries(d, p, f, "Istio", note)
	if !w.set.foreign[d.Name].ignoresHints {
		note(Lost, "hint_limit", "Istio does not look at Retry-After")
	}
	w.unsafe(d, "Istio retries a request whether it is safe to repeat or not: match the methods that are")
	return route.Set("retries", retries)
}

// istioHosts writes which host a retry goes to, if the dependency comes from a proxy.
func (w *writer) istioHosts(retries *tree.Node, name string, note noter) {
	known := w.set.foreign[name]
	if known.of != Envoy && known.of != Istio {
		return
	}
	h := known.hosts
	switch {
	case !h.others:
		retries.Set("retryIgnorePreviousHosts", &tree.Node{Kind: tree.Bool, Text: "false"})
	case h.more != istioHosts.more:
		note(Changed, "", fmt.Sprintf("Istio looks for a host that was not tried %d times, not %d", 1+istioHosts.more, 1+h.more))
	}
	if h.priorities > 0 {
		retries.Set("retryRemoteLocalities", tree.True())
	}
	if h.priorities > 0 && h.priorities != 2 {
		note(Changed, "", fmt.Sprintf("Istio goes on to other localities after 2 retries, not %d", h.priorities))
	}
}

// trafficPolicy writes the DestinationRule for a policy that has its defaults.
func (w *writer) trafficPolicy(name string, p lull.Policy, note noter) *tree.Node {
	t := tree.NewMap()
	pool := tree.NewMap()
	if p.Limit.InFlight > 0 {
		pool.Set("http2MaxRequests", tree.Int(p.Limit.InFlight))
	}
	b, most := w.bounds(name, p, note)
	if b == nil && most < math.MaxInt32 {
		pool.Set("maxRetries", tree.Int(max(most, 1)))
		if most == 0 {
			note(Changed, "budget", "Istio cannot say that no retry is paid for: it is one at a time")
		}
	}
	if len(pool.Members) > 0 {
		t.Set("connectionPool", tree.NewMap().Set("http", pool))
	}
	if e := w.ejection(name, p, false, "Istio", note); e != nil {
		t.Set("outlierDetection", istioOutlier(*e, note))
	}
	if b != nil {
		n := tree.NewMap().Set("percent", tree.Float(b.percent)).Set("minRetryConcurrency", tree.Int(max(b.least, 1)))
		if b.interval > 0 {
			n.Set("budgetInterval", tree.String(pretty.Duration(toMillis(b.interval))))
			note(Assumed, "budget.window", "budgetInterval is new in Istio; older ones refuse it")
		}
		t.Set("retryBudget", n)
	}
	return t
}

// istioOutlier writes an ejection. Istio does not have its longest time and its jitter.
func istioOutlier(e ejection, note noter) *tree.Node {
	if e.max != max(300*time.Second, e.base) {
		note(Lost, "breaker.open_max", "Istio cannot say it: it is 300s, or the first if that is longer")
	}
	if e.jitter > 0 {
		note(Lost, "breaker.open_jitter", "Istio cannot say it")
	}
	n := tree.NewMap().Set("consecutive5xxErrors", tree.Int(e.five))
	if e.gateway > 0 {
		n.Set("consecutiveGatewayErrors", tree.Int(e.gateway))
	}
	if e.percent > 0 {
		note(Lost, "breaker.failure_rate", "Istio cannot say it")
	} else if e.interval > 0 {
		n.Set("interval", tree.String(pretty.Duration(toMillis(e.interval))))
	}
	if e.panic > 0 {
		n.Set("minHealthPercent", tree.Int(e.panic))
	}
	return n.Set("baseEjectionTime", tree.String(pretty.Duration(toMillis(e.base)))).Set("maxEjectionPercent", tree.Int(e.most))
}
