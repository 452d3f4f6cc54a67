package convert

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// readSet returns the set of a text, and nil if it says nothing of how calls are made.
func readSet(t *testing.T, text string) (*Set, Report) {
	t.Helper()
	set, report, err := Read([]File{{Name: "x.yaml", Data: []byte(text)}}, Options{})
	if err != nil && !errors.Is(err, ErrNothing) {
		t.Fatalf("%v\n%s", err, text)
	}
	return set, report
}

// What leads nowhere, hands on to other routes, or carries connections is no call, in any system.
func TestWhatIsNoCall(t *testing.T) {
	route := func(rule string) string {
		return "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: r}\nspec: {rules: [" + rule + "]}\n"
	}
	tcpProxy := func(to string) string {
		return `static_resources:
  listeners: [{filter_chains: [{filters: [{name: tcp, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: x, ` + to + `}}]}]}]
  clusters: [{name: db, connect_timeout: 1s, circuit_breakers: {thresholds: [{max_requests: 5}]}}]
`
	}
	for text, want := range map[string][]string{
		route("{backendRefs: [{name: a, port: 80}]}"):                                                                       {"a"},
		route("{backendRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: '*', namespace: team-a}]}"):         nil,
		route("{backendRefs: [{group: delegation.gateway.solo.io, kind: label, name: team, namespace: team-a}]}"):           nil,
		route("{timeouts: {request: 3s}, backendRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: child}]}"): nil,
		route("{backendRefs: [{kind: HTTPRoute, group: gateway.networking.k8s.io, name: child}, {name: a, port: 80}]}"):     {"a"},
		route("{backendRefs: [{group: gateway.envoyproxy.io, kind: Backend, name: out}]}"):                                  {"out"},
		route("{backendRefs: [{group: multicluster.x-k8s.io, kind: ServiceImport, name: far, port: 80}]}"):                  {"far"},
		route("{filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]}"):                                     nil,
		route("{filters: [{type: ExtensionRef, extensionRef: {group: x, kind: DirectResponse, name: y}}]}"):                 nil,
		route("{matches: [{path: {value: /gone}}]}"):                                                                        nil,
		"apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: BackendTrafficPolicy\nmetadata: {name: p}\nspec: {targetRefs: [{group: g, kind: TCPRoute, name: t}], timeout: {tcp: {connectTimeout: 1s}}, circuitBreaker: {maxConnections: 3}}\n": nil,
		tcpProxy("cluster: db"): nil,
		tcpProxy("weighted_clusters: {clusters: [{name: db, weight: 1}]}"): nil,
		tcpProxy("cluster: other"): {"db"},
	} {
		set, report := readSet(t, text)
		check.Slices(t, names(set.File.Dependencies), want, "%s", text)
		for _, setting := range []string{"timeouts", "circuit_breakers", "circuitBreaker"} {
			if want == nil && strings.Contains(text, setting) && !strings.Contains(report.String(), setting) {
				t.Errorf("%s is not told: %s", setting, report)
			}
		}
	}
}

