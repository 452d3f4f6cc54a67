package convert

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/tree"
)

const allowedMillis = "a duration of at least 1ms in whole milliseconds, such as 250ms or 2s"

// istioDefault are the failures that Istio has Envoy retry by default, and Envoy Gateway beside 503 (pilot/pkg/networking/core/route/retry).
var istioDefault = failures{on: []string{"connect-failure", "refused-stream", "unavailable", "cancelled", statusCodes}}

// istioVersions are the known versions of the resources. They have the same fields, as far as they are read.
var istioVersions = []string{"v1", "v1beta1", "v1alpha3"}

var istioHosts = hosts{others: true, more: 4}

type istioReader struct {
	r        *reading
	d        *document
	services map[string]*service // those to which others may delegate, by namespace/name
	rules    map[string]*rule    // by host
	order    []*rule
}

type service struct {
	d         *document
	spec      *tree.Node
	namespace string
	delegated bool // a route of another delegates to it
}

// A rule is the traffic policy of a host, or of a subset of it.
type rule struct {
	d    *document
	full string // the host in full; empty: of a subset
	host string // as it is written, with the subset
	path string
	// namespace is that of the object, and settings its trafficPolicy, at settingsAt.
	namespace  string
	settings   *tree.Node
	settingsAt string
	guard      guard
	extras     known // with the places of the fields
	hash       bool  // each request has its own host

	retriesAt string // the path of maxRetries
	retriesIn *document
	subsets   map[string]*rule
	labels    map[string]*tree.Node // of all subsets, those without settings as well
	routed    bool                  // a route for requests leads there
	connected bool                  // a route for connections leads there
}

func (t *rule) has(field string, d *document, path string) {
	t.extras.places = maps.Clone(t.extras.places) // a subset begins with those of its host
	t.extras.places[field] = d.at(path).Position
}

func (r *reading) istio(docs []*document) {
	i := &istioReader{r: r, services: map[string]*service{}, rules: map[string]*rule{}}
	var services []*service
	specs := map[string][]spec{} // of DestinationRules, by host
	var hosts []string
	for d, o := range mappings(docs) {
		i.d = d
		switch kind, meta := d.object(o, "networking.istio.io", istioVersions...); kind {
		case "VirtualService":
			if n, path := o.Get("spec"); n != nil && d.Object(n, path) != nil {
				s := &service{d: d, spec: n, namespace: meta.namespace}
				services = append(services, s)
				if n.Get("hosts") == nil { // Istio delegates to no others
					i.services[meta.namespace+"/"+meta.name] = s
				}
			}
		case "DestinationRule":
			if o := o.Object("spec"); o != nil {
				host := o.String("host")
				if host == "" {
					d.Wrong(o.Node, o.At("host"), "missing", "the host that the rule is for", "")
				}
				full := fullHost(host, meta.namespace)
				if host != "" && specs[full] == nil {
					hosts = append(hosts, full)
				}
				specs[full] = append(specs[full], spec{d, o, host, meta.namespace})
			}
		default:
			d.unreadObject()
			o.Get("spec") // which may be given twice
		}
	}
	for _, host := range hosts {
		i.destinationRules(host, specs[host])
	}
	for _, s := range services {
		for _, route := range s.spec.Get("http").Elements() {
			if to, _ := i.delegate(route.Get("delegate"), s.namespace); to != nil && to != s {
				to.delegated = true
			}
		}
	}
	for _, s := range services {
		if !s.delegated {
			i.virtualService(s, nil)
		}
	}
	for _, t := range i.order {
		i.d = t.d
		switch {
		case t.routed:
		case len(t.extras.places) == 0: // it has no setting of calls
			i.d.noteIf(!t.connected, Aside, t.path,
				"it sets nothing of how calls are made: for those to "+tree.Quote(t.host)+" Istio's own defaults count")
		case t.connected:
			i.d.lost(i.d.Object(t.settings, t.settingsAt), Lost, "only connections lead to "+tree.Quote(t.host)+" in these files, and a policy is for requests", "connectionPool", "outlierDetection", "retryBudget")
		default:
			host, subset, _ := strings.Cut(t.host, "/")
			facts := Facts{Unknown: []string{"attempts", "attempt_timeout", "backoff", "deadline"}, subset: subset}
			facts.serviceAt(host, t.namespace)
			i.call(t.path, "", istioCall{}, []destination{{t.host, t, facts}})
		}
	}
	for _, t := range i.order {
		t.guard.bound.unused()
	}
}

