package convert

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/pretty"
	"github.com/lullgo/lull/internal/tree"
)

// An Edit is a change of one field in a file of another system, in its own words.
type Edit struct {
	// Position is that of the part of the file that has the field, or gets it.
	config.Position
	// Part is the path of that part in its document, such as spec.http[0]. Empty: it is the document.
	Part string
	// Field is the path of the field from there, such as retries.attempts. Objects on the way that are not there are made.
	Field string
	// Value is the new value, in YAML. Empty: the field is removed.
	Value string
}

// Edits returns the changes with which fields of the policy of a dependency are those of p. missing are the fields for which its system
// has none, or that are set in none of the files.
func (s *Set) Edits(dependency string, p lull.Policy, fields ...string) (edits []Edit, missing []string) {
	was, _ := s.find(dependency)
	of := s.known[dependency].of
	e := &editor{p: p, was: was.Policy, parts: s.known[dependency].sources}
	for _, field := range fields {
		before := len(e.edits)
		write := editors[of]
		if write == nil || !write(e, field) {
			missing, e.edits = append(missing, field), e.edits[:before]
		}
	}
	for _, each := range e.edits {
		if !slices.Contains(edits, each) {
			edits = append(edits, each)
		}
	}
	return edits, missing
}

type editor struct {
	p, was lull.Policy
	parts  []source
	edits  []Edit
}

// editors write a field of a policy as their systems have it, and report whether they can.
var editors = [formats]func(e *editor, field string) bool{
	GRPC: (*editor).grpc, Istio: (*editor).istio, Envoy: (*editor).envoy, Gateway: (*editor).gateway, EnvoyGateway: (*editor).envoyGateway,
	Dapr: (*editor).dapr, Linkerd: (*editor).linkerd, Resilience4j: (*editor).resilience4j,
}

// kind is that of the Kubernetes object, the registry of resilience4j, the list of Dapr, or cluster or route of Envoy.
func (s source) kind() string {
	path := s.local()
	words := strings.Split(path, ".")
	switch {
	case s.in == nil:
		return ""
	case strings.HasPrefix(path, "spec.policies.") && len(words) > 3:
		return words[2]
	case len(words) > 1 && plain(words[0]) == "resilience4j":
		return plain(words[1])
	case s.in.root.Get("kind") != nil && s.in.root.Get("apiVersion") != nil:
		return choice.Either(strings.HasSuffix(path, ".retries"), "", s.in.root.Get("kind").Text) // which are a part of a route
	}
	switch n := s.in.at(path).node; {
	case n == nil:
		return ""
	case n.Get("match") != nil:
		return "" // the route around an action
	case shapeOf(n) == aCluster, strings.Contains(path, "clusters["):
		return "cluster"
	}
	return "route"
}

func (s source) local() string {
	return strings.TrimPrefix(strings.TrimPrefix(s.path, s.in.prefix), ".")
}

func (s source) has(field string) bool { return s.in.at(tree.Concat(s.local(), field)).node != nil }