// A Gateway of Envoy Gateway ends a call after 15s; of others nothing is known.
func TestDefaultsOfGateways(t *testing.T) {
	class := func(controller string) string {
		return "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: c}\nspec: {controllerName: " + controller + "}\n---\n"
	}
	const (
		edge   = "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: edge, namespace: infra}\nspec: {gatewayClassName: c}\n---\n"
		client = "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: ClientTrafficPolicy\nmetadata: {name: p, namespace: infra}\nspec: {targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: edge}]}\n---\n"
		own    = "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: BackendTrafficPolicy\nmetadata: {name: p, namespace: shop}\nspec: {targetRefs: [{group: g, kind: HTTPRoute, name: r}], retry: {numRetries: 1}}\n---\n"
		envoy  = "gateway.envoyproxy.io/gatewayclass-controller"
	)
	route := func(rule string) string {
		return "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: r, namespace: shop}\nspec: {parentRefs: [{name: edge, namespace: infra}], rules: [{backendRefs: [{name: a}]" + rule + "}]}\n"
	}
	for text, want := range map[string]time.Duration{
		route(""):                                                       lull.NoTimeout,
		class(envoy) + edge + route(""):                                 15 * time.Second,
		route("") + "---\n" + edge + class(envoy):                       15 * time.Second,
		class("istio.io/gateway-controller") + edge + route(""):         lull.NoTimeout,
		class(envoy) + route(""):                                        lull.NoTimeout, // the Gateway is not there
		client + route(""):                                              15 * time.Second,
		own + route(""):                                                 15 * time.Second,
		class(envoy) + edge + route(", timeouts: {request: 3s}"):        3 * time.Second,
		class(envoy) + edge + route(", timeouts: {request: 0s}"):        lull.NoTimeout,
		class(envoy) + edge + route(", timeouts: {backendRequest: 2s}"): 15 * time.Second,
		class("example.com/gateway.envoyproxy.io/x") + edge + route(""): lull.NoTimeout,
		route(", filters: [{type: ExtensionRef, extensionRef: {group: gateway.envoyproxy.io, kind: HTTPRouteFilter, name: f}}]"): 15 * time.Second,
	} {
		set, _ := readSet(t, strings.TrimSuffix(text, "---\n"))
		d, ok := set.File.Dependency("a")
		if !ok || d.Policy.Deadline != want {
			t.Errorf("%v, want %v of\n%s", d.Policy.Deadline, want, text)
		}
		known := want > 0 || strings.Contains(text, "0s")
		if unknown := slices.Contains(set.Facts("a").Unknown, "deadline"); unknown == known {
			t.Errorf("unknown %v of\n%s", unknown, text)
		}
	}
}

const (
	istioHead = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: v, namespace: shop}\nspec: "
	routeHead = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: r, namespace: shop}\nspec: "
)

// The methods that a route names are known beside its policy, in each system that can name them.
func TestMethodsOfRoutes(t *testing.T) {
	istio := func(match string) string {
		return istioHead + "{http: [{match: [" + match + "], route: [{destination: {host: a}}], retries: {attempts: 3}}]}\n"
	}
	envoy := func(headers string) string {
		return `virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {prefix: /, headers: [` + headers + `]}, route: {cluster: a, retry_policy: {retry_on: 5xx}}}]}]`
	}
	linkerd := func(condition string) string {
		return "apiVersion: linkerd.io/v1alpha2\nkind: ServiceProfile\nmetadata: {name: a.shop.svc.cluster.local}\nspec: {routes: [{name: POST /x, condition: " + condition + ", isRetryable: true}]}\n"
	}
	for text, want := range map[string]string{
		istio("{method: {exact: POST}}"):                                               "POST",
		istio("{method: {regex: 'GET|POST'}}"):                                         "GET POST",
		istio("{method: {exact: GET}}, {method: {exact: PATCH}, uri: {prefix: /PUT}}"): "GET PATCH",
		istio("{uri: {prefix: /POST}}"):                                                "",
		istio("{method: {prefix: POSTAL}}"):                                            "",
		routeHead + "{rules: [{matches: [{method: POST}, {path: {value: /x}}], backendRefs: [{name: a}], retry: {attempts: 2}}]}": "POST",
		envoy(`{name: ":method", string_match: {exact: POST}}`):                                                                   "POST",
		envoy(`{name: ":method", exact_match: DELETE}`):                                                                           "DELETE",
		envoy(`{name: ":method", string_match: {exact: POST}, invert_match: true}`):                                               "",
		envoy(`{name: x-kind, exact_match: POST}`):                                                                                "",
		linkerd("{method: POST, pathRegex: /x}"):                                                                                  "POST",
		linkerd("{all: [{any: [{method: PUT}, {method: POST}]}, {pathRegex: /GET}]}"):                                             "POST PUT",
		linkerd("{not: {method: POST}}"):                                                                                          "",
	} {
		set, _ := readSet(t, text)
		if len(set.File.Dependencies) != 1 {
			t.Fatalf("%q of\n%s", names(set.File.Dependencies), text)
		}
		var got []string
		for _, m := range set.Facts(set.File.Dependencies[0].Name).Methods {
			got = append(got, m.Name)
			if m.Line == 0 || m.File != "x.yaml" {
				t.Errorf("%s has no place", m.Name)
			}
		}
		slices.Sort(got)
		check.Equal(t, strings.Join(got, " "), want, "names in\n%s", text)
	}
}