// object reads what an object of Kubernetes has beside its spec: its kind and its name. versions are those of the group that are known.
func (d *document) object(o *tree.Object, group string, versions ...string) (kind string, name backend) {
	if version, ok := strings.CutPrefix(o.String("apiVersion"), group+"/"); !ok || !slices.Contains(versions, version) {
		d.note(Assumed, "apiVersion", "it is not known here, and read as "+group+"/"+versions[0])
	}
	o.Get("status")
	meta, _ := o.Get("metadata")
	d.annotations()
	d.noteIf(meta != nil, Aside, "metadata", "names, not how calls are made")
	return o.String("kind"), backend{textOf(meta.Get("namespace")), textOf(meta.Get("name"))}
}

// fullHost is a host as Istio reads it: a short name is in the namespace.
func fullHost(host, namespace string) string {
	if namespace == "" || strings.ContainsAny(host, ".*") {
		return host
	}
	return host + "." + namespace + ".svc.cluster.local"
}

// ruleOf is the rule for a host in a VirtualService of that namespace. It is the rule for the same name or, if the file does
// not give the namespace, for the same short name; otherwise the rule with the longest wildcard that matches.
func (i *istioReader) ruleOf(host, namespace string) *rule {
	full := fullHost(host, namespace)
	if t := i.rules[full]; t != nil {
		return t
	}
	short := !strings.ContainsAny(host, ".*")
	for _, t := range i.order {
		if short && (t.full == host || namespace == "" && strings.HasPrefix(t.full, host+".") && strings.HasSuffix(t.full, ".svc.cluster.local")) {
			return t
		}
	}
	var best *rule
	for _, t := range i.order {
		if suffix, wild := strings.CutPrefix(t.full, "*"); wild && strings.HasSuffix(full, suffix) && (best == nil || len(t.full) > len(best.full)) {
			best = t
		}
	}
	return best
}

// delegate is the VirtualService to which a route delegates; nil if it is not there.
func (i *istioReader) delegate(n *tree.Node, namespace string) (s *service, name string) {
	if n == nil || n.Get("name") == nil {
		return nil, ""
	}
	if own := n.Get("namespace"); own != nil {
		namespace = own.Text
	}
	name = namespace + "/" + n.Get("name").Text
	return i.services[name], strings.TrimPrefix(name, "/")
}

// virtualService reads HTTP routes. from is the route that delegates to it; nil: none does.
func (i *istioReader) virtualService(s *service, from *istioCall) {
	d := s.d
	i.d = d
	o := d.Object(s.spec, "spec")
	for n, route := range o.Objects("http") {
		if i.r.full {
			return
		}
		i.d = d
		i.httpRoute(route, cmp.Or(route.String("name"), fmt.Sprintf("http[%d]", n)), s, from)
	}
	for _, other := range []string{"tcp", "tls"} {
		n, path := o.Get(other)
		if n == nil {
			continue
		}
		for _, route := range n.Items {
			for _, item := range route.Get("route").Elements() {
				i.connect(item.Get("destination"), s.namespace)
			}
		}
		d.note(Aside, path, "connections have no retries")
	}
	d.noteUnread(o, routingWhy)
}

func (i *istioReader) connect(to *tree.Node, namespace string) {
	host := textOf(to.Get("host"))
	if t := i.ruleOf(host, namespace); t != nil && host != "" {
		t.connected = true
		if subset := t.subsets[textOf(to.Get("subset"))]; subset != nil {
			subset.connected = true
		}
	}
}

type istioCall struct {
	methods []Method      // that the route names
	timeout time.Duration // zero: none
	retry   *envoyRetry   // nil: none
}

type destination struct {
	name  string
	rule  *rule
	facts Facts
}

