package convert

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/tree"
	"github.com/lullgo/lull/internal/waits"
)

// Types of Envoy's resources.
const (
	routesType  = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	clusterType = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
)

// envoy writes a route configuration with a virtual host for each dependency, and a cluster for each.
func (w *writer) envoy() []*tree.Node {
	hosts, clusters := tree.ListOf(), tree.ListOf()
	domains := map[string]bool{}
	w.each("Envoy", func(d config.Dependency, p lull.Policy, note noter) {
		note(Assumed, "", "it becomes a virtual host and a cluster of that name; which requests are meant, and where they go, is to be filled in")
		action := tree.NewMap().Set("cluster", d.Name)
		w.envoyRoute(action, d, p, note)
		route := tree.NewMap().Set("match", tree.NewMap().Set("prefix", "/")).Set("route", action)
		hosts.Items = append(hosts.Items, tree.NewMap().Set("name", d.Name).
			Set("domains", tree.ListOf(tree.String(domain(d.Name, domains, note)))).Set("routes", tree.ListOf(route)))
		clusters.Items = append(clusters.Items, w.envoyCluster(d.Name, p, note))
	})
	routes := tree.NewMap().Set("@type", routesType).Set("name", "lull").Set("virtual_hosts", hosts)
	return []*tree.Node{tree.NewMap().Set("resources", tree.ListOf(routes)), tree.NewMap().Set("resources", clusters)}
}

// domain is the name of a dependency as the domain of a virtual host. Domains must differ, without regard to case.
func domain(name string, taken map[string]bool, note noter) string {
	own := name
	for n := 2; taken[strings.ToLower(own)]; n++ {
		own = name + "-" + strconv.Itoa(n)
	}
	taken[strings.ToLower(own)] = true
	note.changed(own != name, "", "Envoy does not tell domains apart that differ in case only: it becomes that of "+own)
	return own
}

func (w *writer) envoyRoute(action *tree.Node, d config.Dependency, p lull.Policy, note noter) {
	if p.Deadline > 0 {
		action.Set("timeout", tree.Seconds(millis(p.Deadline, "deadline", "Envoy", note)))
	} else {
		action.Set("timeout", "0s")
	}
	attempts, hedged := p.MaxAttempts(), p.Hedge.Attempts > 1 && p.Hedge.Delay != 0
	note.changed(p.Hedge.Attempts > 1 && !hedged, "hedge",
		"Envoy cannot learn when to hedge, so the policy is written as one that retries as often")
	if attempts < 2 && !waits.Bounded(p) {
		return
	}
	retry := tree.NewMap()
	f := w.failures(d.Name, p)
	if attempts > 1 {
		statuses := tree.ListOf(choice.Each(f.statuses, tree.Int[int])...)
		retry.Set("retry_on", strings.Join(f.on, ",")).SetIf(len(f.statuses) > 0, "retriable_status_codes", statuses)
	}
	retry.Set("num_retries", attempts-1)
	perTry := p.AttemptTimeout
	if hedged {
		note.lost(waits.Bounded(p), "attempt_timeout", "with hedge_on_per_try_timeout no attempt is ended before the call")
		perTry = w.hedgeDelay(p, note)
		p.AttemptTimeout = perTry
	}
	if perTry > 0 && waits.Bounded(p) {
		from := choice.Either(hedged, "hedge.delay", "attempt_timeout")
		t := millis(perTry, from, "Envoy", note)
		note.changed(p.Deadline > 0 && t >= toMillis(p.Deadline), from,
			"rounded it is not less than the timeout of the route, so that it has no effect in Envoy")
		retry.Set("per_try_timeout", tree.Seconds(t))
	} else {
		note.changed(hedged, "hedge",
			"its delay is not less than the deadline, so that nothing is hedged: it is written as a policy that retries as often")
	}
	if attempts > 1 {
		known, foreign := w.set.known[d.Name]
		base, longest := fit(p, attempts, 0, "Envoy", note)
		retry.Set("retry_back_off", tree.NewMap().Set("base_interval", tree.Seconds(base)).Set("max_interval", tree.Seconds(longest)))
		w.retries(d, p, f, "Envoy", note)
		if !known.ignoresHints {
			w.hints(d.Name, retry, p, note)
		}
		retry.SetIf(!foreign || known.safe, "retriable_request_headers", safeRequests())
		envoyHosts(retry, known.hosts)
	}
	action.Set("retry_policy", retry)
	action.SetIf(hedged && retry.Get("per_try_timeout") != nil, "hedge_policy", tree.NewMap().Set("hedge_on_per_try_timeout", true))
}

func envoyHosts(retry *tree.Node, h hosts) {
	config := func(kind string) *tree.Node {
		return tree.NewMap().Set("@type", "type.googleapis.com/envoy.extensions.retry."+kind)
	}
	retry.SetIf(h.others, "retry_host_predicate", tree.ListOf(tree.NewMap().Set("name", "envoy.retry_host_predicates.previous_hosts").
		Set("typed_config", config("host.previous_hosts.v3.PreviousHostsPredicate"))))
	retry.SetIf(h.more != 0, "host_selection_retry_max_attempts", 1+h.more)
	retry.SetIf(h.priorities > 0, "retry_priority", tree.NewMap().Set("name", "envoy.retry_priorities.previous_priorities").
		Set("typed_config", config("priority.previous_priorities.v3.PreviousPrioritiesConfig").Set("update_frequency", h.priorities)))
}