// A time of an attempt that has no effect is known, with its place, and is not in the policy.
func TestLongAttempts(t *testing.T) {
	envoyGateway := func(perTry string) string {
		return routeHead + "{rules: [{backendRefs: [{name: a}]}]}\n---\napiVersion: gateway.envoyproxy.io/v1alpha1\nkind: BackendTrafficPolicy\nmetadata: {name: p, namespace: shop}\n" +
			"spec: {targetRefs: [{kind: HTTPRoute, name: r}], timeout: {http: {requestTimeout: 2s}}, retry: {perRetry: {timeout: " + perTry + "}}}\n"
	}
	texts := map[string]func(string) string{
		"istio": func(perTry string) string {
			return istioHead + "{http: [{route: [{destination: {host: a}}], timeout: 2s, retries: {attempts: 3, perTryTimeout: " + perTry + "}}]}\n"
		},
		"envoy": func(perTry string) string {
			return "timeout: 2s\nretry_policy: {retry_on: 5xx, per_try_timeout: " + perTry + "}\ncluster: a\n"
		},
		"envoy-gateway": envoyGateway,
		"linkerd": func(perTry string) string {
			return "apiVersion: v1\nkind: Service\nmetadata: {name: a, annotations: {retry.linkerd.io/http: 5xx, retry.linkerd.io/timeout: " + perTry + ", timeout.linkerd.io/request: 2s}}\n"
		},
	}
	for name, text := range texts {
		for perTry, want := range map[string]time.Duration{"1s": 0, "5s": 5 * time.Second} {
			set, report := readSet(t, text(perTry))
			f := set.Facts("a")
			d, _ := set.File.Dependency("a")
			if f.LongAttempt != want || (want > 0) != (f.LongAttemptAt.Line > 0) || (want == 0) != (d.Policy.AttemptTimeout == time.Second) {
				t.Errorf("%s, %s: %+v, %v\n%s", name, perTry, f, d.Policy.AttemptTimeout, report)
			}
			check.Equal(t, strings.Contains(report.String(), "it has no effect"), (want > 0), "%s, %s: told\n%s", name, perTry, report)
		}
	}
}

// Services have the same name in all systems that can name them.
func TestServicesOfDependencies(t *testing.T) {
	dapr := "apiVersion: dapr.io/v1alpha1\nkind: Resiliency\nmetadata: {name: r, namespace: shop}\nspec: {policies: {retries: {c: {policy: constant, maxRetries: 5}}}, targets: {%s: {stock: %s}}}\n"
	for text, want := range map[string]string{
		istioHead + "{http: [{route: [{destination: {host: stock}}]}]}":                                                                             "stock shop",
		istioHead + "{http: [{route: [{destination: {host: stock, subset: v1}}]}]}":                                                                 "stock shop",
		istioHead + "{http: [{route: [{destination: {host: stock.shop.svc.cluster.local}}]}]}":                                                      "stock shop",
		istioHead + "{http: [{route: [{destination: {host: api.example.com}}]}]}":                                                                   "api.example.com ",
		routeHead + "{rules: [{backendRefs: [{name: stock}]}]}":                                                                                     "stock shop",
		routeHead + "{rules: [{backendRefs: [{name: stock, namespace: other}]}]}":                                                                   "stock other",
		fmt.Sprintf(dapr, "apps", "{retry: c}"):                                                                                                     "stock shop",
		fmt.Sprintf(dapr, "components", "{outbound: {retry: c}}"):                                                                                   " ",
		"virtual_hosts: [{name: v, domains: ['*'], routes: [{match: {prefix: /}, route: {cluster: stock}}]}]":                                       "stock ",
		"virtual_hosts: [{name: v, domains: ['*'], routes: [{match: {prefix: /}, route: {cluster: 'outbound|80||stock.shop.svc.cluster.local'}}]}]": " ",
		"apiVersion: v1\nkind: Service\nmetadata: {name: stock, namespace: shop, annotations: {retry.linkerd.io/http: 5xx}}":                        "stock shop",
		"resilience4j.retry.instances: {stock: {maxAttempts: 2}}":                                                                                   "stock ",
	} {
		set, _ := readSet(t, text)
		f := set.Facts(set.File.Dependencies[0].Name)
		check.Equal(t, f.Service+" "+f.Namespace, want, "%s", text)
	}
}