func (i *istioReader) httpRoute(o *tree.Object, name string, s *service, from *istioCall) {
	d := i.d
	var c istioCall
	c.timeout, _ = millisIn(o, "timeout")
	if retries := o.Object("retries"); retries != nil {
		c.retry = i.retries(retries, istioDefault)
	}
	for _, m := range o.Node.Get("match").Elements() {
		if uri := m.Get("uri"); !isGRPCPath(textOf(uri.Get("exact"))) && !isGRPCPath(textOf(uri.Get("prefix"))) {
			c.methods = d.methodsIn(m.Get("method"), c.methods)
		}
	}
	if from != nil {
		c.methods = append(c.methods, from.methods...)
		c.timeout = cmp.Or(c.timeout, from.timeout)
		c.retry = cmp.Or(c.retry, from.retry)
	}
	to := i.destinations(o, s.namespace)
	if n, path := o.Get("fault"); n != nil {
		d.note(Lost, path, "a policy makes no faults; lull simulate does")
	}
	delegate, path := o.Get("delegate")
	d.noteUnread(o, routingWhy)
	next, called := i.delegate(delegate, s.namespace)
	why := ""
	switch {
	case len(to) > 0:
		i.call(o.Path, name, c, to)
	case delegate == nil:
		why = "the route leads to no destination"
	case from != nil:
		why = "Istio follows one delegate, and no other from there"
	case next == nil || next == s:
		why = "the VirtualService " + tree.Quote(called) + " is not in these files"
	default:
		i.virtualService(next, &c)
	}
	if i.d = d; why != "" {
		d.noteIf(delegate != nil, Lost, path, why)
		d.idle(o, why, "timeout", "retries")
	}
}

// call adds a dependency for each destination. path is that of the route in i.d, or of the rule if no route leads there.
func (i *istioReader) call(path, name string, c istioCall, to []destination) {
	d := i.d
	policy := i.r.base.of(Istio).policy
	policy.Deadline = cmp.Or(c.timeout, policy.Deadline)
	d.assume(c.timeout == 0, path, "without timeout Istio bounds no call")
	var f *failures
	why, on, at := "", d, path
	if r := c.retry; r != nil {
		r.apply(&policy, policy.Deadline)
		f, why, on, at = r.failures(), r.why, r.d, r.onPath
	} else if !d.based {
		f = &istioDefault
		d.note(Assumed, path, "without retries Istio makes two, within 25ms and 50ms, each to another host if there is one, after "+f.String())
		why = f.apply(&policy)
	}
	d.noteAbout(policy.Attempts > 1 && policy.HintLimit == anyHint, hints, Changed, path,
		"Istio does not look at Retry-After; lull does, and waits for up to 30s")
	for _, each := range to {
		p, extras := policy, Istio.known()
		extras.retries = unlimited
		hash := false
		var rest []source
		if t := each.rule; t != nil {
			t.guard.apply(&p)
			extras, hash = t.extras, t.hash
			t.guard.addTo(&extras.foreign)
			t.routed = true
			rest = []source{t.d.source(t.path)}
		}
		if c.retry != nil {
			rest = append(rest, c.retry.d.source(c.retry.path))
		}
		extras.retried, extras.ignoresHints = f, true
		if extras.hosts = istioHosts; c.retry != nil {
			extras.hosts = c.retry.hosts
		}
		if hash && (c.retry == nil || !c.retry.chosen) { // each request has a host of its own
			extras.hosts.others = false
		}
		facts := &extras.facts
		*facts = each.facts
		facts.Methods = c.methods
		c.retry.longIn(facts)
		if each.rule == nil {
			d.unknown(facts, "breaker", "budget", "limit")
		}
		on.noteSelection(at, why, each.name)
		var others []string
		if name != "" {
			others = []string{each.name + "/" + name}
		}
		i.r.add(d, each.name, others, path, p, extras, rest...)
	}
}

func (i *istioReader) destinations(o *tree.Object, namespace string) (all []destination) {
	for _, r := range o.Objects("route") {
		dest := r.Object("destination")
		if dest == nil {
			continue
		}
		host := dest.String("host")
		if host == "" {
			i.d.Wrong(dest.Node, dest.At("host"), "missing", "the host that the route leads to", "")
			continue
		}
		to := destination{name: host, rule: i.ruleOf(host, namespace)}
		to.facts.serviceAt(host, namespace)
		if subset := dest.String("subset"); subset != "" {
			to.name, to.facts.subset = to.name+"/"+subset, subset
			if t := to.rule; t != nil {
				to.facts.labels, to.rule = t.labels[subset], cmp.Or(t.subsets[subset], t)
			}
		}
		if !slices.ContainsFunc(all, func(known destination) bool { return known.name == to.name && known.rule == to.rule }) {
			all = append(all, to)
		}
		i.d.noteUnread(dest, routingWhy)
		i.d.noteUnread(r, routingWhy)
	}
	return all
}

