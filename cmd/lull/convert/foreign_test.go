package convert

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/pretty"
	"github.com/lullgo/lull/internal/tree"
)

// leaves are the scalars of a document, by their paths.
func leaves(n *tree.Node) map[string]string {
	all := map[string]string{}
	for _, s := range scalars(n, "", "") {
		all[s.path] = s.value
	}
	return all
}

// touches reports whether an entry, lost or changed, is about the field at path, a part of it, or
// something that it is a part of.
func touches(r Report, path string) bool {
	return slices.ContainsFunc(r, func(e Entry) bool {
		if e.Kind == Assumed {
			return false
		}
		return e.Path == path || strings.HasPrefix(path, e.Path+".") || strings.HasPrefix(path, e.Path+"[") || strings.HasPrefix(e.Path, path+".")
	})
}

func maybe(r *rand.Rand, n *tree.Node, key string, value *tree.Node) {
	if r.IntN(2) == 0 {
		n.Set(key, value)
	}
}

func seconds(d time.Duration) *tree.Node { return tree.String(tree.Seconds(d)) }

func words(r *rand.Rand, all []string) string {
	var some []string
	for _, w := range all {
		if r.IntN(3) == 0 {
			some = append(some, w)
		}
	}
	if len(some) == 0 {
		some = all[:1]
	}
	return strings.Join(some, ",")
}

func span(r *rand.Rand) time.Duration {
	return time.Duration(1+r.IntN(5000)) * time.Millisecond
}

