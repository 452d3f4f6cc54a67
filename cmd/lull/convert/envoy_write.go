package convert

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/tree"
	"github.com/lullgo/lull/internal/waits"
)

// Types of Envoy's resources.
const (
	routesType  = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	clusterType = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
)

// envoy writes a route configuration with a virtual host for each dependency, and a cluster for
// each.
func (w *writer) envoy() []*tree.Node {
	hosts, clusters := tree.ListOf(), tree.ListOf()
	domains := map[string]bool{}
	for _, d := range w.set.File.Dependencies {
		note := w.of(d)
		p := d.Policy.WithDefaults()
		note(Assumed, "", "it becomes a virtual host and a cluster of that name; which requests are meant, and where they go, is to be filled in")
		action := tree.NewMap().Set("cluster", tree.String(d.Name))
		w.envoyRoute(action, d, p, note)
		route := tree.NewMap().Set("match", tree.NewMap().Set("prefix", tree.String("/"))).Set("route", action)
		hosts.Items = append(hosts.Items, tree.NewMap().
			Set("name", tree.String(d.Name)).
			Set("domains", tree.ListOf(tree.String(domain(d.Name, domains, note)))).
			Set("routes", tree.ListOf(route)))
		clusters.Items = append(clusters.Items, w.envoyCluster(d.Name, p, note))
		noteUnsupported(p, "Envoy", note)
		w.facts(d)
	}
	w.services()
	routes := tree.NewMap().Set("@type", tree.String(routesType)).Set("name", tree.String("lull")).Set("virtual_hosts", hosts)
	return []*tree.Node{tree.NewMap().Set("resources", tree.ListOf(routes)), tree.NewMap().Set("resources", clusters)}
}

// domain is the name of a dependency as the domain of a virtual host. Domains must differ, without
// regard to case.
func domain(name string, taken map[string]bool, note noter) string {
	own := name
	for n := 2; taken[strings.ToLower(own)]; n++ {
		own = name + "-" + strconv.Itoa(n)
	}
	taken[strings.ToLower(own)] = true
	if own != name {
		note(Changed, "", "Envoy does not tell domains apart that differ in case only: it becomes that of "+own)
	}
	return own
}

// envoyRoute writes the route action for a policy that has its defaults.
func (w *writer) envoyRoute(action *tree.Node, d config.Dependency, p lull.Policy, note noter) {
	if p.Deadline > 0 {
		action.Set("timeout", tree.String(tree.Seconds(millis(p.Deadline, "deadline", "Envoy", note))))
	} else {
		action.Set("timeout", tree.String("0s"))
	}
	attempts, hedged := p.MaxAttempts(), p.Hedge.Attempts > 1 && p.Hedge.Delay != 0
	if p.Hedge.Attempts > 1 && !hedged {
		note(Changed, "hedge", "Envoy cannot learn when to hedge, so the policy is written as one that retries as often")
	}
	if attempts < 2 && !waits.Bounded(p) {
		return
	}
	retry := tree.NewMap()
	f := w.failures(d.Name, p)
	if attempts > 1 {
		retry.Set("retry_on", tree.String(joined(f.on)))
		if len(f.statuses) > 0 {
			list := tree.ListOf()
			for _, s := range f.statuses {
				list.Items = append(list.Items, tree.Int(s))
			}
			retry.Set("retriable_status_codes", list)
		}
	}
	retry.Set("num_retries", tree.Int(attempts-1))
	perTry := p.AttemptTimeout
	if hedged {
		if waits.Bounded(p) {
			note(Lost, "attempt_timeout", "with hedge_on_per_try_timeout no attempt is ended before the call")
		}
		perTry = w.hedgeDelay(p, note)
		p.AttemptTimeout = perTry
	}
	switch {
	case perTry > 0 && waits.Bounded(p):
		t := millis(perTry, field(hedged, "hedge.delay", "attempt_timeout"), "Envoy", note)
		if p.Deadline > 0 && t >= toMillis(p.Deadline) {
			note(Changed, field(hedged, "hedge.delay", "attempt_timeout"), "rounded it is not less than the timeout of the route, so that it has no effect in Envoy")
		}
		retry.Set("per_try_timeout", tree.String(tree.Seconds(t)))
	case hedged:
		note(Changed, "hedge", "its delay is not less than the deadline, so that nothing is hedged: it is written as a policy that retries as often")
	}
	if attempts > 1 {
		base, longest := fit(p, attempts, 0, "Envoy", note)
		retry.Set("retry_back_off", tree.NewMap().Set("base_interval", tree.String(tree.Seconds(base))).Set("max_interval", tree.String(tree.Seconds(longest))))
		w.retries(d, p, f, "Envoy", note)
		if !w.set.foreign[d.Name].ignoresHints {
			w.hints(d.Name, retry, p, note)
		}
		if f, ok := w.set.foreign[d.Name]; !ok || f.safe {
			retry.Set("retriable_request_headers", safeRequests())
		}
		envoyHosts(retry, w.set.foreign[d.Name].hosts)
	}
	action.Set("retry_policy", retry)
	if hedged && retry.Get("per_try_timeout") != nil {
		action.Set("hedge_policy", tree.NewMap().Set("hedge_on_per_try_timeout", tree.True()))
	}
}