// What is decided in a part that is in none of the files is not known.
func TestWhatIsNotKnown(t *testing.T) {
	const envoyRoute = "virtual_hosts: [{name: v, domains: ['*'], routes: [{match: {prefix: /}, route: {cluster: stock, timeout: 3s}}]}]"
	for text, want := range map[string]string{
		envoyRoute: "breaker budget limit",
		envoyRoute + "\nclusters: [{name: stock, connect_timeout: 1s}]":                                                             "",
		"static_resources: {clusters: [{name: stock, connect_timeout: 1s}]}":                                                        "attempt_timeout attempts backoff deadline",
		"num_retries: 3\nretry_on: 5xx":                                                                                             "breaker budget deadline limit",
		istioHead + "{http: [{route: [{destination: {host: stock}}]}]}":                                                             "breaker budget limit",
		strings.Replace(istioHead, "VirtualService", "DestinationRule", 1) + "{host: stock, trafficPolicy: {outlierDetection: {}}}": "attempt_timeout attempts backoff deadline",
		routeHead + "{rules: [{backendRefs: [{name: stock}]}]}":                                                                     "attempts breaker budget deadline limit",
		routeHead + "{rules: [{backendRefs: [{name: stock}], timeouts: {request: 1s}, retry: {codes: [503]}}]}":                     "breaker budget limit",
		"resilience4j.retry.instances: {stock: {maxAttempts: 2}}":                                                                   "",
	} {
		set, report := readSet(t, text)
		got := slices.Clone(set.Facts(set.File.Dependencies[0].Name).Unknown)
		slices.Sort(got)
		check.Equal(t, strings.Join(got, " "), want, "names in\n%s", text)
		if told := strings.Contains(report.String(), "not known"); strings.Contains(text, "cluster: stock") && told != (want != "") {
			t.Errorf("told %v of\n%s\n%s", told, text, report)
		}
	}
}

// The places of what a file says are known also where it is in another part than the route.
func TestPlacesOfFields(t *testing.T) {
	set, _ := readSet(t, istioHead+"\n  http: [{route: [{destination: {host: a}}],\n    timeout: 2s}]\n---\n"+
		strings.Replace(istioHead, "VirtualService", "DestinationRule", 1)+"\n  host: a\n  trafficPolicy:\n    outlierDetection: {}\n    connectionPool:\n      http:\n        maxRetries: 5\n")
	for field, line := range map[string]int{"deadline": 6, "breaker": 14, "budget": 17} {
		if !set.Says("a", field) || set.Position("a", field).Line != line {
			t.Errorf("%s: %v %v, want line %d", field, set.Says("a", field), set.Position("a", field), line)
		}
	}
	for _, field := range []string{"attempts", "limit.in_flight", "attempt_timeout"} {
		if set.Says("a", field) {
			t.Errorf("no file says %s", field)
		}
	}
}