// randomEnvoy is a route and a cluster, where they are written.
func randomEnvoy(r *rand.Rand) (routes, clusters *tree.Node) {
	retry := tree.NewMap().Set("retry_on", tree.String(words(r, slices.Concat(onHTTP, onGRPC))))
	maybe(r, retry, "retriable_status_codes", tree.ListOf(tree.Int(429), tree.Int(503), tree.Int(409)))
	maybe(r, retry, "num_retries", tree.Int(r.IntN(7)))
	maybe(r, retry, "per_try_timeout", seconds(span(r)))
	base := span(r)
	maybe(r, retry, "retry_back_off", tree.NewMap().Set("base_interval", seconds(base)).Set("max_interval", seconds(base+span(r))))
	maybe(r, retry, "rate_limited_retry_back_off", tree.NewMap().
		Set("reset_headers", tree.ListOf(tree.NewMap().Set("name", tree.String("Retry-After")).Set("format", tree.String("SECONDS")))).Set("max_interval", seconds(span(r))))
	maybe(r, retry, "per_try_idle_timeout", seconds(span(r)))
	maybe(r, retry, "host_selection_retry_max_attempts", tree.Int(r.IntN(6)))
	previous := tree.NewMap()
	maybe(r, previous, "name", tree.String("envoy.retry_host_predicates.previous_hosts"))
	maybe(r, previous, "typed_config", tree.NewMap().Set("@type", tree.String("type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate")))
	maybe(r, retry, "retry_host_predicate", tree.ListOf(previous))
	maybe(r, retry, "retry_priority", tree.NewMap().Set("name", tree.String("envoy.retry_priorities.previous_priorities")).
		Set("typed_config", tree.NewMap().Set("@type", tree.String("type.googleapis.com/envoy.extensions.retry.priority.previous_priorities.v3.PreviousPrioritiesConfig")).Set("update_frequency", tree.Int(1+r.IntN(3)))))
	maybe(r, retry, "retriable_request_headers", safeRequests())
	action := tree.NewMap().Set("cluster", tree.String("api"))
	maybe(r, action, "timeout", seconds(span(r)*3))
	maybe(r, action, "retry_policy", retry)
	if r.IntN(4) == 0 {
		action.Set("hedge_policy", tree.NewMap().Set("hedge_on_per_try_timeout", true))
	}
	maybe(r, action, "idle_timeout", seconds(span(r)))
	route := tree.NewMap().Set("match", tree.NewMap().Set("prefix", tree.String("/"))).Set("route", action)
	host := tree.NewMap().Set("name", tree.String("api")).Set("domains", tree.ListOf(tree.String("api"))).Set("routes", tree.ListOf(route))
	routes = tree.NewMap().Set("@type", tree.String(routesType)).Set("name", tree.String("lull")).Set("virtual_hosts", tree.ListOf(host))

	limits := tree.NewMap()
	maybe(r, limits, "max_connections", tree.Int(r.IntN(100)))
	maybe(r, limits, "max_requests", tree.Int(1+r.IntN(100)))
	maybe(r, limits, "max_retries", tree.Int(r.IntN(5)))
	budget := tree.NewMap()
	maybe(r, budget, "budget_percent", tree.NewMap().Set("value", tree.Float(float64(r.IntN(1001))/10)))
	maybe(r, budget, "min_retry_concurrency", tree.Int(r.IntN(9)))
	maybe(r, limits, "retry_budget", budget)
	outlier := tree.NewMap().Set("max_ejection_percent", tree.Int(r.IntN(101)))
	maybe(r, outlier, "consecutive_5xx", tree.Int(1+r.IntN(9)))
	maybe(r, outlier, "base_ejection_time", seconds(span(r)))
	maybe(r, outlier, "max_ejection_time", seconds(time.Minute+span(r)))
	maybe(r, outlier, "interval", seconds(span(r)))
	maybe(r, outlier, "max_ejection_time_jitter", seconds(span(r)))
	maybe(r, outlier, "enforcing_success_rate", tree.Int(0))
	maybe(r, outlier, "enforcing_consecutive_5xx", tree.Int(r.IntN(3)*50))
	maybe(r, outlier, "consecutive_gateway_failure", tree.Int(1+r.IntN(9)))
	maybe(r, outlier, "enforcing_consecutive_gateway_failure", tree.Int(r.IntN(3)*50))
	maybe(r, outlier, "failure_percentage_threshold", tree.Int(1+r.IntN(100)))
	if r.IntN(2) == 0 {
		outlier.Set("enforcing_failure_percentage", tree.Int(100)).Set("failure_percentage_minimum_hosts", tree.Int(1+r.IntN(3))).
			Set("failure_percentage_request_volume", tree.Int(1+r.IntN(99)))
	}
	cluster := tree.NewMap().Set("@type", tree.String(clusterType)).Set("name", tree.String("api")).
		Set("circuit_breakers", tree.NewMap().Set("thresholds", tree.ListOf(limits)))
	maybe(r, cluster, "outlier_detection", outlier)
	maybe(r, cluster, "connect_timeout", seconds(span(r)))
	maybe(r, cluster, "common_lb_config", tree.NewMap().Set("healthy_panic_threshold", tree.NewMap().Set("value", tree.Int(r.IntN(101)))))
	return routes, cluster
}

// Each single value for Envoy is in the output for Envoy again, or in the report.
func TestEnvoyStaysEnvoy(t *testing.T) {
	for seed := range rounds() {
		routes, cluster := randomEnvoy(rand.New(rand.NewPCG(seed, 3)))
		in := tree.NewMap().Set("resources", tree.ListOf(routes, cluster))
		out := convert(t, File{"in.json", in.JSON()}, Envoy, Options{JSON: true})
		compare(t, seed, in, out)
	}
}

func compare(t *testing.T, seed uint64, in *tree.Node, out Output) {
	t.Helper()
	docs := must.Have(parse("", out.Data))
	was, is := leaves(in), leaves(docs[0])
	for path, value := range was {
		name := lastOf(path)
		if slices.Contains([]string{"num_retries 0", "enforcing_consecutive_gateway_failure 0", "host_selection_retry_max_attempts 1"}, name+" "+value) ||
			strings.HasPrefix(name, "enforcing_") && value == "0" && !strings.Contains(string(out.Data), "outlier_detection") {
			continue // it is the same without the field, and nothing is ejected without outlier_detection
		}
		if strings.HasSuffix(path, ".retryOn") { // a set, to which Istio itself adds a word if there are numbers in it
			value, is[path] = inOrder(value), inOrder(is[path])
		}
		if now, ok := is[path]; (!ok || now != value) && !touches(out.Report, path) {
			t.Fatalf("seed %d: %s was %q and is %q (%v), and not reported\n%s\n%s\n%s", seed, path, value, now, ok, in.JSON(), out.Data, out.Report)
		}
	}
	for _, e := range out.Report {
		if _, ok := is[e.Path]; e.Kind == Lost && ok && is[e.Path] == was[e.Path] && !strings.HasPrefix(e.Path, "dependencies.") && !strings.Contains(e.Path, "enforcing_success_rate") {
			t.Fatalf("seed %d: %s is said to be lost, and is there\n%s\n%s", seed, e.Path, in.JSON(), out.Data)
		}
	}
}