func (w *writer) hints(name string, retry *tree.Node, p lull.Policy, note noter) {
	header := tree.NewMap().Set("name", "Retry-After").Set("format", "SECONDS")
	retry.Set("rate_limited_retry_back_off", tree.NewMap().Set("reset_headers", tree.ListOf(header)).
		Set("max_interval", tree.Seconds(millis(p.HintLimit, "hint_limit", "Envoy", note))))
	d, known := w.set.proxied(name)
	note.changed(!known || d.of != Envoy, "hint_limit",
		"Envoy reads Retry-After in seconds only, and goes on with its own waits if one is longer; lull ends the call")
}

func (w *writer) hedgeDelay(p lull.Policy, note noter) time.Duration {
	note.lost(p.Hedge.Share >= 0, "hedge.share", "Envoy hedges every call that is late, however many are")
	note.lost(p.Hedge.InFlight >= 0, "hedge.in_flight", "Envoy bounds hedges as it bounds retries")
	if p.Hedge.Delay == hedge.AtOnce {
		note(Changed, "hedge.delay", "Envoy sends nothing at once; it waits for 1ms")
		return toMillis(1)
	}
	note(Changed, "hedge", "after an attempt that failed Envoy waits for its backoff; lull sends the next one at once")
	return p.Hedge.Delay
}

// failures are the failures to retry: those that were read from another proxy, otherwise those that lull retries.
func (w *writer) failures(name string, p lull.Policy) failures {
	known := w.set.known[name]
	if known.retried != nil && len(known.retried.on) > 0 {
		return *known.retried
	}
	if f, _ := failuresOfCodes(known.codes); len(f.on) > 0 {
		return f
	}
	return failuresOf(p)
}

func (w *writer) retries(d config.Dependency, p lull.Policy, f failures, system string, note noter) {
	known := w.set.known[d.Name]
	if known.retried != nil || len(known.codes) > 0 {
		w.took[selection+about(":"+d.Name)] = true
		_, left := failuresOfCodes(known.codes)
		note.lost(len(left) > 0, "", system+" knows no gRPC status "+strings.Join(left, ","))
		return
	}
	note(Assumed, "", "which failures are retried is written as lullhttp sees them: "+f.String())
	switch p.Timeouts {
	case engine.TimeoutsWhenAnswered:
		note(Changed, "timeouts", system+" would retry them whether anybody is answered or not, so it retries none; nor connections that break, which it cannot tell from them")
	case lull.TimeoutsNever:
		note(Changed, "timeouts", system+" cannot tell a connection that breaks from a time-out, so it retries neither")
	}
	rateLimitedWaits(p, f, system, note)
}

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

func (w *writer) envoyCluster(name string, p lull.Policy, note noter) *tree.Node {
	limits := tree.NewMap().Set("max_connections", int64(unlimited)).Set("max_pending_requests", int64(unlimited)).
		Set("max_requests", limitNumber(p.Limit))
	if b, most := w.bounds(name, p, note); b != nil {
		limits.Set("retry_budget", envoyBudget(*b, note))
	} else {
		limits.Set("max_retries", most)
	}
	c := tree.NewMap().Set("@type", clusterType).Set("name", name).
		Set("circuit_breakers", tree.NewMap().Set("thresholds", tree.ListOf(limits)))
	if e := w.ejection(name, p, true, "Envoy", note); e != nil {
		c.Set("outlier_detection", envoyOutlier(*e))
		c.Set("common_lb_config", tree.NewMap().Set("healthy_panic_threshold", tree.NewMap().Set("value", e.panic)))
	}
	return c
}

// unpaid records the budget of a policy without retries, which has no use for it.
func unpaid(b budget.Config, note noter) {
	note.lost(!b.Unlimited && b != (budget.Config{}), "budget", "there are no retries")
}

func limitNumber(c bulkhead.Config) int64 { return cmp.Or(int64(c.InFlight), unlimited) }

func envoyBudget(b proxyBudget, note noter) *tree.Node {
	n := tree.NewMap().Set("budget_percent", tree.NewMap().Set("value", b.percent)).Set("min_retry_concurrency", min(b.least, math.MaxInt32))
	if b.interval > 0 {
		n.Set("budget_interval", tree.Seconds(toMillis(b.interval)))
		note(Assumed, "budget.window", "budget_interval is new in Envoy; older ones refuse it")
	}
	return n
}

// envoyOutlier writes an ejection. It writes all fields, because Envoy has defaults for those that are missing.
func envoyOutlier(e ejection) *tree.Node {
	enforced := map[bool]int{false: 0, true: 100}
	n := tree.NewMap().SetIf(e.five > 0, "consecutive_5xx", min(e.five, math.MaxInt32)).
		Set("enforcing_consecutive_5xx", enforced[e.five > 0]).
		SetIf(e.gateway > 0, "consecutive_gateway_failure", e.gateway).
		SetIf(e.gateway > 0, "enforcing_consecutive_gateway_failure", enforced[true]).
		Set("enforcing_success_rate", enforced[false])
	if e.percent > 0 {
		n.Set("failure_percentage_threshold", e.percent).Set("enforcing_failure_percentage", enforced[true]).
			Set("failure_percentage_minimum_hosts", e.hosts).Set("failure_percentage_request_volume", min(e.volume, math.MaxInt32))
	}
	return n.SetIf(e.interval > 0, "interval", tree.Seconds(e.interval)).
		Set("base_ejection_time", tree.Seconds(e.base)).
		Set("max_ejection_time", tree.Seconds(e.max)).
		SetIf(e.jitter > 0, "max_ejection_time_jitter", tree.Seconds(e.jitter)).
		Set("max_ejection_percent", e.most)
}
