package convert

import (
	"math"
	"slices"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/tree"
	"github.com/lullgo/lull/internal/waits"
)

// envoyGateway writes a BackendTrafficPolicy for each dependency.
func (w *writer) envoyGateway() (policies []*tree.Node) {
	const system = "Envoy Gateway"
	taken := map[string]bool{}
	for _, d := range w.set.File.Dependencies {
		note := w.of(d)
		p := d.Policy.WithDefaults()
		name := w.host(d.Name, taken, note)
		note(Assumed, "", "it becomes a BackendTrafficPolicy for the HTTPRoute "+name+", which is to be written")
		target := tree.NewMap().Set("group", tree.String("gateway.networking.k8s.io")).Set("kind", tree.String("HTTPRoute")).Set("name", tree.String(name))
		spec := tree.NewMap().Set("targetRefs", tree.ListOf(target))
		w.backendTraffic(spec, d, p, note)
		policies = append(policies, object(envoyGatewayVersion, "BackendTrafficPolicy", name, spec))
		noteUnsupported(p, system, note)
		w.facts(d)
	}
	w.services()
	return policies
}

// backendTraffic writes the settings of a policy that has its defaults.
func (w *writer) backendTraffic(spec *tree.Node, d config.Dependency, p lull.Policy, note noter) {
	const system = "Envoy Gateway"
	span := func(t time.Duration, field string) *tree.Node {
		text := formatGateway(t)
		if back, _ := parseGateway(text); back != t {
			note(Changed, field, system+" has durations in whole milliseconds, of up to 99999h: "+text)
		}
		return tree.String(text)
	}
	if p.Hedge.Attempts > 1 {
		note(Changed, "hedge", system+" does not hedge, so the policy is written as one that retries as often")
	}
	attempts, deadline := p.MaxAttempts(), p.Deadline
	if attempts < 2 && waits.Bounded(p) {
		note(Changed, "attempt_timeout", system+" bounds an attempt only where there are retries: it is the timeout of the call")
		note(Changed, "deadline", "attempt_timeout is less, and there is one attempt")
		deadline = p.AttemptTimeout
	}
	timeout := tree.String("0s")
	if deadline > 0 {
		timeout = span(deadline, "deadline")
	}
	spec.Set("timeout", tree.NewMap().Set("http", tree.NewMap().Set("requestTimeout", timeout)))
	if attempts > 1 {
		spec.Set("retry", w.triggeredRetry(d, p, attempts, span, note))
	}
	limits := tree.NewMap().Set("maxConnections", tree.Int(int64(unlimited))).Set("maxPendingRequests", tree.Int(int64(unlimited))).
		Set("maxParallelRequests", tree.Int(limitNumber(p.Limit)))
	b, most := w.atATime(d.Name, p, note)
	if b != nil {
		most = max(int64(b.least), 1)
	}
	spec.Set("circuitBreaker", limits.Set("maxParallelRetries", tree.Int(min(most, unlimited))))
	if e := w.ejection(d.Name, p, false, system, note); e != nil {
		spec.Set("healthCheck", w.passive(*e, span, note))
	}
}

// atATime is bounds for a system that has no share of the calls.
func (w *writer) atATime(name string, p lull.Policy, note noter) (b *proxyBudget, most int64) {
	b, most = w.bounds(name, p, func(k Kind, field, why string) {
		if k == Changed {
			why = "Envoy Gateway has no share of the calls, and bounds the retries that are under way: it is the stock"
		}
		note(k, field, why)
	})
	if known, ok := w.set.proxied(name); ok && known.budget != nil {
		note(Changed, "budget", "Envoy Gateway has no retry budget: it is the number of retries that are always allowed")
	}
	return b, most
}

func (w *writer) triggeredRetry(d config.Dependency, p lull.Policy, attempts int, span func(time.Duration, string) *tree.Node, note noter) *tree.Node {
	const system = "Envoy Gateway"
	retry := tree.NewMap().Set("numRetries", tree.Int(attempts-1))
	f := w.failures(d.Name, p)
	known := w.set.foreign[d.Name]
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
	if len(left) > 0 {
		note(Lost, "", system+" has no trigger "+joined(left))
	}
	if len(words.Items) == 0 {
		words.Items = append(words.Items, tree.String(statusCodes))
	}
	on := tree.NewMap().Set("triggers", words)
	if len(codes.Items) > 0 {
		on.Set("httpStatusCodes", codes)
	}
	retry.Set("retryOn", on)
	per := tree.NewMap()
	if waits.Bounded(p) {
		if p.Deadline > 0 && toMillis(p.AttemptTimeout) >= toMillis(p.Deadline) {
			note(Changed, "attempt_timeout", "rounded it is not less than the timeout, so that it has no effect in Envoy")
		}
		per.Set("timeout", span(p.AttemptTimeout, "attempt_timeout"))
	}
	base, longest := fit(p, attempts, 0, system, note)
	most := 99999 * time.Hour
	if longest > most {
		note(Changed, "backoff.cap", "durations of Kubernetes end at 99999h")
	}
	per.Set("backOff", tree.NewMap().Set("baseInterval", tree.String(formatGateway(min(base, most)))).Set("maxInterval", tree.String(formatGateway(min(longest, most)))))
	retry.Set("perRetry", per)
	w.retries(d, p, f, system, note)
	if !known.ignoresHints {
		note(Lost, "hint_limit", system+" does not look at Retry-After")
	}
	if h := known.hosts; h.priorities > 0 {
		retry.Set("numAttemptsPerPriority", tree.Int(h.priorities))
	}
	if h := known.hosts; (known.of == Envoy || known.of == Istio) && !h.others {
		note(Changed, "", system+" sends a retry to a host that was not tried, where there is one")
	}
	w.unsafe(d, system+" retries a request whether it is safe to repeat or not: match the methods that are")
	return retry
}

// passive writes an ejection.
func (w *writer) passive(e ejection, span func(time.Duration, string) *tree.Node, note noter) *tree.Node {
	if e.max != max(300*time.Second, e.base) {
		note(Lost, "breaker.open_max", "Envoy Gateway cannot say it: it is 300s, or the first if that is longer")
	}
	if e.jitter > 0 {
		note(Lost, "breaker.open_jitter", "Envoy Gateway cannot say it")
	}
	if e.percent > 0 {
		note(Lost, "breaker.failure_rate", "Envoy Gateway cannot say it")
	}
	n := tree.NewMap().Set("consecutive5XxErrors", tree.Int(min(e.consecutive(), math.MaxInt32)))
	if e.interval > 0 {
		n.Set("interval", span(toMillis(e.interval), "breaker.window"))
	}
	n.Set("baseEjectionTime", span(e.base, "breaker.open_for")).Set("maxEjectionPercent", tree.Int(e.most))
	return tree.NewMap().Set("passive", n).Set("panicThreshold", tree.Int(e.panic))
}
