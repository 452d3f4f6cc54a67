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

const istioVersion = "networking.istio.io/v1"

type istioHost struct {
	name   string
	routes []*tree.Node
	whole  *tree.Node // the traffic policy of the host; nil: there is none
	own    bool       // a dependency is the host itself
	parts  []istioPart
}

type istioPart struct {
	name   string
	labels *tree.Node
	policy *tree.Node
	note   noter
}

// istio writes a VirtualService and a DestinationRule for each host. What was read of Istio has the host and subset of there.
func (w *writer) istio() []*tree.Node {
	var hosts []*istioHost
	byName, taken := map[string]*istioHost{}, map[string]bool{}
	for _, d := range w.set.File.Dependencies {
		if f := w.destination(d.Name); f.host != "" {
			taken[f.host] = true
		}
	}
	w.each("Istio", func(d config.Dependency, p lull.Policy, note noter) {
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
	})
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

// destination are the host and the subset that a dependency had in Istio; none if it is of another system.
func (w *writer) destination(name string) Facts {
	f := w.set.known[name].facts
	if w.set.Format(name) != Istio || !properHost(f.host) || f.subset != "" && !properHost(f.subset) {
		return Facts{}
	}
	return f
}

// properHost reports whether a name is one of DNS, to which a route may lead.
func properHost(name string) bool {
	return len(name) <= 253 && labels.MatchString(name) && strings.Trim(name, "0123456789.") != ""
}

var labels = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)

// rule is the spec of the DestinationRule; nil: there is nothing to say.
func (h *istioHost) rule() *tree.Node {
	rule := tree.NewMap().Set("host", h.name).SetIf(h.whole != nil && len(h.whole.Members) > 0, "trafficPolicy", h.whole)
	subsets := tree.ListOf()
	for _, part := range h.parts {
		if part.labels == nil {
			part.note(Assumed, "", "the labels of the subset "+part.name+" are in none of the files: they are to be filled in")
		}
		part.inherits(h.whole)
		subsets.Items = append(subsets.Items, tree.NewMap().Set("name", part.name).Set("labels", part.labels).
			SetIf(len(part.policy.Members) > 0, "trafficPolicy", part.policy))
	}
	if rule.SetIf(len(subsets.Items) > 0, "subsets", subsets); len(rule.Members) == 1 {
		return nil
	}
	return rule
}

// inherits switches off in the policy of a subset what it would otherwise have from that of the host.
func (part istioPart) inherits(whole *tree.Node) {
	missing := func(name string) bool { return whole.Get(name) != nil && part.policy.Get(name) == nil }
	part.policy.SetIf(missing("outlierDetection"), "outlierDetection", tree.NewMap().Set("consecutive5xxErrors", 0))
	part.policy.SetIf(missing("connectionPool"), "connectionPool", tree.NewMap().Set("http", tree.NewMap().
		Set("http2MaxRequests", math.MaxInt32).Set("maxRetries", math.MaxInt32)))
	part.note.changed(missing("retryBudget"), "budget",
		"the subset has the retryBudget of its host, which Istio cannot switch off")
}

func object(version, kind, name string, spec *tree.Node) *tree.Node {
	return tree.NewMap().Set("apiVersion", version).Set("kind", kind).Set("metadata", tree.NewMap().Set("name", name)).Set("spec", spec)
}

// host is the name of a dependency as the name of a host and of an object. No other dependency has it.
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
	note.changed(host != name, "", "hosts have names of DNS: it becomes "+host)
	return host
}

var (
	notHost = regexp.MustCompile(`[^a-z0-9.-]+`)
	dots    = regexp.MustCompile(`-*\.[-.]*`)
)

