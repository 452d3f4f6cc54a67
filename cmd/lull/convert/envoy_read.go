package convert

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/pretty"
	"github.com/lullgo/lull/internal/tree"
)

const allowedSeconds = `a positive duration in seconds such as "0.25s", with up to nine decimals`

// retryFields are those of envoy.config.route.v3.RetryPolicy.
var retryFields = []string{"retry_on", "num_retries", "per_try_timeout", "per_try_idle_timeout", "retry_priority", "retry_host_predicate",
	"retry_options_predicates", "host_selection_retry_max_attempts", "retriable_status_codes", "retry_back_off",
	"rate_limited_retry_back_off", "retriable_headers", "retriable_request_headers", "refresh_cluster_on_retry"}

type envoyReader struct {
	r        *reading
	d        *document
	clusters map[string][]*cluster // by name; each file may have one
	order    []*cluster
}

type cluster struct {
	d      *document
	path   string
	guard  guard
	extras known
	node   *tree.Node
	name   string
	text   string // its content
	routed bool   // a route for requests leads there
	tcp    bool   // connections are led there
}

func (r *reading) envoy(docs []*document) {
	e := &envoyReader{r: r, clusters: map[string][]*cluster{}}
	for _, d := range docs {
		d.Same = tree.SnakeOrCamel
		e.d = d
		e.walk(d.root, "", e.cluster)
	}
	for _, d := range docs {
		e.d = d
		e.connections(d.root)
		e.walk(d.root, "", nil)
	}
	for _, c := range e.order {
		if r.full {
			return
		}
		if c.routed {
			continue
		}
		if e.d = c.d; c.tcp {
			e.d.lost(e.d.Object(c.node, c.path), Lost, "only connections lead to it in these files, and a policy is for requests", "circuit_breakers", "outlier_detection")
			continue
		}
		policy := r.base.of(Envoy).policy
		e.d.assume(true, c.path,
			"no route in these files leads to it: one attempt, and 15s for a call, as Envoy has it for a route that says nothing")
		c.guard.apply(&policy)
		extras := c.extras
		c.guard.addTo(&extras.foreign)
		extras.facts = e.called(c.name)
		e.d.unknown(&extras.facts, "attempts", "attempt_timeout", "backoff", "deadline")
		e.r.add(e.d, c.name, nil, c.path, policy, extras)
	}
	for _, c := range e.order {
		c.guard.bound.unused()
	}
}

const (
	stockWhy   = budgetWhy + ": it is the stock here, beside a tenth of the calls"
	noLimitWhy = "it says that there is no limit"
)

// unknown records fields of the policy that something else decides, unless there is a base.
func (d *document) unknown(f *Facts, fields ...string) {
	if !d.based {
		f.Unknown = append(f.Unknown, fields...)
	}
}

// walk finds what there is in n. With onCluster it calls that with each cluster; otherwise it reads routes.
func (e *envoyReader) walk(n *tree.Node, path string, onCluster func(*tree.Object)) {
	for i, item := range n.Items {
		e.walk(item, tree.Element(path, i), onCluster)
	}
	is := noShape
	if path == "" || typeOf(n) != "" || lastOf(path) == "cluster" {
		is = shapeOf(n)
	}
	switch {
	case is == aCluster:
		if onCluster != nil {
			onCluster(e.d.Object(n, path))
		}
		return
	case onCluster != nil:
	case path == "" && n.Kind != tree.Map:
		e.d.Wrong(n, "", n.Found(), "a configuration of Envoy", "")
		return
	case is == routesShape, listIn(n, "virtual_hosts"):
		e.routes(e.d.Object(n, path))
		return
	case is == aVirtualHost, listIn(n, "domains") && listIn(n, "routes"): // one of VHDS
		e.virtualHost(e.d.Object(n, path), "")
		return
	case path == "" && is == aRoute:
		e.route(e.d.Object(n, ""), route{names: []string{stem(e.d.File)}})
		return
	case path == "" && is == anAction:
		e.action(e.d.Object(n, ""), route{names: []string{stem(e.d.File)}})
		return
	case path == "" && is == aRetryPolicy:
		e.retryAlone(e.d.Object(n, ""), stem(e.d.File))
		return
	}
	for _, m := range n.Members {
		at := tree.Join(path, m.Key)
		switch {
		case m.Key == "clusters" && m.Value.Kind == tree.List && typeOf(n) == "" && !tree.SnakeOrCamel(lastOf(path), "weighted_clusters"):
			for i, item := range m.Value.Items {
				if item.Kind == tree.Map && onCluster != nil {
					onCluster(e.d.Object(item, tree.Element(at, i)))
				}
			}
		case path == "" && strings.HasPrefix(m.Key, "x-"): // it is there for aliases
		default:
			e.walk(m.Value, at, onCluster)
		}
	}
}

