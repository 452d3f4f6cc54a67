package convert

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/tree"
	"github.com/lullgo/lull/internal/waits"
)

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
