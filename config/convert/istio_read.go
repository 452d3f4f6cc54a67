package convert

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/config/convert/internal/tree"
)

const allowedMillis = "a duration of at least 1ms in whole milliseconds, such as 250ms or 2s"

// istioDefault is what Istio has Envoy retry where a VirtualService says nothing of it
// (pilot/pkg/networking/core/route/retry). The attempts and waits are those of package
// preset.
var istioDefault = failures{on: []string{"connect-failure", "refused-stream", "unavailable", "cancelled", statusCodes}}

// An istioReader reads VirtualServices and DestinationRules.
type istioReader struct {
	r      *reading
	d      *document
	rules  map[string]*rule // by host, and by host/subset
	routed map[string]bool
	order  []string
}

// A rule is the traffic policy of a host, or of a subset of it.
type rule struct {
	d    *document
	path string
	pool func(*lull.Policy)
	ejec func(*lull.Policy)
	paid func(*lull.Policy)
	said foreign

	retriesAt string // the path of maxRetries
}

func (t *rule) edit(p *lull.Policy) {
	for _, edit := range []func(*lull.Policy){t.pool, t.ejec, t.paid} {
		if edit != nil {
			edit(p)
		}
	}
}

func (r *reading) istio(docs []*document) {
	i := &istioReader{r: r, rules: map[string]*rule{}, routed: map[string]bool{}}
	var services []*tree.Object
	var of []*document
	for _, d := range docs {
		i.d = d
		o := d.Object(d.root, "")
		if o == nil {
			continue
		}
		o.Get("apiVersion")
		kind := o.String("kind")
		o.Get("metadata")
		o.Get("status")
		switch kind {
		case "VirtualService":
			if o.Has("spec") {
				services, of = append(services, o.Object("spec")), append(of, d)
			}
		case "DestinationRule":
			if spec := o.Object("spec"); spec != nil {
				i.destinationRule(spec)
			}
		default:
			d.note(Aside, "kind", "a "+tree.Clip(kind)+" says nothing of how calls are retried")
			o.Get("spec")
		}
		d.aside(o, "not how calls are made")
	}
	for n, spec := range services {
		i.d = of[n]
		i.virtualService(spec)
	}
	for _, host := range i.order {
		if i.routed[host] {
			continue
		}
		t := i.rules[host]
		i.d = t.d
		policy, preset := r.base.of(Istio)
		t.edit(&policy)
		said := t.said
		said.retried, said.deaf = i.defaultFailures(), true
		i.r.add(i.d, host, nil, t.path, policy, preset, said)
	}
}

// defaultFailures are those that Istio retries by itself, unless the base is somebody else.
func (i *istioReader) defaultFailures() *failures {
	if i.r.base.given {
		return nil
	}
	return &istioDefault
}

// virtualService reads its HTTP routes, of which each may lead to several destinations.
func (i *istioReader) virtualService(spec *tree.Object) {
	if spec == nil {
		return
	}
	d := i.d
	for n, route := range spec.Objects("http") {
		name := route.String("name")
		if name == "" {
			name = fmt.Sprintf("http[%d]", n)
		}
		i.httpRoute(route, name)
	}
	for _, other := range []string{"tcp", "tls"} {
		if n, path := spec.Get(other); n != nil {
			d.note(Aside, path, "connections have no retries")
		}
	}
	d.aside(spec, "routing, not how calls are made")
}

func (i *istioReader) httpRoute(o *tree.Object, name string) {
	d := i.d
	policy, preset := i.r.base.of(Istio)
	if t, ok := d.millis(o, "timeout"); ok {
		policy.Deadline = t
	}
	f := i.defaultFailures()
	path, why := o.Path, ""
	if retries := o.Object("retries"); retries != nil {
		r := i.retries(retries, istioDefault)
		policy.Attempts = r.retries + 1
		f, path = nil, r.onPath
		if r.base > 0 {
			policy.Backoff = proxyWaits(r.base, min(r.base, math.MaxInt64/proxyGrowth)*proxyGrowth)
		}
		if r.retries > 0 {
			f = &r.on
			why = r.on.apply(&policy)
		}
		switch {
		case r.perTry > 0 && policy.Deadline > 0 && r.perTry >= policy.Deadline:
			d.note(Changed, r.perTryPath, "it has no effect in Istio, since it is not less than the timeout")
			policy.AttemptTimeout = lull.NoTimeout
		case r.perTry > 0:
			policy.AttemptTimeout = r.perTry
		}
	} else if f != nil {
		why = f.apply(&policy)
		d.note(Assumed, o.Path, "without retries Istio makes two, within 25ms and 50ms")
	}
	if policy.Attempts > 1 && policy.HintLimit == anyHint {
		policy.HintLimit = lull.DefaultHintLimit
		d.noteAbout(hints, Changed, o.Path, "Istio does not look at Retry-After; lull does, and waits for up to 30s")
	}
	hosts := i.destinations(o)
	if o.Has("fault") {
		d.note(Lost, o.At("fault"), "a policy makes no faults; lull simulate does")
		o.Get("fault")
	}
	d.aside(o, "routing, not how calls are made")
	for _, host := range hosts {
		p, said := policy, foreign{of: Istio, retries: unlimited}
		bare, _, _ := strings.Cut(host, "/")
		rule := i.rules[host]
		i.routed[host] = true
		if rule == nil {
			rule = i.rules[bare]
			i.routed[bare] = true
		}
		if rule != nil {
			rule.edit(&p)
			said = rule.said
		}
		said.retried, said.deaf = f, true
		d.relate(path, why, host)
		i.r.add(i.d, host, []string{host + "/" + name}, o.Path, p, preset, said)
	}
}