func millisIn(o *tree.Object, name string) (time.Duration, bool) {
	return o.Duration(name, time.Millisecond, allowedMillis, func(text string) (time.Duration, bool) {
		t, ok := tree.ParseGo(text)
		return t, ok && t%time.Millisecond == 0
	})
}

// retries reads an HTTPRetry, by the rules of Istio's validation. otherwise has the failures that it retries by default.
func (i *istioReader) retries(o *tree.Object, otherwise failures) *envoyRetry {
	d := i.d
	r := &envoyRetry{d: d, of: Istio, path: o.Path, on: otherwise, onPath: o.Path, numPath: o.At("attempts"), hosts: istioHosts}
	n, ok := o.Whole("attempts", 0, math.MaxInt32, "a whole number from 0")
	r.retries, r.given = n, n > 0
	if r.retries == 0 && (ok || !o.Has("attempts")) {
		for _, name := range []string{"perTryTimeout", "retryOn", "retryRemoteLocalities"} {
			if o.Has(name) {
				d.Wrong(o.Field(name), o.At(name), "given where attempts is 0", "nothing beside attempts: 0, which switches retries off", "")
			}
		}
	}
	r.perTryPath = o.At("perTryTimeout")
	r.perTry, _ = millisIn(o, "perTryTimeout")
	base, _ := millisIn(o, "backoff")
	if n, path := o.Get("retryOn"); n != nil && d.Check(n.Kind == tree.Text, n, path, "a text such as connect-failure,refused-stream,503") && n.Text != "" {
		words := slices.Concat(onHTTP, onGRPC)
		for _, word := range strings.Split(n.Text, ",") {
			status, _ := strconv.Atoi(word)
			if http.StatusText(status) == "" && !slices.Contains(words, word) {
				near := choice.Nearest(word, words)
				d.Wrong(n, path, tree.Quote(n.Text)+", with "+tree.Quote(word), "words of Envoy's retry_on or statuses of HTTP, with commas and no spaces between them", near)
			}
		}
		r.on, r.onPath = parseIstioRetryOn(n.Text), path
	} else {
		r.implied = append(r.implied, "without retryOn Istio retries after "+otherwise.String())
	}
	if base > 0 {
		r.waits = new(proxyWaits(base, min(base, math.MaxInt64/proxyGrowth)*proxyGrowth))
	} else if !d.based {
		r.implied = append(r.implied, "without backoff Istio waits for up to 25ms before the first retry, and for up to 250ms at most")
	}
	if others, ok := o.Bool("retryIgnorePreviousHosts"); ok {
		r.hosts.others, r.chosen = others, true
		d.noteAbout(!others, hosted, Lost, o.At("retryIgnorePreviousHosts"), hostsWhy)
	}
	if remote, _ := o.Bool("retryRemoteLocalities"); remote {
		r.hosts.priorities = 2
		d.noteAbout(true, hosted, Lost, o.At("retryRemoteLocalities"), "a policy does not know localities")
	}
	o.NoMore("attempts", "perTryTimeout", "retryOn", "backoff", "retryIgnorePreviousHosts", "retryRemoteLocalities")
	return r
}

type spec struct {
	d    *document
	o    *tree.Object
	host string // as it is written

	namespace string
}