func inOrder(list string) string {
	words := slices.DeleteFunc(strings.Split(list, ","), func(w string) bool { return w == statusCodes })
	slices.Sort(words)
	return strings.Join(words, ",")
}

func randomIstio(r *rand.Rand) *tree.Node {
	millis := func() *tree.Node { return tree.String(pretty.Duration(span(r))) }
	attempts := 1 + r.IntN(6)
	retries := tree.NewMap().Set("attempts", tree.Int(attempts))
	maybe(r, retries, "perTryTimeout", millis())
	maybe(r, retries, "retryOn", tree.String(words(r, append([]string{"503", "429"}, slices.Concat(onHTTP, onGRPC)...))))
	maybe(r, retries, "backoff", millis())
	maybe(r, retries, "retryRemoteLocalities", &tree.Node{Kind: tree.Bool, Text: "true"})
	route := tree.NewMap().Set("route", tree.ListOf(tree.NewMap().Set("destination", tree.NewMap().Set("host", tree.String("api")))))
	maybe(r, route, "timeout", tree.String(pretty.Duration(span(r)*3)))
	maybe(r, route, "retries", retries)
	vs := object(istioVersion, "VirtualService", "api", tree.NewMap().Set("hosts", tree.ListOf(tree.String("api"))).Set("http", tree.ListOf(route)))

	http := tree.NewMap()
	maybe(r, http, "http2MaxRequests", tree.Int(1+r.IntN(99)))
	maybe(r, http, "maxRetries", tree.Int(1+r.IntN(9)))
	maybe(r, http, "http1MaxPendingRequests", tree.Int(1+r.IntN(99)))
	outlier := tree.NewMap().Set("consecutive5xxErrors", tree.Int(1+r.IntN(9))).Set("maxEjectionPercent", tree.Int(r.IntN(101))).Set("baseEjectionTime", millis())
	maybe(r, outlier, "consecutiveGatewayErrors", tree.Int(1+r.IntN(9)))
	maybe(r, outlier, "interval", millis())
	maybe(r, outlier, "minHealthPercent", tree.Int(1+r.IntN(99)))
	policy := tree.NewMap()
	maybe(r, policy, "connectionPool", tree.NewMap().Set("http", http))
	maybe(r, policy, "outlierDetection", outlier)
	maybe(r, policy, "retryBudget", tree.NewMap().Set("percent", tree.Float(float64(r.IntN(1001))/10)).Set("minRetryConcurrency", tree.Int(1+r.IntN(9))))
	rule := object(istioVersion, "DestinationRule", "api", tree.NewMap().Set("host", tree.String("api")).Set("trafficPolicy", policy))
	return tree.NewMap().Set("apiVersion", tree.String("v1")).Set("kind", tree.String("List")).Set("items", tree.ListOf(vs, rule))
}

func TestIstioStaysIstio(t *testing.T) {
	for seed := range rounds() {
		in := randomIstio(rand.New(rand.NewPCG(seed, 5)))
		says := in.Get("items").Items[1].Get("spec").Get("trafficPolicy")
		if pool := says.Get("connectionPool"); len(says.Members) == 0 || len(says.Members) == 1 && pool != nil &&
			pool.Get("http").Get("http2MaxRequests") == nil && pool.Get("http").Get("maxRetries") == nil {
			in = in.Get("items").Items[0] // a rule without a field that we know is not written
		}
		out := convert(t, File{"in.json", in.JSON()}, Istio, Options{JSON: true})
		compare(t, seed, in, out)
	}
}