// envoyHosts writes which host a retry goes to.
func envoyHosts(retry *tree.Node, h hosts) {
	extension := func(name, kind string) *tree.Node {
		return tree.NewMap().Set("name", tree.String(name)).Set("typed_config", tree.NewMap().Set("@type", tree.String("type.googleapis.com/envoy.extensions.retry."+kind)))
	}
	if h.others {
		retry.Set("retry_host_predicate", tree.ListOf(extension("envoy.retry_host_predicates.previous_hosts", "host.previous_hosts.v3.PreviousHostsPredicate")))
	}
	if h.more != 0 {
		retry.Set("host_selection_retry_max_attempts", tree.Int(1+h.more))
	}
	if h.priorities > 0 {
		p := extension("envoy.retry_priorities.previous_priorities", "priority.previous_priorities.v3.PreviousPrioritiesConfig")
		p.Get("typed_config").Set("update_frequency", tree.Int(h.priorities))
		retry.Set("retry_priority", p)
	}
}

// hints writes that Retry-After is followed.
func (w *writer) hints(name string, retry *tree.Node, p lull.Policy, note noter) {
	header := tree.NewMap().Set("name", tree.String("Retry-After")).Set("format", tree.String("SECONDS"))
	retry.Set("rate_limited_retry_back_off", tree.NewMap().Set("reset_headers", tree.ListOf(header)).
		Set("max_interval", tree.String(tree.Seconds(millis(p.HintLimit, "hint_limit", "Envoy", note)))))
	if d, known := w.set.proxied(name); known && d.of == Envoy {
		return
	}
	note(Changed, "hint_limit", "Envoy reads Retry-After in seconds only, and goes on with its own waits if one is longer; lull ends the call")
}

func field(ok bool, one, other string) string {
	if ok {
		return one
	}
	return other
}

// hedgeDelay is the per_try_timeout of a policy that hedges.
func (w *writer) hedgeDelay(p lull.Policy, note noter) time.Duration {
	if p.Hedge.Share >= 0 {
		note(Lost, "hedge.share", "Envoy hedges every call that is late, however many are")
	}
	if p.Hedge.InFlight >= 0 {
		note(Lost, "hedge.in_flight", "Envoy bounds hedges as it bounds retries")
	}
	if p.Hedge.Delay == hedge.AtOnce {
		note(Changed, "hedge.delay", "Envoy sends nothing at once; it waits for 1ms")
		return toMillis(1)
	}
	note(Changed, "hedge", "after an attempt that failed Envoy waits for its backoff; lull sends the next one at once")
	return p.Hedge.Delay
}

// failures are the failures to retry: those that were read from another proxy, otherwise those that
// lull retries.
func (w *writer) failures(name string, p lull.Policy) failures {
	known := w.set.foreign[name]
	if known.retried != nil && len(known.retried.on) > 0 {
		return *known.retried
	}
	if f, _ := failuresOfCodes(known.codes); len(f.on) > 0 {
		return f
	}
	return failuresOf(p)
}

// retries records what happens to the choice of failures, for a policy with retries.
func (w *writer) retries(d config.Dependency, p lull.Policy, f failures, system string, note noter) {
	known := w.set.foreign[d.Name]
	if known.retried != nil || len(known.codes) > 0 {
		w.took[selection+about(":"+d.Name)] = true
		if _, left := failuresOfCodes(known.codes); len(left) > 0 {
			note(Lost, "", system+" knows no gRPC status "+joined(left))
		}
		return
	}
	note(Assumed, "", "which failures are retried is written as lullhttp sees them: "+f.String())
	proxyTimeouts(p, system, note)
	rateLimitedWaits(p, f, system, note)
}