// destinationRules reads what several rules set for a host and its subsets. Istio takes the first policy of each.
func (i *istioReader) destinationRules(full string, specs []spec) {
	whole := &rule{d: specs[0].d, full: full, host: specs[0].host, path: specs[0].o.Path, namespace: specs[0].namespace,
		extras: Istio.known(), guard: guard{retries: unlimited}, subsets: map[string]*rule{}, labels: map[string]*tree.Node{}}
	i.rules[full] = whole
	var taken *tree.Object
	for _, s := range specs {
		i.d = s.d
		t := s.o.Object("trafficPolicy")
		switch {
		case t == nil:
		case taken == nil:
			taken, whole.d, whole.path = t, s.d, s.o.Path
			i.trafficPolicy(t, whole)
		case content(t.Node) != content(taken.Node):
			s.d.note(Lost, t.Path, "there is a rule for "+tree.Quote(s.host)+" already, and Istio takes the older one; here it is the first")
		}
	}
	i.order = append(i.order, whole)
	subsets := map[string]string{}
	for _, s := range specs {
		i.d = s.d
		for _, o := range s.o.Objects("subsets") {
			name := o.String("name")
			first, twice := subsets[name]
			switch t := o.Object("trafficPolicy"); {
			case twice && first != content(o.Node):
				s.d.note(Lost, o.Path, "there is a subset "+tree.Quote(name)+" of "+tree.Quote(s.host)+" already, which Istio takes")
			case !twice && t != nil:
				own := *whole // the subset inherits from the host
				own.d, own.full, own.host, own.path, own.subsets = s.d, "", s.host+"/"+name, o.Path, nil
				i.trafficPolicy(t, &own)
				whole.subsets[name] = &own
				i.order = append(i.order, &own)
			}
			if !twice {
				subsets[name], whole.labels[name] = content(o.Node), o.Node.Get("labels")
			}
			s.d.noteUnread(o, routingWhy)
		}
	}
}

func (i *istioReader) trafficPolicy(o *tree.Object, t *rule) {
	d := i.d
	t.settings, t.settingsAt = o.Node, o.Path
	if pool := o.Object("connectionPool"); pool != nil {
		i.connectionPool(pool, t, o.Has("retryBudget"))
	}
	if od := o.Object("outlierDetection"); od != nil {
		t.has("breaker", d, od.Path)
		t.guard.ejection = i.outlier(od)
		t.guard.ejectsNone = t.guard.ejection == nil
	}
	if b := o.Object("retryBudget"); b != nil {
		t.has("budget", d, b.Path)
		t.guard.budget, t.guard.bound = i.retryBudget(b), &bound{d, b.Path, budgetWhy}
		if n := t.retriesAt; n != "" && t.retriesIn == d {
			d.note(Lost, n, "the retryBudget at "+d.shown(b.Path)+" takes its place, in Istio as well")
		}
	}
	if n, path := o.Get("portLevelSettings"); n != nil {
		d.note(Lost, path, "a dependency has one policy for all its ports: name one for each in the policy file")
	}
	if lb := o.Node.Get("loadBalancer"); lb != nil {
		t.hash = lb.Get("consistentHash") != nil
	}
	d.noteUnread(o, "connections and hosts, not how calls are made")
}

const transportWhy = "connections, and who waits for one, are the http.Transport's business"

func (i *istioReader) connectionPool(o *tree.Object, t *rule, paid bool) {
	d := i.d
	const allowed = "a whole number from 0"
	h, tcp := o.Object("http"), o.Object("tcp")
	limit, _ := h.Whole("http2MaxRequests", 0, math.MaxInt32, allowed)
	retries, _ := h.Whole("maxRetries", 0, math.MaxInt32, allowed)
	if limit > 0 {
		t.has("limit.in_flight", d, h.At("http2MaxRequests"))
	}
	if t.retriesAt = ""; retries > 0 {
		at := h.At("maxRetries")
		t.has("budget", d, at)
		t.retriesAt, t.retriesIn = at, d
		inherited := !paid && t.guard.budget != nil
		d.noteIf(inherited, Lost, at, "the retryBudget of the host takes its place, in Istio as well")
		if !d.noLimit(at, retries) && !paid && !inherited {
			t.guard.bound = &bound{d, at, stockWhy}
		}
	}
	for _, name := range []string{"http1MaxPendingRequests", "maxRequestsPerConnection", "maxConcurrentStreams"} {
		n, ok := h.Whole(name, 0, math.MaxInt32, allowed)
		d.noteIf(ok && n > 0, Lost, h.At(name), transportWhy)
	}
	d.lost(h, Lost, transportWhy, "idleTimeout", "http2KeepAlive")
	d.lost(h, Aside, "protocols, not how calls are made", "h2UpgradePolicy", "useClientProtocol")
	h.NoMore("http1MaxPendingRequests", "http2MaxRequests", "maxRequestsPerConnection", "maxRetries", "idleTimeout",
		"h2UpgradePolicy", "useClientProtocol", "maxConcurrentStreams", "http2KeepAlive")
	tcpFields := []string{"maxConnections", "connectTimeout", "tcpKeepalive", "maxConnectionDuration", "idleTimeout"}
	d.lost(tcp, Lost, transportWhy+" and the net.Dialer's", tcpFields...)
	tcp.NoMore(tcpFields...)
	o.NoMore("http", "tcp")
	t.guard.calls, t.guard.limited = cmp.Or(limit, unlimited), limit > 0 || !d.based // zero means no limit in Istio
	t.guard.retries, t.guard.bounded = cmp.Or(retries, unlimited), retries > 0 || !d.based
}