func (e *editor) of(kind string) (all []source) {
	for _, s := range e.parts {
		if s.in != nil && s.kind() == kind && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// each calls plan for all parts of a kind, and reports whether there is one.
func (e *editor) each(kind string, plan func(source)) bool {
	all := e.of(kind)
	for _, s := range all {
		plan(s)
	}
	return len(all) > 0
}

// set plans a value for a field of all parts of a kind, and reports whether there is one.
func (e *editor) set(kind, field, value string) bool {
	return e.each(kind, func(s source) { e.setIn(s, field, value) })
}

// setIn plans a value for a field of one part. Keys keep their spelling, and a new one has that of its neighbours.
func (e *editor) setIn(s source, field, value string) {
	part, there := s.in.at(s.local()), s.in.at(tree.Concat(s.local(), field))
	own := strings.TrimPrefix(strings.TrimPrefix(there.path, s.local()), ".")
	place := part.Position
	if there.node == nil {
		own = likeNeighbours(part.node, own)
	} else if there.File != place.File {
		place = there.Position // of a document that several files make
	}
	e.edits = append(e.edits, Edit{Position: place, Part: s.path, Field: own, Value: value})
}

// likeNeighbours is the name of a new field of n, in kebab-case if that is how n writes.
func likeNeighbours(n *tree.Node, name string) string {
	if n == nil || !slices.ContainsFunc(n.Members, func(m tree.Member) bool { return strings.Contains(m.Key, "-") && !strings.Contains(m.Key, "/") }) {
		return name
	}
	var b strings.Builder
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			b.WriteByte('-')
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

func (e *editor) has(kind, field string) bool {
	return slices.ContainsFunc(e.of(kind), func(s source) bool { return s.has(field) })
}

func (e *editor) retries() string { return strconv.Itoa(e.p.Attempts - 1) }

// kubernetesDuration is a duration of Kubernetes, and wholeUnits one of the Gateway API, which has no fractions. Zero is none.
func kubernetesDuration(d time.Duration) string {
	return choice.Either(d <= 0, "0s", pretty.Duration(toMillis(d)))
}

func wholeUnits(d time.Duration) string { return choice.Either(d <= 0, "0s", formatGateway(d)) }

// springDurationText is a duration of Spring Boot, which has one number and no fractions.
func springDurationText(d time.Duration) string {
	if d = toMillis(max(d, 0)); d%time.Second == 0 {
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	}
	return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
}

func (e *editor) share() string {
	return strconv.FormatFloat(proxyBudgetOf(e.p.Budget).percent, 'f', -1, 64)
}

// failures is how many in a row open a breaker that has no consecutive_for. One failure is no evidence.
func (e *editor) failures() int {
	return choice.Either(e.p.Breaker.Consecutive > 1, e.p.Breaker.Consecutive, 5)
}

func (e *editor) istio(field string) bool {
	const route, rule = "VirtualService", "DestinationRule"
	const outlier = "trafficPolicy.outlierDetection"
	switch field {
	case "deadline":
		return e.set(route, "timeout", kubernetesDuration(e.p.Deadline))
	case "attempts":
		if e.p.Attempts == 1 {
			return e.set(route, "retries", "{attempts: 0}") // with which nothing else may stand
		}
		return e.set(route, "retries.attempts", e.retries())
	case "attempt_timeout":
		if !e.has(route, "retries.attempts") {
			e.set(route, "retries.attempts", e.retries())
		}
		return e.set(route, "retries.perTryTimeout", kubernetesDuration(e.p.AttemptTimeout))
	case "backoff.base":
		return e.has(route, "retries.attempts") && e.set(route, "retries.backoff", kubernetesDuration(e.p.Backoff.Base))
	case "budget.ratio":
		if e.has(rule, "trafficPolicy.retryBudget") {
			return e.set(rule, "trafficPolicy.retryBudget.percent", e.share())
		}
		return e.set(rule, "trafficPolicy.retryBudget", "{percent: "+e.share()+", minRetryConcurrency: 3}")
	case "budget.unlimited":
		return len(e.of(rule)) > 0 // it is there once its share is
	case "breaker.consecutive", "breaker.off":
		if e.has(rule, outlier+".consecutiveErrors") {
			e.set(rule, outlier+".consecutiveErrors", "")
		}
		if e.has(rule, outlier+".consecutiveGatewayErrors") {
			e.set(rule, outlier+".consecutiveGatewayErrors", strconv.Itoa(e.failures()))
		}
		return e.set(rule, outlier+".consecutive5xxErrors", strconv.Itoa(e.failures()))
	case "breaker.consecutive_for":
		return true // there is no such thing
	}
	return false
}

func (e *editor) envoy(field string) bool {
	// The retry policy is in the action, in its virtual host, or the whole document.
	retry := func(name, value string) bool {
		return e.each("route", func(s source) {
			if n := s.in.at(s.local()).node; shapeOf(n) == aRetryPolicy {
				e.setIn(s, name, value)
				return
			}
			if i := strings.LastIndex(s.local(), ".routes["); i > 0 && !s.has("retry_policy") {
				if host := s.in.source(s.local()[:i]); host.has("retry_policy") {
					s = host
				}
			}
			e.setIn(s, "retry_policy."+name, value)
		})
	}
	const cluster = "cluster"
	switch field {
	case "deadline":
		return e.set("route", "timeout", tree.Seconds(max(toMillis(max(e.p.Deadline, 0)), 0)))
	case "attempts":
		return retry("num_retries", e.retries())
	case "hedge.attempts":
		return e.p.Hedge.Attempts > 0 && retry("num_retries", strconv.Itoa(e.p.Hedge.Attempts-1))
	case "attempt_timeout":
		if e.was.Hedge.Attempts > 1 {
			return false // then it is the delay of a hedge
		}
		return e.p.AttemptTimeout > 0 && retry("per_try_timeout", tree.Seconds(toMillis(e.p.AttemptTimeout)))
	case "backoff.base", "backoff.cap":
		base, longest := toMillis(cmp.Or(e.p.Backoff.Base, 100*time.Millisecond)), toMillis(cmp.Or(e.p.Backoff.Cap, 20*time.Second))
		return retry("retry_back_off", "{base_interval: "+tree.Seconds(base)+", max_interval: "+tree.Seconds(max(base, longest))+"}")
	case "budget.ratio":
		return e.each(cluster, func(s source) {
			at := e.threshold(s)
			whole := "{budget_percent: {value: " + e.share() + "}, min_retry_concurrency: 3}"
			switch {
			case at == "":
				e.setIn(s, "circuit_breakers", "{thresholds: [{retry_budget: "+whole+"}]}")
			case s.has(at + ".retry_budget"):
				e.setIn(s, at+".retry_budget.budget_percent", "{value: "+e.share()+"}")
			default:
				e.setIn(s, at+".retry_budget", whole)
			}
		})
	case "budget.unlimited":
		return len(e.of(cluster)) > 0
	case "breaker.consecutive", "breaker.off":
		n := strconv.Itoa(e.failures())
		for name, value := range map[string]string{"enforcing_consecutive_5xx": "100", "consecutive_gateway_failure": n} {
			if e.has(cluster, "outlier_detection."+name) {
				e.set(cluster, "outlier_detection."+name, value)
			}
		}
		slices.SortFunc(e.edits, func(a, b Edit) int { return cmp.Compare(a.Field, b.Field) })
		return e.set(cluster, "outlier_detection.consecutive_5xx", n)
	case "breaker.min_calls":
		return e.set(cluster, "outlier_detection.failure_percentage_request_volume", strconv.Itoa(e.p.Breaker.MinCalls))
	case "breaker.failure_rate":
		return e.set(cluster, "outlier_detection.failure_percentage_threshold", strconv.Itoa(int(math.Round(e.p.Breaker.FailureRate*100))))
	case "breaker.consecutive_for", "backoff.kind", "backoff.jitter":
		return true
	}
	return false
}

// threshold is the path of the limits of a cluster that count; empty: it has none.
func (e *editor) threshold(s source) string {
	list := s.in.at(tree.Concat(s.local(), "circuit_breakers.thresholds")).node
	if list == nil {
		return ""
	}
	for i, item := range list.Items {
		if priority := item.Get("priority"); priority == nil || priority.Text != "HIGH" && priority.Text != "1" {
			return tree.Element("circuit_breakers.thresholds", i)
		}
	}
	return ""
}

func (e *editor) gateway(field string) bool {
	const route = "HTTPRoute"
	switch field {
	case "deadline":
		return e.set(route, "timeouts.request", wholeUnits(e.p.Deadline))
	case "attempt_timeout":
		return e.set(route, "timeouts.backendRequest", wholeUnits(e.p.AttemptTimeout))
	case "attempts":
		if e.p.Attempts == 1 {
			return e.set(route, "retry", "")
		}
		return e.set(route, "retry.attempts", e.retries())
	case "budget.ratio":
		return e.set("XBackendTrafficPolicy", "retryConstraint.budget.percent", strconv.Itoa(int(math.Round(e.p.Budget.Ratio*100))))
	case "budget.unlimited":
		return len(e.of("XBackendTrafficPolicy")) > 0
	}
	return false
}

func (e *editor) envoyGateway(field string) bool {
	const route, traffic = "HTTPRoute", "BackendTrafficPolicy"
	switch field {
	case "deadline":
		if e.has(route, "timeouts.request") {
			return e.set(route, "timeouts.request", wholeUnits(e.p.Deadline))
		}
		return e.set(traffic, "timeout.http.requestTimeout", wholeUnits(e.p.Deadline))
	case "attempts":
		if e.has(route, "retry") {
			return e.gateway(field)
		}
		return e.set(traffic, "retry.numRetries", e.retries())
	case "attempt_timeout":
		if e.has(route, "retry") || e.has(route, "timeouts.backendRequest") {
			return e.gateway(field)
		}
		return e.set(traffic, "retry.perRetry.timeout", wholeUnits(e.p.AttemptTimeout))
	case "backoff.base":
		return e.set(traffic, "retry.perRetry.backOff", "{baseInterval: "+wholeUnits(e.p.Backoff.Base)+"}")
	case "breaker.consecutive", "breaker.off":
		return e.set(traffic, "healthCheck.passive.consecutive5XxErrors", strconv.Itoa(e.failures()))
	case "breaker.consecutive_for":
		return true
	}
	return false
}

func (e *editor) dapr(field string) bool {
	switch field {
	case "attempts":
		return e.set("retries", "maxRetries", e.retries())
	case "attempt_timeout":
		return e.p.AttemptTimeout > 0 && e.each("timeouts", func(s source) { // which is the value itself
			i := strings.LastIndex(s.path, ".")
			e.edits = append(e.edits, Edit{Position: s.in.at(s.local()).Position, Part: s.path[:i], Field: s.path[i+1:], Value: kubernetesDuration(e.p.AttemptTimeout)})
		})
	case "backoff.jitter", "backoff.kind": // constant waits have none
		return e.set("retries", "policy", "exponential")
	case "backoff.base":
		return e.p.Backoff.Kind == e.was.Backoff.Kind && e.set("retries", "duration", kubernetesDuration(e.p.Backoff.Base)) || len(e.of("retries")) > 0
	case "breaker.consecutive":
		return e.set("circuitBreakers", "trip", "consecutiveFailures >= "+strconv.Itoa(e.failures()))
	case "breaker.consecutive_for":
		return true
	}
	return false
}

func (e *editor) linkerd(field string) bool {
	const profile, service = "ServiceProfile", "Service"
	annotation := func(name, value string) bool {
		if value != "" {
			value = strconv.Quote(value)
		}
		return e.set(service, `["`+name+`"]`, value)
	}
	switch field {
	case "deadline":
		if len(e.of(service)) > 0 {
			return annotation("timeout.linkerd.io/request", kubernetesDuration(e.p.Deadline))
		}
		return e.set(profile, "timeout", kubernetesDuration(e.p.Deadline))
	case "attempt_timeout":
		return annotation("retry.linkerd.io/timeout", kubernetesDuration(e.p.AttemptTimeout))
	case "attempts":
		switch {
		case len(e.of(service)) == 0:
			return e.p.Attempts == 1 && e.set(profile, "isRetryable", "false")
		case e.p.Attempts > 1:
			return annotation("retry.linkerd.io/limit", e.retries())
		}
		for _, name := range []string{"retry.linkerd.io/http", "retry.linkerd.io/grpc", "retry.linkerd.io/limit"} {
			if e.has(service, `["`+name+`"]`) {
				annotation(name, "")
			}
		}
		return true
	case "budget.ratio", "budget.floor":
		name, value := "retryRatio", strconv.FormatFloat(e.p.Budget.Ratio, 'f', -1, 64)
		if field == "budget.floor" {
			name, value = "minRetriesPerSecond", strconv.Itoa(int(e.p.Budget.Floor))
		}
		return e.each(profile, func(s source) { e.setIn(s.in.source("spec"), "retryBudget."+name, value) })
	}
	return false
}

// levelWith is the instance s, or the first of the configs below it that has a field; s if none has.
func (s source) levelWith(field string) source {
	level := s
	for range 10 { // configs may be based on each other, and a mistake may make a circle
		if level.has(field) {
			return level
		}
		path := level.local()
		end := -1
		for _, list := range []string{".instances.", ".backends.", ".configs."} {
			end = max(end, strings.LastIndex(path, list))
		}
		if end < 0 {
			break
		}
		base := cmp.Or(textOf(level.in.at(path+".baseConfig").node), "default")
		level = level.in.source(tree.Join(path[:end]+".configs", base))
		if level.in.at(level.local()).node == nil {
			break
		}
	}
	return s
}

func (e *editor) resilience4j(field string) bool {
	const retry, opens = "retry", "circuitbreaker"
	waits := func(name, value string) bool { // which count only beside waitDuration
		all := e.of(retry)
		for _, s := range all {
			if s = s.levelWith("waitDuration"); !s.has("waitDuration") {
				e.setIn(s, "waitDuration", springDurationText(max(e.p.Backoff.Base, time.Millisecond)))
			}
			e.setIn(s, name, value)
		}
		return len(all) > 0
	}
	percent := func(share float64) string { return strconv.FormatFloat(math.Round(share*1e5)/1e3, 'f', -1, 64) }
	switch field {
	case "attempts":
		return e.set(retry, "maxAttempts", strconv.Itoa(e.p.Attempts))
	case "backoff.base":
		return e.set(retry, "waitDuration", springDurationText(e.p.Backoff.Base))
	case "backoff.kind": // exponential waits have no jitter by themselves
		return waits("enableExponentialBackoff", "true") && waits("enableRandomizedWait", "true")
	case "backoff.jitter":
		return waits("enableRandomizedWait", "true")
	case "attempt_timeout":
		return e.p.AttemptTimeout > 0 && e.set("timelimiter", "timeoutDuration", springDurationText(e.p.AttemptTimeout))
	case "breaker.min_calls":
		n := strconv.Itoa(e.p.Breaker.MinCalls)
		if !e.has(opens, "slidingWindowType") { // a window of so many calls has no more than that
			e.set(opens, "slidingWindowSize", n)
		}
		return e.set(opens, "minimumNumberOfCalls", n)
	case "breaker.failure_rate":
		return e.set(opens, "failureRateThreshold", percent(e.p.Breaker.FailureRate))
	case "breaker.slow_rate":
		return e.set(opens, "slowCallRateThreshold", percent(e.p.Breaker.SlowRate))
	case "breaker.slow_call":
		return e.set(opens, "slowCallDurationThreshold", springDurationText(e.p.Breaker.SlowCall))
	}
	return false
}

func (e *editor) grpc(field string) bool {
	set := func(field, value string) bool {
		for _, s := range e.parts {
			path := s.path
			if i := strings.LastIndex(path, ".name["); i >= 0 {
				path = path[:i] // the method, not its name
			}
			e.setIn(source{s.file, path, s.in}, field, value)
		}
		return len(e.parts) > 0
	}
	quoted := func(d time.Duration) string { return strconv.Quote(tree.Seconds(d)) }
	switch field {
	case "deadline":
		return e.p.Deadline > 0 && set("timeout", quoted(e.p.Deadline))
	case "attempts":
		if e.p.Attempts == 1 {
			return set("retryPolicy", "")
		}
		return set("retryPolicy.maxAttempts", strconv.Itoa(e.p.Attempts))
	case "hedge.attempts":
		if e.p.Hedge.Attempts < 2 {
			return set("hedgingPolicy", "")
		}
		return set("hedgingPolicy.maxAttempts", strconv.Itoa(e.p.Hedge.Attempts))
	case "backoff.base":
		return set("retryPolicy.initialBackoff", quoted(e.p.Backoff.Base))
	case "backoff.cap":
		return set("retryPolicy.maxBackoff", quoted(e.p.Backoff.Cap))
	case "budget.ratio":
		ratio := min(cmp.Or(e.p.Budget.Ratio, budget.DefaultRatio), 0.1)
		for _, s := range e.parts {
			e.edits = append(e.edits, Edit{Position: s.in.at("").Position, Part: s.in.prefix, Field: "retryThrottling",
				Value: `{"maxTokens": 10, "tokenRatio": ` + strconv.FormatFloat(ratio, 'f', -1, 64) + `}`})
		}
		return len(e.parts) > 0
	case "budget.unlimited":
		return true
	}
	return false
}

// RetriesUnsent reports whether calls to the dependency of that name are retried only after failures by
// which a request was certainly not carried out: no connection, or a stream that was refused.
func (s *Set) RetriesUnsent(dependency string) bool {
	f := s.known[dependency].retried
	return f != nil && len(f.statuses) == 0 && !slices.ContainsFunc(f.on, func(word string) bool {
		return word != "connect-failure" && word != "refused-stream" && word != "reset-before-request"
	})
}