// destinations are the hosts that a route leads to, with their subsets.
func (i *istioReader) destinations(o *tree.Object) []string {
	var hosts []string
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
		if subset := dest.String("subset"); subset != "" {
			host += "/" + subset
		}
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
		i.d.aside(dest, "routing, not how calls are made")
		i.d.aside(r, "routing, not how calls are made")
	}
	return hosts
}

// millis is a duration that Istio would take.
func (d *document) millis(o *tree.Object, name string) (time.Duration, bool) {
	n, path := o.Get(name)
	if n == nil {
		return 0, false
	}
	t, ok := d.Duration(n, path, time.Millisecond, allowedMillis, tree.ParseGo)
	if ok && t%time.Millisecond != 0 {
		d.Wrong(n, path, n.Found(), allowedMillis, "")
		return 0, false
	}
	return t, ok
}

// An istioRetry is an HTTPRetry.
type istioRetry struct {
	retries            int
	on                 failures
	onPath, perTryPath string
	perTry, base       time.Duration
}

// retries reads an HTTPRetry, by the rules of Istio's validation. otherwise is what it
// retries if it does not say.
func (i *istioReader) retries(o *tree.Object, otherwise failures) istioRetry {
	d := i.d
	r := istioRetry{on: otherwise, onPath: o.Path, perTryPath: o.At("perTryTimeout")}
	n, ok := o.Whole("attempts", 0, math.MaxInt32, "a whole number from 0")
	if ok {
		r.retries = int(min(n, 999))
		if n > 999 {
			d.note(Changed, o.At("attempts"), "a policy makes at most 1000 attempts")
		}
	}
	if r.retries == 0 && (ok || !o.Has("attempts")) {
		for _, name := range []string{"perTryTimeout", "retryOn", "retryRemoteLocalities"} {
			if o.Has(name) {
				n := o.Node.Get(name)
				d.Wrong(n, o.At(name), "given where attempts is 0", "nothing beside attempts: 0, which switches retries off", "")
			}
		}
	}
	r.perTry, _ = d.millis(o, "perTryTimeout")
	r.base, _ = d.millis(o, "backoff")
	if n, path := o.Get("retryOn"); n != nil && d.Check(n.Kind == tree.Text, n, path, "a text such as connect-failure,refused-stream,503") && n.Text != "" {
		words := slices.Concat(onHTTP, onGRPC)
		for _, word := range strings.Split(n.Text, ",") {
			status, _ := strconv.Atoi(word)
			if http.StatusText(status) == "" && !slices.Contains(words, word) {
				near := tree.Nearest(word, words)
				d.Wrong(n, path, tree.Quote(n.Text)+", with "+tree.Quote(word), "words of Envoy's retry_on or statuses of HTTP, with commas and no spaces between them", near)
			}
		}
		r.on, r.onPath = parseIstioRetryOn(n.Text), path
	}
	if keep, ok := o.Bool("retryIgnorePreviousHosts"); ok && !keep {
		d.note(Lost, o.At("retryIgnorePreviousHosts"), "which host a retry goes to is not the policy's business: lullhttp.NewEndpoints sends it elsewhere")
	}
	if far, ok := o.Bool("retryRemoteLocalities"); ok && far {
		d.note(Lost, o.At("retryRemoteLocalities"), "a policy does not know localities")
	}
	o.NoMore("attempts", "perTryTimeout", "retryOn", "backoff", "retryIgnorePreviousHosts", "retryRemoteLocalities")
	return r
}

