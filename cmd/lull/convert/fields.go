package convert

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/tree"
)

// A place is where a format has a field of a policy.
type place struct {
	name  string   // as its users know it
	paths []string // within the part of a file that a dependency comes from; nil: it is elsewhere
}

func at(path string) place { return place{path, []string{path}} }

// fieldPlaces are the places of the fields of a policy. A field that is not here has none.
var fieldPlaces = [formats]map[string]place{
	GRPC: {
		"deadline": at("timeout"), "attempts": at("retryPolicy.maxAttempts"),
		"backoff.base": at("retryPolicy.initialBackoff"), "backoff.cap": at("retryPolicy.maxBackoff"), "backoff.factor": at("retryPolicy.backoffMultiplier"),
		"hedge.attempts": at("hedgingPolicy.maxAttempts"), "hedge.delay": at("hedgingPolicy.hedgingDelay"), "budget": {name: "retryThrottling"},
	},
	Istio: {
		"deadline": at("timeout"), "attempts": at("retries.attempts"), "attempt_timeout": at("retries.perTryTimeout"), "backoff.base": at("retries.backoff"),
		"breaker.consecutive": {name: "consecutive5xxErrors"},
		"budget":              {name: "trafficPolicy.retryBudget of a DestinationRule"}, "breaker": {name: "trafficPolicy.outlierDetection of a DestinationRule"},
		"limit.in_flight": {name: "trafficPolicy.connectionPool.http.http2MaxRequests of a DestinationRule"},
	},
	Envoy: {
		"deadline": at("timeout"), "attempts": at("retry_policy.num_retries"), "attempt_timeout": at("retry_policy.per_try_timeout"),
		"backoff.base": at("retry_policy.retry_back_off.base_interval"), "backoff.cap": at("retry_policy.retry_back_off.max_interval"),
		"breaker.consecutive": {name: "consecutive_5xx"}, "breaker.failure_rate": {name: "failure_percentage_threshold"}, "breaker.min_calls": {name: "failure_percentage_request_volume"},
		"budget": {name: "circuit_breakers.thresholds[].retry_budget of the cluster"}, "breaker": {name: "outlier_detection of the cluster"},
		"limit.in_flight": {name: "circuit_breakers.thresholds[].max_requests of the cluster"},
	},
	Gateway: {
		"deadline": at("timeouts.request"), "attempt_timeout": at("timeouts.backendRequest"), "attempts": at("retry.attempts"), "backoff.floor": at("retry.backoff"),
		"budget": {name: "retryConstraint of an XBackendTrafficPolicy"},
	},
	Dapr: {
		"attempt_timeout": at("timeout"), "attempts": {"maxRetries of the retry policy", []string{"retry"}}, "backoff.base": {"duration of the retry policy", nil},
		"backoff.cap": {"maxInterval of the retry policy", nil}, "breaker": {"circuitBreaker", []string{"circuitBreaker"}},
		"backoff.jitter": {"policy of the retry policy", nil}, "backoff.kind": {"policy of the retry policy", nil}, "breaker.consecutive": {"trip of the circuit breaker", nil},
	},
	Linkerd: {
		"deadline": {"timeout of the route", []string{"timeout"}}, "attempts": {"isRetryable of the route", []string{"isRetryable"}}, "budget": {"retryBudget", nil},
		"attempt_timeout": {"retry.linkerd.io/timeout", nil},
	},
	Resilience4j: {
		"attempts": {"maxAttempts of the retry", []string{"maxAttempts"}}, "backoff.base": {"waitDuration of the retry", []string{"waitDuration"}},
		"backoff.cap": {"exponentialMaxWaitDuration of the retry", nil}, "attempt_timeout": {"timeoutDuration of the timelimiter", nil},
		"breaker": {"circuitbreaker", nil}, "limit.in_flight": {"maxConcurrentCalls of the bulkhead", nil},
		"backoff.jitter": {"enableRandomizedWait of the retry", nil}, "backoff.kind": {"enableExponentialBackoff of the retry", nil},
		"breaker.failure_rate": {"failureRateThreshold", nil}, "breaker.slow_rate": {"slowCallRateThreshold", nil},
		"breaker.slow_call": {"slowCallDurationThreshold", nil}, "breaker.min_calls": {"minimumNumberOfCalls", nil},
	},
	EnvoyGateway: {
		"deadline": {"timeout.http.requestTimeout", []string{"timeout.http.requestTimeout", "timeouts.request"}}, "attempts": at("retry.numRetries"),
		"attempt_timeout": at("retry.perRetry.timeout"), "backoff.base": at("retry.perRetry.backOff.baseInterval"), "backoff.cap": at("retry.perRetry.backOff.maxInterval"),
		"limit.in_flight": at("circuitBreaker.maxParallelRequests"), "budget.stock": at("circuitBreaker.maxParallelRetries"), "breaker": at("healthCheck.passive"),
	},
}

// FieldName returns the name of a field of a policy in format f: "retries.perTryTimeout" for "attempt_timeout" in Istio. ok is false if
// it has none, and for lull's own format.
func FieldName(f Format, field string) (name string, ok bool) {
	if f >= formats {
		return "", false
	}
	for {
		if p, ok := fieldPlaces[f][field]; ok {
			return p.name, true
		}
		i := strings.LastIndexByte(field, '.')
		if i < 0 {
			return "", false
		}
		field = field[:i]
	}
}

func (d *document) fieldsOf(f Format, path string) map[string]config.Position {
	all := map[string]config.Position{}
	if i := strings.LastIndex(path, ".name["); f == GRPC && i >= 0 {
		path = path[:i] // the method, not its name
	}
	for field, p := range fieldPlaces[f] {
		for _, rest := range p.paths {
			if s := d.at(tree.Concat(path, rest)); s.node != nil {
				all[field] = s.Position
			}
		}
	}
	return all
}

// Position returns the place of a dependency, or of the field of its policy, such as "budget.ratio", in the files.
func (s *Set) Position(dependency, field string) config.Position {
	for f := field; f != ""; {
		if at, ok := s.known[dependency].places[f]; ok {
			return at
		}
		f = f[:max(strings.LastIndexByte(f, '.'), 0)]
	}
	return s.position(dependency, field)
}

// Files returns the files of other systems that the dependency comes from: a route and its rule may be in two.
func (s *Set) Files(dependency string) (all []string) {
	for _, each := range s.known[dependency].sources {
		if !slices.Contains(all, each.file) {
			all = append(all, each.file)
		}
	}
	return all
}

// Format returns the format that the dependency of that name comes from.
func (s *Set) Format(dependency string) Format { return s.known[dependency].of }

// Recognise returns the format of each document of a file, and of each item of a list of documents, if it has one.
func Recognise(f File) (all []Format) {
	roots, err := parse(f.Name, f.Data)
	if err != nil {
		return nil
	}
	for _, root := range roots {
		all = append(all, formatsIn(root)...)
	}
	return all
}

func formatsIn(root *tree.Node) (all []Format) {
	if f, ok := recognise(root); ok {
		return []Format{f}
	}
	if isChoices(root) {
		return []Format{GRPC}
	}
	for _, item := range cmp.Or(listed(root), root).Items {
		all = append(all, formatsIn(item)...)
	}
	return all
}