// connections marks the clusters to which TCP and UDP proxies in n lead.
func (e *envoyReader) connections(n *tree.Node) {
	for _, v := range n.Values() {
		e.connections(v)
	}
	if kind := typeOf(n); kind != "TcpProxy" && kind != "UdpProxyConfig" {
		return
	}
	names := []string{textOf(n.Get("cluster"))}
	for _, c := range cmp.Or(n.Get("weighted_clusters"), n.Get("weightedClusters")).Get("clusters").Elements() {
		names = append(names, textOf(c.Get("name")))
	}
	for _, name := range names {
		if c := e.find(name); c != nil {
			c.tcp = true
		}
	}
}

// find is the cluster of that name in this file, or else the only one: other files are mostly of other proxies.
func (e *envoyReader) find(name string) *cluster {
	all := e.clusters[name]
	for _, c := range all {
		if c.d.File == e.d.File {
			return c
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	return nil
}

func (e *envoyReader) retryAlone(o *tree.Object, name string) {
	retry := e.retryPolicy(o)
	policy := e.r.base.of(Envoy).policy
	e.d.assume(true, "",
		"the route that it is of is not in these files, nor the cluster: Envoy ends a call after 15s, and lets three retries be under way, where nothing is said")
	retry.apply(&policy, 0)
	elsewhere := guard{retries: 3, bounded: !e.d.based}
	elsewhere.apply(&policy)
	e.d.noteSelection(retry.onPath, retry.why, name)
	extras := Envoy.known()
	elsewhere.addTo(&extras.foreign)
	e.d.unknown(&extras.facts, "breaker", "budget", "deadline", "limit")
	retry.addTo(&extras.foreign)
	e.r.add(e.d, name, nil, "", policy, extras)
}

func (e *envoyReader) routes(o *tree.Object) {
	o.Get("@type")
	config := o.String("name")
	for _, vh := range o.Objects("virtual_hosts") {
		if e.r.full {
			return
		}
		e.virtualHost(vh, config)
	}
	e.d.noteUnread(o, "it is not about how calls are made")
}

// enum reads one of names, or its number, as protobuf's JSON allows. It is the first if the field is missing or wrong.
func (d *document) enum(o *tree.Object, name string, names ...string) string {
	n, path := o.Get(name)
	if n == nil {
		return names[0]
	}
	if i, ok := tree.WholeNumber(n); ok && n.Kind == tree.Number && i >= 0 && i < int64(len(names)) {
		return names[i]
	}
	if n.Kind != tree.Text || !slices.Contains(names, n.Text) {
		d.Wrong(n, path, n.Found(), choice.List(names), choice.Nearest(n.Text, names))
		return names[0]
	}
	return n.Text
}

type route struct {
	names []string
	path  string // of the route it belongs to
	retry *envoyRetry
	hedge string // the path of the hedge_policy, if it is on

	methods []Method // that the route names
}

func (e *envoyReader) virtualHost(vh *tree.Object, config string) {
	name := vh.String("name")
	var inherited route
	if o := vh.Object("retry_policy"); o != nil {
		inherited.retry = e.retryPolicy(o)
	}
	if o := vh.Object("hedge_policy"); o != nil {
		inherited.hedge = e.hedgePolicy(o)
	}
	for i, o := range vh.Objects("routes") {
		if e.r.full {
			return
		}
		own := inherited
		routeName := cmp.Or(o.String("name"), fmt.Sprintf("routes[%d]", i))
		own.names = []string{slashed(name, routeName), slashed(config, name, routeName)}
		e.route(o, own)
	}
	if inherited.retry != nil && !inherited.retry.applied {
		e.d.noteWhole(Lost, vh.Field("retry_policy"), vh.At("retry_policy"), "each route there has its own, or is none that calls anything")
	}
	e.buffers(vh)
	e.d.noteUnread(vh, routingWhy)
}

func slashed(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "/")
}

func (e *envoyReader) route(o *tree.Object, inherited route) {
	if action := o.Object("route"); action != nil {
		inherited.path = o.Path
		inherited.methods = e.matched(o.Node)
		e.action(action, inherited)
	}
	e.buffers(o)
	e.d.noteUnread(o, routingWhy)
}

func (e *envoyReader) matched(route *tree.Node) (all []Method) {
	for _, h := range route.Get("match").Get("headers").Elements() {
		if textOf(h.Get("name")) == ":method" && !hasAny(h, "invert_match") {
			all = e.d.methodsIn(h, all)
		}
	}
	return all
}

// buffers records the fields of virtual hosts, routes and actions about request bodies and about headers for the other side.
func (e *envoyReader) buffers(o *tree.Object) {
	e.d.lost(o, Lost, "Envoy does not repeat a request with a longer body; lullhttp repeats what has a GetBody", "per_request_buffer_limit_bytes", "request_body_buffer_limit")
	e.d.lost(o, Lost, "lullhttp numbers attempts in a header of its own (WithAttemptHeader)", "include_request_attempt_count", "include_attempt_count_in_response", "include_is_timeout_retry_header")
}

func (e *envoyReader) action(o *tree.Object, r route) {
	retry, hedging := r.retry, r.hedge
	if own := o.Object("retry_policy"); own != nil {
		retry = e.retryPolicy(own)
	}
	if own := o.Object("hedge_policy"); own != nil {
		hedging = e.hedgePolicy(own)
	}
	policy := e.r.base.of(Envoy).policy
	first := policy
	timeout, given := e.d.envoyTimeout(o, "timeout")
	if given {
		policy.Deadline = cmp.Or(timeout, lull.NoTimeout)
	}
	e.d.assume(!given, o.Path, "without timeout Envoy ends a call after 15s")
	e.d.lost(o, Lost, "a policy bounds calls and attempts, not the time between two parts of a stream", "idle_timeout", "max_stream_duration", "flush_timeout")
	e.d.lost(o, Lost, "a policy takes its deadlines from the caller's context", "max_grpc_timeout", "grpc_timeout_offset")
	e.d.lost(o, Lost, "an extension, of which nothing is known here", "retry_policy_typed_config")
	e.d.noteIf(e.d.enum(o, "priority", "DEFAULT", "HIGH") == "HIGH", Lost, o.At("priority"),
		"a policy has no priorities; the thresholds of DEFAULT count")
	e.buffers(o)
	if retry != nil {
		retry.apply(&policy, policy.Deadline)
	}
	if hedging != "" {
		e.d.hedge(&policy, hedging, retry)
	}
	names := e.targets(o, r.names)
	e.d.noteUnread(o, routingWhy)
	for _, name := range names {
		p, extras := policy, Envoy.known()
		limits := guard{retries: 3, bounded: !e.d.based} // of a cluster elsewhere that says nothing
		rest := []source{e.d.source(cmp.Or(r.path, o.Path))}
		facts := e.called(name)
		facts.Methods = r.methods
		retry.longIn(&facts)
		c := e.find(name)
		if c != nil {
			limits = c.guard
		}
		if limits.apply(&p); c != nil {
			if p.MaxAttempts() < policy.MaxAttempts() {
				at := o.Path
				if retry != nil {
					at = retry.path
				}
				e.d.note(Lost, at, "the circuit breakers of the cluster "+tree.Quote(name)+" let no retry pass")
				p.Backoff, p.HintLimit, p.RateLimitedBase, p.Timeouts = first.Backoff, first.HintLimit, first.RateLimitedBase, first.Timeouts
			}
			c.routed = true
			extras, rest = c.extras, append(rest, c.d.source(c.path))
		} else {
			e.d.unknown(&facts, "breaker", "budget", "limit")
			e.d.assume(true, o.Path,
				"what it leads to, "+tree.Quote(name)+", is no cluster in these files, so its limits and its outlier detection are not known: here they are as Envoy has them where nothing is said")
		}
		limits.addTo(&extras.foreign)
		if retry != nil {
			e.d.noteSelection(retry.onPath, retry.why, name)
			retry.addTo(&extras.foreign)
			if retry.given && retry == r.retry { // of the virtual host
				extras.places = maps.Clone(extras.places)
				extras.places["attempts"] = e.d.at(retry.path).Position
				if retry.perTry > 0 {
					extras.places["attempt_timeout"] = e.d.at(retry.perTryPath).Position
				}
			}
		}
		extras.facts = facts
		e.r.add(e.d, name, r.names, o.Path, p, extras, rest...)
	}
}

func (e *envoyReader) called(cluster string) (f Facts) {
	if !strings.Contains(cluster, "|") { // which Istio makes of a host that its own files have
		f.Service = cluster
	}
	return f
}

func (d *document) noteSelection(path, why, name string) {
	d.noteAbout(why != "", selection+about(":"+name), Changed, path, why)
}

func (e *envoyReader) targets(o *tree.Object, otherwise []string) []string {
	if name := o.String("cluster"); name != "" {
		return []string{name}
	}
	var names []string
	for _, c := range o.Object("weighted_clusters").Objects("clusters") {
		if name := c.String("name"); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		names = otherwise[:1]
	}
	return names
}

// An envoyRetry is how a proxy that is Envoy, or configures it, retries.
type envoyRetry struct {
	d            *document
	of           Format
	path, onPath string
	on           failures
	given        bool // retry_on has words
	retries      int64
	perTry       time.Duration
	perTryPath   string
	waits        *backoff.Schedule
	hint         time.Duration
	why          string // what a policy makes of retry_on
	numPath      string
	idle         []string // paths of fields without effect if there are no retries
	safe         bool     // it has the requests that lull repeats, and no others
	hosts        hosts
	chosen       bool     // a field says whether hosts has others
	hosted       []string // paths of the fields that hosts came from
	implied      unsaid
	applied      bool
	long         bool       // perTry has no effect, since the timeout of the call is no longer
	node         *tree.Node // of a BackendTrafficPolicy
}

func (r *envoyRetry) addTo(extras *foreign) {
	extras.retried, extras.ignoresHints, extras.safe, extras.hosts = r.failures(), r.hint == 0, r.safe, r.hosts
}

// longIn records in facts an attempt's time that has no effect in the call to which r was applied last.
func (r *envoyRetry) longIn(facts *Facts) {
	if r != nil && r.long {
		facts.LongAttempt, facts.LongAttemptAt = r.perTry, r.d.at(r.perTryPath).Position
	}
}

func (e *envoyReader) retryPolicy(o *tree.Object) *envoyRetry {
	d := e.d
	r := &envoyRetry{d: d, of: Envoy, path: o.Path, onPath: o.Path, numPath: o.At("num_retries")}
	if n, path := o.Get("retry_on"); n != nil && d.Check(n.Kind == tree.Text, n, path, "a text such as connect-failure,refused-stream") {
		var unknown []string
		r.on.on, unknown = parseRetryOn(n.Text)
		r.onPath = path
		for _, word := range unknown {
			d.note(Lost, path, "Envoy knows no "+tree.Quote(word)+", and reads over it"+meant(word, slices.Concat(onHTTP, onGRPC)))
		}
	}
	r.given = len(r.on.on) > 0
	n, ok := o.Whole("num_retries", 0, math.MaxUint32, "a whole number from 0")
	r.retries = choice.Either(ok, n, 1)
	r.implied.add(!ok, "without num_retries Envoy makes one")
	r.perTryPath = o.At("per_try_timeout")
	r.perTry, _ = d.envoyTimeout(o, "per_try_timeout")
	items, path := o.List("retriable_status_codes")
	r.on.statuses = d.statuses(items, path, 100)
	d.noteIf(len(items) > 0 && r.given && !r.on.includes(statusCodes), Lost, path,
		"Envoy heeds them only with "+statusCodes+" in retry_on")
	if b := o.Object("retry_back_off"); b != nil {
		r.backOff(d, b)
	} else if !d.based {
		r.implied = append(r.implied, "without retry_back_off Envoy waits for up to 25ms before the first retry, and for up to 250ms at most")
	}
	if b := o.Object("rate_limited_retry_back_off"); b != nil {
		r.rateLimited(d, b)
	}
	r.methods(d, o)
	d.lost(o, Lost, "a policy bounds an attempt, not the time between two parts of its answer", "per_try_idle_timeout")
	r.otherHosts(d, o)
	d.lost(o, Lost, "an extension, of which nothing is known here", "retry_options_predicates")
	d.lost(o, Lost, "a policy has no list of headers; lullhttp reads X-Should-Retry and others by itself", "retriable_headers")
	d.lost(o, Lost, "a dependency does not change between attempts", "refresh_cluster_on_retry")
	o.NoMore(retryFields...)
	for _, name := range []string{"retry_on", "retriable_status_codes", "retry_back_off", "rate_limited_retry_back_off", "retriable_request_headers"} {
		if at, ok := o.PathOf(name); ok {
			r.idle = append(r.idle, at)
		}
	}
	return r
}

func (d *document) statuses(items []*tree.Node, path string, least int64) (all []int) {
	for i, item := range items {
		n, ok := tree.WholeNumber(item)
		if d.Check(ok && n >= least && n <= 599, item, tree.Element(path, i), fmt.Sprintf("a status from %d to 599", least)) {
			all = append(all, int(n))
		}
	}
	return all
}

const hostsWhy = "which host an attempt goes to is not the policy's business: lullhttp.NewEndpoints sends a retry elsewhere"

// otherHosts reads which host a retry goes to, as far as Istio has the same.
func (r *envoyRetry) otherHosts(d *document, o *tree.Object) {
	config := func(o *tree.Object) *tree.Node { n, _ := o.Get("typed_config"); return n }
	is := func(o *tree.Object, config *tree.Node, name string) bool {
		if config.Get("@type") != nil {
			return strings.Contains(plain(typeOf(config)), plain(name))
		}
		return strings.HasSuffix(o.String("name"), "."+name)
	}
	for _, p := range o.Objects("retry_host_predicate") {
		p.Node.Use = tree.Told
		if is(p, config(p), "previous_hosts") {
			r.hosts.others = true
			r.hosted = append(r.hosted, p.Path)
		} else {
			d.note(Lost, p.Path, hostsWhy)
		}
	}
	const searches = "host_selection_retry_max_attempts"
	if n, ok := o.Whole(searches, 0, math.MaxInt32, "a whole number from 0"); ok {
		r.hosts.more = n - 1
		r.hosted = append(r.hosted, o.At(searches))
	}
	if p := o.Object("retry_priority"); p != nil {
		if config := config(p); config != nil && is(p, config, "previous_priorities") {
			r.hosts.priorities, _ = d.Object(config, p.At("typed_config")).Whole("update_frequency", 1, math.MaxInt32, "a whole number from 1")
		}
		if r.hosts.priorities > 0 {
			r.hosted = append(r.hosted, p.Path)
		} else {
			d.note(Lost, p.Path, hostsWhy)
		}
		p.Node.Use = tree.Told
	}
}

func meant(word string, words []string) string {
	if near := choice.Nearest(word, words); near != "" {
		return "; " + near + " may be meant"
	}
	return ""
}

type timeForm struct {
	least   time.Duration
	allowed string
	parse   func(string) (time.Duration, bool)
	format  func(time.Duration) string
}

func (r *envoyRetry) backOff(d *document, b *tree.Object) {
	const first, last = "base_interval", "max_interval"
	base, longest := r.intervals(d, b, first, last, timeForm{1, allowedSeconds, tree.ParseSeconds, tree.Seconds})
	b.NoMore(first, last)
	if base > 0 {
		w := proxyWaits(envoyMillis(d, b.At(first), base), 0)
		w.Cap = max(envoyMillis(d, b.At(last), longest), w.Base)
		r.waits = &w
	}
}

// intervals reads the base of waits, without which Envoy refuses them, and the longest. Zero: a mistake.
func (r *envoyRetry) intervals(d *document, b *tree.Object, first, last string, s timeForm) (base, longest time.Duration) {
	if !b.Has(first) {
		b.Require(first, s.allowed)
	}
	base, _ = b.Duration(first, s.least, s.allowed, s.parse)
	longest, given := b.Duration(last, s.least, s.allowed, s.parse)
	switch n := b.Field(last); {
	case base == 0:
		return 0, 0
	case !given:
		r.implied.add(true, "without "+last+" Envoy waits for up to ten times "+first)
		longest = min(base, math.MaxInt64/proxyGrowth) * proxyGrowth
	case longest.Truncate(time.Millisecond) < base.Truncate(time.Millisecond):
		d.Wrong(n, b.At(last), n.Found(), "at least "+first+", "+s.format(base), "")
		return 0, 0
	}
	return base, longest
}

// envoyTimeout reads a duration as Envoy takes it; zero means none.
func (d *document) envoyTimeout(o *tree.Object, name string) (time.Duration, bool) {
	t, ok := o.Duration(name, 0, "zero, or "+allowedSeconds, tree.ParseSeconds)
	if whole := t.Truncate(time.Millisecond); whole != t && t != math.MaxInt64 {
		d.note(Changed, o.At(name), "Envoy counts in whole milliseconds: it is "+pretty.Duration(whole))
		t = whole
	}
	return t, ok
}

// envoyMillis is t as Envoy takes it: rounded down to whole milliseconds, but at least one.
func envoyMillis(d *document, path string, t time.Duration) time.Duration {
	whole := max(t.Truncate(time.Millisecond), time.Millisecond)
	d.noteIf(whole != t && t != math.MaxInt64, Changed, path,
		"Envoy counts in whole milliseconds: it is "+pretty.Duration(whole))
	return whole
}

func (r *envoyRetry) rateLimited(d *document, b *tree.Object) {
	t, ok := b.Duration("max_interval", 1, allowedSeconds, tree.ParseSeconds)
	r.hint = choice.Either(ok, t, 300*time.Second)
	r.implied.add(!ok, "without max_interval in rate_limited_retry_back_off Envoy goes by hints of up to 300s")
	headers := b.Objects("reset_headers")
	if !b.Has("reset_headers") {
		d.Wrong(b.Node, b.At("reset_headers"), "missing", "at least one header, such as {name: Retry-After, format: SECONDS}", "")
	}
	ours := false
	for _, h := range headers {
		name, format := h.String("name"), d.enum(h, "format", "SECONDS", "UNIX_TIMESTAMP")
		h.NoMore("name", "format")
		if strings.EqualFold(name, "retry-after") && format != "UNIX_TIMESTAMP" {
			ours = true
			continue
		}
		d.note(Lost, h.Path, "a policy does not name headers: lullhttp reads Retry-After, RateLimit and X-RateLimit-Reset by itself")
	}
	d.noteAbout(ours, hintsUsed, Changed, b.Path,
		"Envoy goes by a hint that is not too long, and by its own waits otherwise; lull ends the call if the server asks for more than hint_limit, and also reads a date")
	b.NoMore("reset_headers", "max_interval")
}

// methods reads retriable_request_headers. If they list the requests that lull repeats, nothing is lost.
func (r *envoyRetry) methods(d *document, o *tree.Object) {
	n, path := o.Get("retriable_request_headers")
	if n == nil {
		return
	}
	if r.safe = content(n) == content(safeRequests()); r.safe {
		n.Use = tree.Told
		return
	}
	d.note(Lost, path, "a policy does not look at requests: lull repeats those whose method is idempotent or that have an idempotency key, and no others")
}

func safeRequests() *tree.Node {
	method := tree.NewMap().Set("name", ":method").
		Set("string_match", tree.NewMap().Set("safe_regex", tree.NewMap().Set("regex", "GET|HEAD|OPTIONS|TRACE|PUT|DELETE")))
	key := tree.NewMap().Set("name", "idempotency-key").Set("present_match", true)
	return tree.ListOf(method, key)
}

func (r *envoyRetry) failures() *failures {
	if r == nil || !r.given {
		return nil
	}
	return &r.on
}

// apply sets in p, of a call with that timeout, what it can express of r.
func (r *envoyRetry) apply(p *lull.Policy, timeout time.Duration) {
	d := r.d
	r.applied, r.long = true, false
	p.Attempts = d.attempts(r.retries, r.numPath)
	if r.waits != nil {
		p.Backoff = *r.waits
	}
	if !r.given {
		d.noteIf(r.retries > 0, Changed, r.path,
			"without retry_on Envoy retries nothing, unless a request's x-envoy-retry-on says so; here are no retries")
		p.Attempts = 1
	} else {
		r.why = r.on.apply(p)
	}
	if p.Attempts == 1 {
		r.why = ""
		for _, at := range slices.Concat(r.idle, r.hosted) {
			d.note(Lost, at, "there are no retries")
		}
	} else {
		for _, at := range r.hosted {
			d.noteAbout(true, hosted, Lost, at, hostsWhy)
		}
		for _, unsaid := range r.implied {
			d.note(Assumed, r.path, unsaid)
		}
	}
	if r.hint > 0 {
		p.HintLimit = r.hint
	} else {
		d.noteAbout(p.Attempts > 1 && p.HintLimit == anyHint && r.of != Istio, hints, Changed, r.path,
			"Envoy does not look at Retry-After without rate_limited_retry_back_off; lull does, and waits for up to 30s")
	}
	switch {
	case r.perTry == 0:
	case timeout > 0 && r.perTry >= timeout:
		d.note(Changed, r.perTryPath, choice.Either(r.of == Istio, "it has no effect in Istio, since it is not less than the timeout",
			"it has no effect in Envoy, since it is not less than the timeout of the route"))
		p.AttemptTimeout, r.long = lull.NoTimeout, true
	default:
		p.AttemptTimeout = r.perTry
	}
}

// hedgePolicy reads a hedge_policy, and returns its path if it is on.
func (e *envoyReader) hedgePolicy(o *tree.Object) string {
	on, _ := o.Bool("hedge_on_per_try_timeout")
	e.d.lost(o, Lost, "Envoy does not implement it", "initial_requests", "additional_request_chance")
	o.NoMore("hedge_on_per_try_timeout", "initial_requests", "additional_request_chance")
	return choice.Either(on, o.Path, "")
}

// hedge makes the retries of p hedges, as the hedge_policy at path says.
func (d *document) hedge(p *lull.Policy, path string, retry *envoyRetry) {
	if retry == nil || retry.perTry == 0 || p.AttemptTimeout <= 0 || p.Attempts < 2 {
		d.note(Changed, path, "it has no effect in Envoy without retries and a per_try_timeout")
		return
	}
	n := min(p.Attempts, hedge.MaxAttempts)
	d.noteIf(n < p.Attempts, Changed, retry.numPath, "at most 5 attempts run side by side")
	p.Hedge = hedge.Config{Attempts: n, Delay: p.AttemptTimeout, Share: -1, InFlight: -1}
	p.Attempts, p.AttemptTimeout = 1, lull.NoTimeout
	d.note(Changed, path, "after an attempt that failed Envoy waits for its backoff, and lull sends the next one at once")
}

func (e *envoyReader) cluster(o *tree.Object) {
	d := e.d
	name := cmp.Or(o.String("name"), stem(d.File))
	c := &cluster{d: d, path: o.Path, name: name, node: o.Node, text: content(o.Node)}
	if first := e.find(name); first != nil && first.d.File == d.File {
		if first.text != c.text { // a dump may have the same cluster several times
			d.Wrong(o.Node, o.At("name"), tree.Quote(name)+" once more", "each cluster once", "")
		}
		return
	}
	o.Get("@type")
	c.extras = Envoy.known()
	e.breakers(o, o.Object("circuit_breakers"), c)
	below, path := e.panicBelow(o)
	if od := o.Object("outlier_detection"); od != nil {
		c.extras.places["breaker"] = d.at(od.Path).Position
		c.guard.ejection = e.outlier(od, below)
	}
	if path != "" && c.guard.ejection != nil {
		d.noteAbout(true, ejected, Lost, path, panicWhy)
	} else if path != "" {
		d.note(Aside, path, "without outlier_detection that a breaker can say it is about health checks")
	}
	d.lost(o, Lost, "it is that of the net.Dialer, not of a policy", "connect_timeout")
	d.noteUnread(o, "connections and hosts, not how calls are made")
	e.clusters[name] = append(e.clusters[name], c)
	e.order = append(e.order, c)
}

// panicBelow is the percentage of healthy endpoints below which ejections do not count, and the path of that field.
func (e *envoyReader) panicBelow(cluster *tree.Object) (percent int, path string) {
	const standard = 50
	lb := cluster.Object("common_lb_config")
	t := lb.Object("healthy_panic_threshold")
	e.d.noteUnread(lb, "connections and hosts, not how calls are made")
	if t == nil {
		return standard, ""
	}
	f, _ := percentIn(t, "value")
	t.NoMore("value")
	return int(math.Round(f)), t.At("value")
}

func percentIn(o *tree.Object, name string) (float64, bool) {
	return o.Float(name, "a number from 0 to 100", func(f float64) bool { return f >= 0 && f <= 100 })
}

// content is n as a text to compare: without @type, whatever the spelling and the order of its keys.
func content(n *tree.Node) string {
	bare := *n
	bare.Members = slices.DeleteFunc(slices.Clone(n.Members), func(m tree.Member) bool { return m.Key == "@type" })
	return string(folded(&bare).Compact())
}

// folded is n with sorted keys, which have only letters and digits in lower case.
func folded(n *tree.Node) *tree.Node {
	out := *n
	out.Items = choice.Each(n.Items, folded)
	out.Members = choice.Each(n.Members, func(m tree.Member) tree.Member { return tree.Member{Key: plain(m.Key), Value: folded(m.Value)} })
	slices.SortStableFunc(out.Members, func(a, b tree.Member) int { return cmp.Compare(a.Key, b.Key) })
	return &out
}

var thresholdFields = []string{"priority", "max_connections", "max_pending_requests", "max_requests", "max_retries", "retry_budget", "track_remaining", "max_connection_pools"}

func (e *envoyReader) breakers(cluster, o *tree.Object, c *cluster) {
	d := e.d
	var own *tree.Object
	for _, t := range o.Objects("thresholds") {
		if d.enum(t, "priority", "DEFAULT", "HIGH") == "HIGH" {
			d.noteWhole(Lost, t.Node, t.Path, "a policy has no priorities; that of DEFAULT counts")
			continue
		}
		if own != nil {
			d.Wrong(t.Node, t.Path, "for the same priority once more", "one for each priority", "")
		}
		own = t
	}
	if n, path := o.Get("per_host_thresholds"); n != nil {
		d.note(Lost, path, "a policy does not know hosts")
	}
	o.NoMore("thresholds", "per_host_thresholds")
	limit, limited := d.limit(own, "max_requests", 1024) // which is Envoy's default
	if limited {
		c.extras.places["limit.in_flight"] = d.at(own.At("max_requests")).Position
	}
	retries, bounded := own.Whole("max_retries", 0, unlimited, allowedUint32)
	budgetPath := ""
	if bounded {
		budgetPath = own.At("max_retries")
		c.extras.places["budget"] = d.at(budgetPath).Position
	} else {
		retries = 3
	}
	if rb := own.Object("retry_budget"); rb != nil {
		d.noteIf(bounded, Lost, budgetPath, "a retry_budget takes its place, in Envoy as well")
		c.guard.budget = e.retryBudget(rb)
		budgetPath = rb.Path
		c.extras.places["budget"] = d.at(budgetPath).Position
		c.guard.bound = &bound{d, rb.Path, budgetWhy}
	} else if bounded && !own.Has("retry_budget") && !d.noLimit(budgetPath, retries) {
		c.guard.bound = &bound{d, budgetPath, stockWhy}
	}
	d.connectionLimits(own, "max_connections", "max_pending_requests", "max_connection_pools")
	d.lost(own, Aside, "it counts, and bounds nothing", "track_remaining")
	own.NoMore(thresholdFields...)
	d.assume(!limited, cluster.Path, "without max_requests Envoy lets 1024 requests be under way")
	d.assume(budgetPath == "", cluster.Path, "without max_retries and retry_budget Envoy lets three retries be under way")
	c.guard.calls, c.guard.limited = limit, limited || !d.based
	c.guard.retries, c.guard.bounded = retries, budgetPath != "" || !d.based
}

const allowedUint32 = "a whole number from 0 to 4294967295"

func (d *document) limit(o *tree.Object, name string, otherwise int64) (n int64, given bool) {
	if n, given = o.Whole(name, 0, unlimited, allowedUint32); !given {
		return otherwise, false
	}
	d.noteIf(n == 0, Changed, o.At(name), "a limit is 1 at least")
	return n, true
}

// noLimit records at path a number of concurrent retries that is so large that it is no limit, and reports whether it is.
func (d *document) noLimit(path string, retries int64) bool {
	d.noteIf(retries >= math.MaxInt32, Aside, path, noLimitWhy)
	return retries >= math.MaxInt32
}

func (d *document) connectionLimits(o *tree.Object, names ...string) {
	for _, name := range names {
		n, ok := o.Whole(name, 0, unlimited, allowedUint32)
		d.noteIf(ok && n < unlimited, Lost, o.At(name), connectionsWhy)
		d.noteIf(ok && n == unlimited, Aside, o.At(name), noLimitWhy)
	}
}

const connectionsWhy = "connections, and who waits for one, are the http.Transport's business (MaxConnsPerHost)"

func (e *envoyReader) retryBudget(o *tree.Object) *proxyBudget {
	b := &proxyBudget{percent: 20, least: 3}
	percent := o.Object("budget_percent")
	if percent != nil {
		b.percent, _ = percentIn(percent, "value")
		percent.NoMore("value")
	}
	if n, ok := o.Whole("min_retry_concurrency", 0, unlimited, allowedUint32); ok {
		b.least = int(n)
	} else {
		e.d.note(Assumed, o.Path, "without min_retry_concurrency Envoy has 3")
	}
	if percent == nil {
		e.d.note(Assumed, o.Path, "without budget_percent Envoy has 20 %")
	}
	b.interval, _ = o.Duration("budget_interval", 0, "zero, or "+allowedSeconds, tree.ParseSeconds)
	o.NoMore("budget_percent", "min_retry_concurrency", "budget_interval")
	return b
}

var outlierFields = []string{"consecutive_5xx", "interval", "base_ejection_time", "max_ejection_percent", "enforcing_consecutive_5xx",
	"enforcing_success_rate", "success_rate_minimum_hosts", "success_rate_request_volume", "success_rate_stdev_factor",
	"consecutive_gateway_failure", "enforcing_consecutive_gateway_failure", "split_external_local_origin_errors",
	"consecutive_local_origin_failure", "enforcing_consecutive_local_origin_failure", "enforcing_local_origin_success_rate",
	"failure_percentage_threshold", "enforcing_failure_percentage", "enforcing_failure_percentage_local_origin",
	"failure_percentage_minimum_hosts", "failure_percentage_request_volume", "max_ejection_time", "max_ejection_time_jitter",
	"successful_active_health_check_uneject_host", "always_eject_one_host", "detect_degraded_hosts", "monitors"}

func (e *envoyReader) outlier(o *tree.Object, below int) *ejection {
	d := e.d
	var implied unsaid
	// enforced reports whether a detector ejects hosts, in at least some of a hundred cases.
	enforced := func(name string, otherwise int64) bool {
		n := upTo(100, o, name, otherwise)
		d.noteIf(n > 0 && n < 100, Changed, o.At(name), "a breaker opens in each of these cases")
		return n > 0
	}
	span := func(name string, least, otherwise time.Duration) time.Duration {
		t, ok := o.Duration(name, least, allowedSeconds, tree.ParseSeconds)
		implied.add(!ok && otherwise > 0, name+" "+tree.Seconds(otherwise))
		return choice.Either(ok, t, otherwise)
	}
	x := ejection{panic: below, base: span("base_ejection_time", 1, 30*time.Second), jitter: span("max_ejection_time_jitter", 0, 0), interval: span("interval", 1, 10*time.Second)}
	x.max = span("max_ejection_time", 1, max(300*time.Second, x.base))
	if n, _ := o.PathOf("max_ejection_time"); x.max < x.base {
		d.Wrong(o.Node, n, tree.Seconds(x.max), "at least base_ejection_time, "+tree.Seconds(x.base), "")
	}
	if n := count(o, "consecutive_5xx", 5); enforced("enforcing_consecutive_5xx", 100) {
		x.five = n
		implied.add(!o.Has("consecutive_5xx"), "consecutive_5xx 5")
	}
	if n := count(o, "consecutive_gateway_failure", 5); enforced("enforcing_consecutive_gateway_failure", 0) {
		x.gateway = n
	}
	x.read(d, o.At("consecutive_5xx"), o.At("consecutive_gateway_failure"))
	threshold, volume := upTo(100, o, "failure_percentage_threshold", 85), count(o, "failure_percentage_request_volume", 50)
	hosts := count(o, "failure_percentage_minimum_hosts", 5)
	if enforced("enforcing_failure_percentage", 0) {
		x.percent, x.volume, x.hosts = int(max(threshold, 1)), max(volume, 1), hosts
		d.noteAbout(x.hosts > 1, ejected, Lost, o.At("failure_percentage_minimum_hosts"), "a breaker has no other endpoints")
	}
	without := func(on bool, enforcing string, names ...string) {
		if !on {
			d.idle(o, "it ejects nothing without "+enforcing, names...)
		}
	}
	without(x.five > 0, "enforcing_consecutive_5xx and a number", "consecutive_5xx")
	without(x.gateway > 0, "enforcing_consecutive_gateway_failure and a number", "consecutive_gateway_failure")
	without(x.percent > 0, "enforcing_failure_percentage", "failure_percentage_threshold", "failure_percentage_request_volume", "failure_percentage_minimum_hosts")
	d.noteIf(upTo(100, o, "enforcing_success_rate", 100) > 0, Lost, pathIn(o, "enforcing_success_rate"),
		"a breaker has no other endpoints to compare with; outlier.Config of lullhttp.NewEndpoints has")
	x.most = int(upTo(100, o, "max_ejection_percent", 10))
	x.readMost(d, pathIn(o, "max_ejection_percent"))
	d.lost(o, Lost, "a breaker does not know endpoints; outlier.Config of lullhttp.NewEndpoints does", "success_rate_minimum_hosts", "success_rate_request_volume",
		"success_rate_stdev_factor", "split_external_local_origin_errors", "consecutive_local_origin_failure", "enforcing_consecutive_local_origin_failure",
		"enforcing_local_origin_success_rate", "enforcing_failure_percentage_local_origin",
		"successful_active_health_check_uneject_host", "always_eject_one_host", "detect_degraded_hosts", "monitors")
	o.NoMore(outlierFields...)
	return x.becomesBreaker(d, o, "Envoy", implied, "interval", "base_ejection_time", "max_ejection_time", "max_ejection_time_jitter",
		"max_ejection_percent")
}