// Each file has its own clusters; a route leads to that of its file, or to the only one of the name.
func TestClustersOfSeveralFiles(t *testing.T) {
	cluster := func(name string, requests int) string {
		return fmt.Sprintf("{name: %s, connect_timeout: 1s, circuit_breakers: {thresholds: [{max_requests: %d}]}}", name, requests)
	}
	const route = "virtual_hosts: [{name: v, domains: ['*'], routes: [{match: {prefix: /}, route: {cluster: a}}]}]\n"
	whole := func(requests int) string {
		return "static_resources:\n  clusters: [" + cluster("a", requests) + "]\n" + route
	}
	for _, c := range []struct {
		files  []string
		limits []int
	}{
		{[]string{whole(5), whole(7)}, []int{5, 7}},
		{[]string{route, "clusters: [" + cluster("a", 5) + "]"}, []int{5}},
		{[]string{route, "clusters: [" + cluster("b", 5) + "]"}, []int{1024, 5}},
		{[]string{route, whole(5), whole(7)}, []int{1024, 5, 7}}, // it is not known which of them
	} {
		var files []File
		for i, text := range c.files {
			files = append(files, File{fmt.Sprintf("%d.yaml", i), []byte(text)})
		}
		set, report, err := Read(files, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, d := range set.File.Dependencies {
			limit := d.Policy.Limit.InFlight
			if slices.Contains(set.Facts(d.Name).Unknown, "limit") {
				limit = 1024
			}
			got = append(got, limit)
		}
		check.Slices(t, got, c.limits, "%q\n%s", c.files, report)
	}
	if _, _, err := Read([]File{{"x.yaml", []byte("clusters: [" + cluster("a", 1) + ", " + cluster("a", 2) + "]")}}, Options{}); err == nil {
		t.Error("one file has a cluster twice")
	}
}

// Files of other people have fields of clusters as well.
func TestWhatIsNoCluster(t *testing.T) {
	for text, want := range map[string]bool{
		`{"id": "web", "cmd": "x", "healthChecks": [{"protocol": "HTTP"}]}`: false,
		"connect_timeout: 3\nhost: x":                                       false,
		"name: a\nconnect_timeout: 3s":                                      true,
		"connect_timeout: 3s\nhealth_checks: []":                            true,
		"outlier_detection: {}":                                             true,
	} {
		check.Equal(t, len(Recognise(File{"x", []byte(text)})) > 0, want, "%s", text)
	}
}

// Two rules of a gateway that lead to one Service lead to it afterwards.
func TestGatewaysKeepTheirServices(t *testing.T) {
	text := routeHead + "{rules: [{backendRefs: [{name: stock}], timeouts: {request: 1s}, retry: {attempts: 2}}, {name: slow, backendRefs: [{name: stock}], timeouts: {request: 9s}}]}\n---\n" +
		"apiVersion: gateway.networking.x-k8s.io/v1alpha1\nkind: XBackendTrafficPolicy\nmetadata: {name: b, namespace: shop}\nspec: {targetRefs: [{kind: Service, name: stock}], retryConstraint: {budget: {percent: 20, interval: 10s}, minRetryRate: {count: 10, interval: 10s}}}\n"
	first, _ := readSet(t, text)
	data, _, err := Write(first, Gateway, Options{})
	if err != nil {
		t.Fatal(err)
	}
	again, _ := readSet(t, string(data))
	for _, d := range again.File.Dependencies {
		check.Equal(t, again.Facts(d.Name).Service, "stock", "service of %s in\n%s", d.Name, data)
	}
	check.Equal(t, len(again.File.Dependencies), 2, "dependencies of\n%s", data)
}

// Linkerd reads over a limit of 0, which is reported as what it is, and not as missing.
func TestLimitsOfLinkerd(t *testing.T) {
	for limit, want := range map[string]struct {
		attempts int
		kind     Kind
		why      string
	}{
		"":                              {2, Assumed, "without retry.linkerd.io/limit"},
		`, retry.linkerd.io/limit: "0"`: {2, Changed, "reads over a limit of 0"},
		`, retry.linkerd.io/limit: "1"`: {2, Changed, ""},
		`, retry.linkerd.io/limit: "7"`: {8, Changed, ""},
	} {
		set, report := readSet(t, "apiVersion: v1\nkind: Service\nmetadata: {name: a, annotations: {retry.linkerd.io/http: 5xx"+limit+"}}\n")
		d, _ := set.File.Dependency("a")
		told := slices.ContainsFunc(report, func(e Entry) bool {
			return e.Kind == want.kind && strings.Contains(e.Why, want.why) && (want.kind == Assumed) == !strings.Contains(e.Path, "limit")
		})
		if d.Policy.Attempts != want.attempts || told != (want.why != "") || limit != "" && strings.Contains(report.String(), "without retry.linkerd.io/limit") {
			t.Errorf("%s: %d attempts, told %v\n%s", limit, d.Policy.Attempts, told, report)
		}
	}
}

// What is read of Istio and written for it is read as the same: hosts, subsets and the routes to them
// stay what they are.
func TestIstioKeepsItsHosts(t *testing.T) {
	vs := func(routes string) string {
		return "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: v}\nspec: {hosts: [a], http: [" + routes + "]}\n---\n"
	}
	dr := func(spec string) string {
		return "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: d}\nspec: {" + spec + "}\n---\n"
	}
	const (
		to     = "{route: [{destination: {host: reviews, subset: v1}}], timeout: 3s, retries: {attempts: 2, perTryTimeout: 1s}}"
		second = ", {name: second, route: [{destination: {host: reviews, subset: v2}}], timeout: 5s}"
		plain  = ", {name: all, route: [{destination: {host: reviews}}], timeout: 7s}"
		other  = ", {name: other, route: [{destination: {host: reviews}}], timeout: 9s}"
		eject  = "trafficPolicy: {outlierDetection: {consecutive5xxErrors: 7}}"
		pool   = "trafficPolicy: {connectionPool: {http: {http2MaxRequests: 5}}}"
		v1     = "subsets: [{name: v1, labels: {version: v1}"
	)
	for text, want := range map[string]string{
		vs(to):                                 "reviews/v1",
		vs(to) + dr("host: reviews, "+v1+"}]"): "reviews/v1",
		vs(to+second) + dr("host: reviews, "+v1+", "+eject+"}]"):                                                              "reviews/v1 reviews/v2",
		vs(to+second+plain) + dr("host: reviews, "+eject+", "+v1+", "+pool+"}]"):                                              "reviews reviews/v1 reviews/v2",
		vs(to+plain+other) + dr("host: reviews, "+pool):                                                                       "reviews reviews/other reviews/v1",
		vs(strings.ReplaceAll(to, "reviews", "reviews.shop.svc.cluster.local")):                                               "reviews.shop.svc.cluster.local/v1",
		vs("{route: [{destination: {host: A_b}}]}"):                                                                           "A_b",
		dr("host: '*.example.com', " + eject):                                                                                 "*.example.com",
		dr("host: reviews, "+eject+", "+v1+", trafficPolicy: {outlierDetection: {consecutive5xxErrors: 0}}}]") + vs(to+plain): "reviews reviews/v1",
	} {
		first, _ := readSet(t, strings.TrimSuffix(text, "---\n"))
		got := names(first.File.Dependencies)
		slices.Sort(got)
		check.Equal(t, strings.Join(got, " "), want, "names in\n%s", text)
		data, report, err := Write(first, Istio, Options{})
		if err != nil {
			t.Fatal(err)
		}
		again, _ := readSet(t, string(data))
		if strings.ContainsAny(want, "*_") { // which no route can lead to
			if strings.Contains(string(data), "host: "+want) || !strings.Contains(report.String(), "names of DNS") {
				t.Errorf("%s is written\n%s\n%s", want, data, report)
			}
			continue
		}
		for _, d := range first.File.Dependencies {
			d2, ok := again.File.Dependency(d.Name)
			if !ok || d2.Policy != d.Policy {
				t.Errorf("%s: %+v, then %v %+v\n%s\n%s", d.Name, d.Policy, ok, d2.Policy, text, data)
			}
			if f, g := first.known[d.Name].facts, again.known[d.Name].facts; f.host != g.host || f.subset != g.subset {
				t.Errorf("%s: %s %s, then %s %s", d.Name, f.host, f.subset, g.host, g.subset)
			}
		}
		check.Equal(t, len(again.File.Dependencies), len(first.File.Dependencies), "%q, then %q of\n%s", got, names(again.File.Dependencies), data)
		if strings.Count(string(data), "\nkind: VirtualService") != strings.Count(string(data), "hosts: [") || strings.Count(string(data), "kind: DestinationRule") > 1 {
			t.Errorf("a host is written more than once:\n%s", data)
		}
	}
}

// A name of a dependency of lull's own is never taken for a subset.
func TestOnlyIstioHasSubsets(t *testing.T) {
	data := must.Have(config.FormatPolicyFile(&config.PolicyFile{Dependencies: []config.Dependency{{Name: "reviews/v1"}}}))
	if out := convert(t, File{"p.yaml", data}, Istio, Options{}); !strings.Contains(string(out.Data), "host: reviews-v1") {
		t.Errorf("%s", out.Data)
	}
}