// destinationRule reads the traffic policies of a host and of its subsets.
func (i *istioReader) destinationRule(spec *tree.Object) {
	d := i.d
	host := spec.String("host")
	if host == "" {
		d.Wrong(spec.Node, spec.At("host"), "missing", "the host that the rule is for", "")
		return
	}
	whole := &rule{d: d, path: spec.Path, said: foreign{of: Istio, retries: unlimited}}
	if t := spec.Object("trafficPolicy"); t != nil {
		i.trafficPolicy(t, whole)
	}
	i.rule(host, whole, spec)
	for _, s := range spec.Objects("subsets") {
		name := s.String("name")
		if t := s.Object("trafficPolicy"); t != nil {
			own := *whole // what the subset does not say itself is the host's
			own.path = s.Path
			i.trafficPolicy(t, &own)
			i.rule(host+"/"+name, &own, s)
		}
		d.aside(s, "routing, not how calls are made")
	}
	d.aside(spec, "not how calls are made")
}

func (i *istioReader) rule(host string, t *rule, o *tree.Object) {
	if _, twice := i.rules[host]; twice {
		i.d.Wrong(o.Node, o.Path, "a rule for "+tree.Quote(host)+" once more", "one for each host", "")
		return
	}
	i.rules[host] = t
	i.order = append(i.order, host)
}

func (i *istioReader) trafficPolicy(o *tree.Object, t *rule) {
	d := i.d
	if pool := o.Object("connectionPool"); pool != nil {
		t.pool = i.connectionPool(pool, t, o.Has("retryBudget"))
	}
	if od := o.Object("outlierDetection"); od != nil {
		t.said.ejection = nil
		t.ejec = i.outlier(od, &t.said)
	}
	if b := o.Object("retryBudget"); b != nil {
		budget := i.retryBudget(b)
		t.said.budget = &budget
		if n := t.retriesAt; n != "" {
			d.note(Lost, n, "the retryBudget at "+d.shown(b.Path)+" takes its place, in Istio as well")
		}
		t.paid = func(p *lull.Policy) {
			c, ok := budget.policy()
			if p.Budget = c; !ok {
				p.Attempts = 1
			}
		}
	}
	if n, path := o.Get("portLevelSettings"); n != nil {
		d.note(Lost, path, "a dependency has one policy for all its ports: name one for each in the policy file")
	}
	d.aside(o, "connections and hosts, not how calls are made")
}

const transportWhy = "connections, and who waits for one, are the http.Transport's business"

// connectionPool reads the limits of calls; those of connections are lost.
func (i *istioReader) connectionPool(o *tree.Object, t *rule, paid bool) func(*lull.Policy) {
	d := i.d
	limit, retries := int64(0), int64(0)
	if h := o.Object("http"); h != nil {
		const allowed = "a whole number from 0"
		limit, _ = h.Whole("http2MaxRequests", 0, math.MaxInt32, allowed)
		retries, _ = h.Whole("maxRetries", 0, math.MaxInt32, allowed)
		if retries > 0 {
			t.retriesAt = h.At("maxRetries")
		}
		if retries > 0 && retries < math.MaxInt32 && !paid {
			d.noteAbout(bounds, Changed, h.At("maxRetries"), budgetWhy+": it is the stock here, beside a tenth of the calls")
		}
		for _, name := range []string{"http1MaxPendingRequests", "maxRequestsPerConnection", "maxConcurrentStreams"} {
			if n, ok := h.Whole(name, 0, math.MaxInt32, allowed); ok && n > 0 {
				d.note(Lost, h.At(name), transportWhy)
			}
		}
		d.lost(h, Lost, transportWhy, "idleTimeout", "http2KeepAlive")
		d.lost(h, Aside, "protocols, not how calls are made", "h2UpgradePolicy", "useClientProtocol")
		h.NoMore("http1MaxPendingRequests", "http2MaxRequests", "maxRequestsPerConnection", "maxRetries", "idleTimeout",
			"h2UpgradePolicy", "useClientProtocol", "maxConcurrentStreams", "http2KeepAlive")
	}
	if tcp := o.Object("tcp"); tcp != nil {
		d.lost(tcp, Lost, transportWhy+" and the net.Dialer's", "maxConnections", "connectTimeout", "tcpKeepalive", "maxConnectionDuration", "idleTimeout")
		tcp.NoMore("maxConnections", "connectTimeout", "tcpKeepalive", "maxConnectionDuration", "idleTimeout")
	}
	o.NoMore("http", "tcp")
	given := i.r.base.given
	t.said.retries = limitOr(retries)
	return func(p *lull.Policy) {
		if limit > 0 || !given {
			p.Limit = limitOf(limitOr(limit))
		}
		if (retries > 0 || !given) && p.Attempts > 1 {
			p.Budget = maxRetries(limitOr(retries))
		}
	}
}