// bounds writes the bound of retries: a budget, or a number of concurrent retries.
func (w *writer) bounds(name string, p lull.Policy, note noter) (b *proxyBudget, most int64) {
	if known, ok := w.set.proxied(name); ok {
		return known.budget, known.retries
	}
	if p.MaxAttempts() < 2 {
		unpaid(p.Budget, note)
		return nil, unlimited
	}
	if p.Budget.Unlimited {
		return nil, unlimited
	}
	note(Changed, "budget", budgetWhy)
	own := proxyBudgetOf(p.Budget)
	return &own, 0
}

// ejection is the outlier detection to write; nil: none.
func (w *writer) ejection(name string, p lull.Policy, rates bool, system string, note noter) *ejection {
	if known, ok := w.set.proxied(name); ok && known.ejection != nil {
		return known.ejection
	}
	if p.Breaker.Off {
		return nil
	}
	e, ok := ejectionOf(p.Breaker, rates)
	if !ok {
		note(Lost, "breaker", breakerLost(p.Breaker, system))
		return nil
	}
	note(Changed, "breaker", breakerWhy)
	return &e
}

// envoyCluster writes the cluster for a policy that has its defaults.
func (w *writer) envoyCluster(name string, p lull.Policy, note noter) *tree.Node {
	none := tree.Int(int64(unlimited))
	limits := tree.NewMap().Set("max_connections", none).Set("max_pending_requests", none)
	limits.Set("max_requests", tree.Int(limitNumber(p.Limit)))
	b, most := w.bounds(name, p, note)
	if b != nil {
		limits.Set("retry_budget", envoyBudget(*b, note))
	} else {
		limits.Set("max_retries", tree.Int(most))
	}
	c := tree.NewMap().Set("@type", tree.String(clusterType)).Set("name", tree.String(name)).
		Set("circuit_breakers", tree.NewMap().Set("thresholds", tree.ListOf(limits)))
	if e := w.ejection(name, p, true, "Envoy", note); e != nil {
		c.Set("outlier_detection", envoyOutlier(*e))
		c.Set("common_lb_config", tree.NewMap().Set("healthy_panic_threshold", tree.NewMap().Set("value", tree.Int(e.panic))))
	}
	return c
}

// unpaid records the budget of a policy without retries, which has no use for it.
func unpaid(b budget.Config, note noter) {
	if !b.Unlimited && b != (budget.Config{}) {
		note(Lost, "budget", "there are no retries")
	}
}

// limitNumber is the limit as a number; Envoy has a large number for no limit.
func limitNumber(c bulkhead.Config) int64 {
	if c.InFlight == 0 {
		return unlimited
	}
	return int64(c.InFlight)
}

func envoyBudget(b proxyBudget, note noter) *tree.Node {
	n := tree.NewMap().
		Set("budget_percent", tree.NewMap().Set("value", tree.Float(b.percent))).
		Set("min_retry_concurrency", tree.Int(min(b.least, math.MaxInt32)))
	if b.interval > 0 {
		n.Set("budget_interval", tree.String(tree.Seconds(toMillis(b.interval))))
		note(Assumed, "budget.window", "budget_interval is new in Envoy; older ones refuse it")
	}
	return n
}

// envoyOutlier writes an ejection. It writes all fields, because Envoy has defaults for those that
// are missing.
func envoyOutlier(e ejection) *tree.Node {
	n := tree.NewMap()
	share := func(on bool) *tree.Node {
		if on {
			return tree.Int(100)
		}
		return tree.Int(0)
	}
	if e.five > 0 {
		n.Set("consecutive_5xx", tree.Int(min(e.five, math.MaxInt32)))
	}
	n.Set("enforcing_consecutive_5xx", share(e.five > 0))
	if e.gateway > 0 {
		n.Set("consecutive_gateway_failure", tree.Int(e.gateway)).Set("enforcing_consecutive_gateway_failure", share(true))
	}
	n.Set("enforcing_success_rate", share(false))
	if e.percent > 0 {
		n.Set("failure_percentage_threshold", tree.Int(e.percent))
		n.Set("enforcing_failure_percentage", share(true))
		n.Set("failure_percentage_minimum_hosts", tree.Int(e.hosts))
		n.Set("failure_percentage_request_volume", tree.Int(min(e.volume, math.MaxInt32)))
	}
	if e.interval > 0 {
		n.Set("interval", tree.String(tree.Seconds(e.interval)))
	}
	n.Set("base_ejection_time", tree.String(tree.Seconds(e.base)))
	n.Set("max_ejection_time", tree.String(tree.Seconds(e.max)))
	if e.jitter > 0 {
		n.Set("max_ejection_time_jitter", tree.String(tree.Seconds(e.jitter)))
	}
	return n.Set("max_ejection_percent", tree.Int(e.most))
}