func (w *writer) istioRoute(host, subset string, d config.Dependency, p lull.Policy, note noter) *tree.Node {
	destination := tree.NewMap().Set("host", host).SetIf(subset != "", "subset", subset)
	route := tree.NewMap().Set("route", tree.ListOf(tree.NewMap().Set("destination", destination)))
	attempts, deadline := proxyDeadline(p, "Istio", note)
	if deadline > 0 {
		route.Set("timeout", pretty.Duration(millis(deadline, "deadline", "Istio", note)))
	}
	retries := tree.NewMap().Set("attempts", attempts-1)
	if route.Set("retries", retries); attempts < 2 {
		return route
	}
	if waits.Bounded(p) {
		t := millis(p.AttemptTimeout, "attempt_timeout", "Istio", note)
		note.changed(p.Deadline > 0 && t >= toMillis(p.Deadline), "attempt_timeout",
			"rounded it is not less than the timeout, so that it has no effect in Istio")
		retries.Set("perTryTimeout", pretty.Duration(t))
	}
	f := w.failures(d.Name, p)
	on, left := f.istioOn()
	retries.Set("retryOn", on)
	note.lost(len(left) > 0, "", "Istio knows no status "+strings.Join(left, ","))
	base, _ := fit(p, attempts, proxyGrowth, "Istio", note)
	whole := base.Truncate(time.Millisecond) // it is something else for the longest duration that there is
	note.changed(whole != base, "backoff.base", "Istio counts in whole milliseconds")
	retries.Set("backoff", pretty.Duration(whole))
	w.istioHosts(retries, d.Name, note)
	w.retries(d, p, f, "Istio", note)
	note.lost(!w.set.known[d.Name].ignoresHints, "hint_limit", "Istio does not look at Retry-After")
	w.unsafe(d, "Istio retries a request whether it is safe to repeat or not: match the methods that are")
	return route
}

func (w *writer) istioHosts(retries *tree.Node, name string, note noter) {
	known := w.set.known[name]
	if known.of != Envoy && known.of != Istio {
		return
	}
	h := known.hosts
	retries.SetIf(!h.others, "retryIgnorePreviousHosts", false)
	note.changed(h.others && h.more != istioHosts.more, "",
		fmt.Sprintf("Istio looks for a host that was not tried %d times, not %d", 1+istioHosts.more, 1+h.more))
	retries.SetIf(h.priorities > 0, "retryRemoteLocalities", true)
	note.changed(h.priorities > 0 && h.priorities != 2, "",
		fmt.Sprintf("Istio goes on to other localities after 2 retries, not %d", h.priorities))
}

func (w *writer) trafficPolicy(name string, p lull.Policy, note noter) *tree.Node {
	pool := tree.NewMap().SetIf(p.Limit.InFlight > 0, "http2MaxRequests", p.Limit.InFlight)
	b, most := w.bounds(name, p, note)
	if b == nil && most < math.MaxInt32 {
		pool.Set("maxRetries", max(most, 1))
		note.changed(most == 0, "budget", "Istio cannot say that no retry is paid for: it is one at a time")
	}
	t := tree.NewMap().SetIf(len(pool.Members) > 0, "connectionPool", tree.NewMap().Set("http", pool))
	if e := w.ejection(name, p, false, "Istio", note); e != nil {
		t.Set("outlierDetection", istioOutlier(*e, note))
	}
	if b != nil {
		n := tree.NewMap().Set("percent", b.percent).Set("minRetryConcurrency", max(b.least, 1))
		if b.interval > 0 {
			n.Set("budgetInterval", pretty.Duration(toMillis(b.interval)))
			note(Assumed, "budget.window", "budgetInterval is new in Istio; older ones refuse it")
		}
		t.Set("retryBudget", n)
	}
	return t
}

// istioOutlier writes an ejection. Istio does not have its longest time and its jitter.
func istioOutlier(e ejection, note noter) *tree.Node {
	e.unsaid("Istio", note)
	return tree.NewMap().Set("consecutive5xxErrors", e.five).SetIf(e.gateway > 0, "consecutiveGatewayErrors", e.gateway).
		SetIf(e.percent == 0 && e.interval > 0, "interval", pretty.Duration(toMillis(e.interval))).
		SetIf(e.panic > 0, "minHealthPercent", e.panic).
		Set("baseEjectionTime", pretty.Duration(toMillis(e.base))).Set("maxEjectionPercent", e.most)
}