// limitOr is n, or no limit if it is zero, as Istio has it.
func limitOr(n int64) int64 {
	if n == 0 {
		return unlimited
	}
	return n
}

// retryBudget reads a retryBudget.
func (i *istioReader) retryBudget(o *tree.Object) proxyBudget {
	b := proxyBudget{percent: 20, least: 3}
	if f, ok := o.Float("percent", "a number from 0 to 100", func(f float64) bool { return f >= 0 && f <= 100 }); ok {
		b.percent = f
	}
	if n, ok := o.Whole("minRetryConcurrency", 0, unlimited, "a whole number from 0 to 4294967295"); ok && n > 0 {
		b.least = int(n)
	}
	if o.Has("budgetInterval") {
		b.interval, _ = o.Duration("budgetInterval", 0, "zero or a duration such as 10s", tree.ParseGo)
	}
	o.NoMore("percent", "minRetryConcurrency", "budgetInterval")
	i.d.noteAbout(bounds, Changed, o.Path, budgetWhy)
	return b
}

var istioOutlierFields = []string{"consecutiveErrors", "splitExternalLocalOriginErrors", "consecutiveLocalOriginFailures", "consecutiveGatewayErrors",
	"consecutive5xxErrors", "interval", "baseEjectionTime", "maxEjectionPercent", "minHealthPercent", "outlierDetectionHttpErrorCodes"}

// outlier reads outlierDetection. Istio switches Envoy's success rates off.
func (i *istioReader) outlier(o *tree.Object, said *foreign) func(*lull.Policy) {
	d := i.d
	const allowed = "a whole number from 0"
	count := func(name string, otherwise int64) int64 {
		if n, ok := o.Whole(name, 0, unlimited, allowed); ok {
			return n
		}
		return otherwise
	}
	five := count("consecutive5xxErrors", 5)
	gateway := count("consecutiveGatewayErrors", 0)
	if old, ok := o.Whole("consecutiveErrors", 0, math.MaxInt32, allowed); ok && gateway == 0 {
		gateway = old
		d.note(Assumed, o.At("consecutiveErrors"), "Istio has done away with it; it is read as consecutiveGatewayErrors")
	}
	x := ejection{base: 30 * time.Second}
	x.five, x.gateway = int(min(five, math.MaxInt32)), int(min(gateway, math.MaxInt32))
	x.read(d, o.At("consecutive5xxErrors"), o.At("consecutiveGatewayErrors"))
	if t, ok := d.millis(o, "baseEjectionTime"); ok {
		x.base = t
	}
	x.max = max(300*time.Second, x.base)
	if o.Has("interval") {
		if t, ok := d.millis(o, "interval"); ok {
			x.interval = t
			d.noteAbout(ejected, Lost, o.At("interval"), "a breaker does not sweep: it opens when the last failure is known, and closes by a probe")
		}
	}
	x.most = 10
	at := o.Path
	if n, ok := o.Whole("maxEjectionPercent", 0, 100, "a whole number from 0 to 100"); ok {
		x.most, at = int(n), o.At("maxEjectionPercent")
	}
	if x.most < 100 {
		d.noteAbout(ejected, Lost, at, fmt.Sprintf("at most %d %% of the endpoints are ejected; a breaker stops all calls", x.most))
	}
	if n, ok := o.Whole("minHealthPercent", 0, 100, "a whole number from 0 to 100"); ok && n > 0 {
		d.note(Lost, o.At("minHealthPercent"), "a breaker does not know endpoints; outlier.Config of lullhttp.NewEndpoints does (Panic)")
	}
	split, _ := o.Bool("splitExternalLocalOriginErrors")
	if n, ok := o.Whole("consecutiveLocalOriginFailures", 0, unlimited, allowed); ok && n > 0 && !split {
		d.Wrong(o.Node.Get("consecutiveLocalOriginFailures"), o.At("consecutiveLocalOriginFailures"), "given without splitExternalLocalOriginErrors", "both or none", "")
	}
	if split {
		d.note(Lost, o.At("splitExternalLocalOriginErrors"), "a breaker counts all failures alike; outlier.Config of lullhttp.NewEndpoints can tell them apart (Split)")
	}
	d.lost(o, Lost, "what counts as a failure is lullhttp's business (WithStatus)", "outlierDetectionHttpErrorCodes")
	o.NoMore(istioOutlierFields...)
	if x.consecutive() == 0 {
		return func(p *lull.Policy) { p.Breaker.Off = true }
	}
	d.noteAbout(ejected, Changed, o.Path, breakerWhy)
	said.ejection = &x
	return func(p *lull.Policy) { p.Breaker = x.policy() }
}