// A service config that a policy can express completely is exactly the same after a conversion
// there and back. The only loss is that its methods may be unsafe to repeat.
func TestServiceConfigsComeBack(t *testing.T) {
	t.Parallel()
	for seed := range rounds() {
		r := rand.New(rand.NewPCG(seed, 9))
		method := func(name *tree.Node) *tree.Node {
			codes := [][]string{{"UNAVAILABLE", "RESOURCE_EXHAUSTED"}, {"UNAVAILABLE", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED"}}[r.IntN(2)]
			list := tree.ListOf()
			for _, c := range codes {
				list.Items = append(list.Items, tree.String(c))
			}
			m := tree.NewMap().Set("name", tree.ListOf(name))
			maybe(r, m, "timeout", seconds(time.Duration(1+r.Int64N(1e11))))
			switch r.IntN(3) {
			case 0:
				base := time.Millisecond + time.Duration(r.Int64N(1e9))
				m.Set("retryPolicy", tree.NewMap().
					Set("maxAttempts", tree.Int(2+r.IntN(4))).
					Set("initialBackoff", seconds(base)).
					Set("maxBackoff", seconds(base+time.Duration(r.Int64N(1e10)))).
					Set("backoffMultiplier", tree.Float(1+float64(r.IntN(20))/10)).
					Set("retryableStatusCodes", list))
			case 1:
				h := tree.NewMap().Set("maxAttempts", tree.Int(2+r.IntN(4)))
				maybe(r, h, "hedgingDelay", seconds(time.Duration(1+r.Int64N(1e10))))
				m.Set("hedgingPolicy", h.Set("nonFatalStatusCodes", list))
			}
			return m
		}
		in := tree.NewMap().Set("methodConfig", tree.ListOf(method(tree.NewMap()), method(tree.NewMap().Set("service", tree.String("a.A"))),
			method(tree.NewMap().Set("service", tree.String("a.A")).Set("method", tree.String("Get")))))
		there := convert(t, File{"in.json", in.JSON()}, Lull, Options{})
		for _, l := range there.Report.Losses() {
			if !strings.Contains(l.Why, "safe to repeat") {
				t.Fatalf("seed %d: lost on the way there: %v\n%s", seed, l, in.JSON())
			}
		}
		back := convert(t, File{"policies.yaml", there.Data}, GRPC, Options{})
		if got, want := string(back.Data), string(in.JSON()); got != want && !sameMethods(got, want) {
			t.Fatalf("seed %d: %s\ncomes back as\n%s\nby way of\n%s%s", seed, want, got, there.Data, back.Report)
		}
		for _, e := range back.Report.Losses() {
			if !regexp.MustCompile(`^dependencies\.[^ ]*$`).MatchString(e.Path) || !strings.Contains(e.Why, "safe to repeat") {
				t.Fatalf("seed %d: %v\n%s", seed, e, in.JSON())
			}
		}
		// And without a file in between.
		again := convert(t, File{"in.json", in.JSON()}, GRPC, Options{})
		if got, want := string(again.Data), string(in.JSON()); got != want && !sameMethods(got, want) || len(again.Report.Losses()) > 0 {
			t.Fatalf("seed %d: %s\ncomes back as\n%s\n%v", seed, want, got, again.Report)
		}
	}
}

// sameMethods compares configs in which methods with the same settings may be written together.
func sameMethods(a, b string) bool {
	said := func(config string) map[string]string {
		all := map[string]string{}
		for _, m := range must.Have(parse("", []byte(config)))[0].Get("methodConfig").Items {
			bare := *m
			bare.Members = m.Members[1:]
			for _, name := range m.Get("name").Items {
				all[string(name.Compact())] = string(bare.Compact())
			}
		}
		return all
	}
	return fmt.Sprint(said(a)) == fmt.Sprint(said(b))
}