func (i *istioReader) retryBudget(o *tree.Object) *proxyBudget {
	b := &proxyBudget{percent: 20, least: 3}
	if f, ok := percentIn(o, "percent"); ok {
		b.percent = f
	}
	if n, ok := o.Whole("minRetryConcurrency", 0, unlimited, allowedUint32); ok && n > 0 {
		b.least = int(n)
	} else {
		i.d.note(Assumed, o.Path, "without minRetryConcurrency Istio has 3")
	}
	i.d.noteIf(!o.Has("percent"), Assumed, o.Path, "without percent Istio has 20 %")
	b.interval, _ = o.Duration("budgetInterval", 0, "zero or a duration such as 10s", tree.ParseGo)
	o.NoMore("percent", "minRetryConcurrency", "budgetInterval")
	return b
}

var istioOutlierFields = []string{"consecutiveErrors", "splitExternalLocalOriginErrors", "consecutiveLocalOriginFailures", "consecutiveGatewayErrors",
	"consecutive5xxErrors", "interval", "baseEjectionTime", "maxEjectionPercent", "minHealthPercent", "outlierDetectionHttpErrorCodes"}

// outlier reads outlierDetection. Istio switches Envoy's success rates off.
func (i *istioReader) outlier(o *tree.Object) *ejection {
	d := i.d
	const allowed = "a whole number from 0"
	x := ejection{five: count(o, "consecutive5xxErrors", 5), gateway: count(o, "consecutiveGatewayErrors", 0), base: 30 * time.Second}
	if old, ok := o.Whole("consecutiveErrors", 0, math.MaxInt32, allowed); ok && x.gateway == 0 {
		x.gateway = int(old)
		d.note(Assumed, o.At("consecutiveErrors"), "Istio has done away with it; it is read as consecutiveGatewayErrors")
	}
	x.read(d, o.At("consecutive5xxErrors"), o.At("consecutiveGatewayErrors"))
	if t, ok := millisIn(o, "baseEjectionTime"); ok {
		x.base = t
	}
	x.max = max(300*time.Second, x.base)
	x.interval, _ = millisIn(o, "interval")
	x.most = int(upTo(100, o, "maxEjectionPercent", 10))
	x.readMost(d, pathIn(o, "maxEjectionPercent"))
	x.panic = int(upTo(100, o, "minHealthPercent", 0))
	d.noteAbout(x.panic > 0 && x.ejects(), ejected, Lost, o.At("minHealthPercent"), panicWhy)
	split, _ := o.Bool("splitExternalLocalOriginErrors")
	if n, ok := o.Whole("consecutiveLocalOriginFailures", 0, unlimited, allowed); ok && n > 0 && !split {
		d.Wrong(o.Field("consecutiveLocalOriginFailures"), o.At("consecutiveLocalOriginFailures"), "given without splitExternalLocalOriginErrors", "both or none", "")
	}
	d.noteIf(split, Lost, o.At("splitExternalLocalOriginErrors"),
		"a breaker counts all failures alike; outlier.Config of lullhttp.NewEndpoints can tell them apart (Split)")
	d.lost(o, Lost, "what counts as a failure is lullhttp's business (WithStatus)", "outlierDetectionHttpErrorCodes")
	o.NoMore(istioOutlierFields...)
	var implied unsaid
	implied.add(!o.Has("baseEjectionTime"), "baseEjectionTime 30s")
	implied.add(!o.Has("consecutive5xxErrors"), "consecutive5xxErrors 5")
	return x.becomesBreaker(d, o, "Istio", implied, "baseEjectionTime", "maxEjectionPercent", "minHealthPercent", "interval")
}
