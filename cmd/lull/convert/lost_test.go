package convert

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/tree"
)

// A scalar is a single value somewhere in a document.
type scalar struct {
	path   string
	key    string     // of the field that it is the value of, or an element of
	node   *tree.Node // that it is in
	number int        // which of its members or items
	value  string
}

func scalars(n *tree.Node, path, key string) (all []scalar) {
	add := func(i int, v *tree.Node, path, key string) {
		if v.Kind >= tree.List {
			all = append(all, scalars(v, path, key)...)
		} else if v.Kind > tree.Null {
			all = append(all, scalar{path, key, n, i, v.Text})
		}
	}
	for i, item := range n.Items {
		add(i, item, tree.Element(path, i), key)
	}
	for i, m := range n.Members {
		add(i, m.Value, tree.Join(path, m.Key), m.Key)
	}
	return all
}

// without runs f while the value is not in its document.
func (s scalar) without(f func()) {
	items, members := s.node.Items, s.node.Members
	if len(items) > 0 {
		s.node.Items = slices.Delete(slices.Clone(items), s.number, s.number+1)
	} else {
		s.node.Members = slices.Delete(slices.Clone(members), s.number, s.number+1)
	}
	f()
	s.node.Items, s.node.Members = items, members
}

// withoutPlaces returns the result of Convert without places: output, report and error.
func withoutPlaces(docs []*tree.Node, to Format) string {
	var text []byte
	for _, d := range docs {
		text = append(text, d.JSON()...)
	}
	out, err := Convert([]File{{"x.json", text}}, to, Options{})
	var b strings.Builder
	if err != nil {
		b.WriteString("error: " + err.Error())
	}
	b.Write(out.Data)
	for _, e := range out.Report {
		e.Line, e.Column = 0, 0
		b.WriteString(e.String() + "\n")
	}
	return b.String()
}

// Rule 21: nothing is lost without a word. If any single value is removed from a file, the output
// changes or the report does.
func TestRule21NoValueIsLostWithoutAWord(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not short: the same every time, on one goroutine")
	}
	var files []string
	for _, pattern := range []string{"testdata/found/*.yaml", "testdata/golden/*.yaml", "testdata/golden/*.json", "testdata/golden/*-to-*.out"} {
		files = append(files, must.Have(filepath.Glob(pattern))...)
	}
	tried := 0
	for _, name := range files {
		docs := must.Have(parse(name, must.Have(os.ReadFile(name))))
		if format, ok := recognise(docs[0]); ok && format == Lull {
			continue // package config refuses what it does not know
		}
		whole := withoutPlaces(docs, Lull)
		if strings.HasPrefix(whole, "error: x.json") {
			continue // refused, rightly: TestFilesThatPeopleHave
		}
		for _, d := range docs {
			for _, s := range scalars(d, "", "") {
				s.without(func() {
					if tried++; withoutPlaces(docs, Lull) == whole && !saysNothing(s) {
						t.Errorf("%s: without %s nothing changes", name, s.path)
					}
				})
			}
		}
	}
	if tried < 500 {
		t.Errorf("only %d values were tried", tried)
	}
}

// saysNothing reports whether a value makes no difference: it is the default of the system, a name
// that distinguishes two things, or the type of a value that its fields identify.
func saysNothing(s scalar) bool {
	return s.key == "name" || s.key == "@type" ||
		slices.Contains([]string{"priority: DEFAULT", "format: SECONDS", "enforcing_consecutive_5xx: 100", "attempts: 0", "value: 0", "policy: constant"}, s.key+": "+s.value)
}

// Files as people have them are converted, or refused with what is wrong; and what is not
// read is reported.
func TestFilesThatPeopleHave(t *testing.T) {
	for name, want := range map[string][]string{
		"btp.yaml":     {"spec.admissionControl", "spec.faultInjection", "spec.healthCheck.passive.interval", "spec.retry.retryOn.httpStatusCodes"},
		"gw1.yaml":     {},
		"h.yaml":       nil,
		"istio2.yaml":  nil,
		"istio1.yaml":  {"spec.trafficPolicy.connectionPool.tcp.maxConnections", "spec.trafficPolicy.connectionPool.http.maxConcurrentStreams"},
		"passive.yaml": {"spec.upstreamConfig.defaults.passiveHealthCheck", "spec.upstreamConfig.defaults.limits.maxConnections", "spec.inFlightReq", "spec.circuitBreaker"},
		"others.yaml": {
			`metadata.annotations["nginx.ingress.kubernetes.io/limit-rps"]`, `metadata.annotations["nginx.ingress.kubernetes.io/upstream-max-fails"]`,
			`metadata.annotations["alb.ingress.kubernetes.io/target-group-attributes"]`, "spec.to[0].default.connectionLimits.maxRequests", "spec.to[0].default.outlierDetection",
			"spec.upstreamConfig.defaults.passiveHealthCheck", "spec.upstreamConfig.defaults.limits.maxPendingRequests", "spec.inFlightReq",
			"spec.routes[0].services[0].passiveHealthCheck", "spec.healthCheck.passive", "spec.upstreams[0].max-fails", "spec.upstreams[0].max-conns", "spec.healthCheck", "spec.failover",
			"spec.default.maxRatePerEndpoint", "spec.flows[0].onException.redeliveryPolicy.maximumRedeliveries", "spec.delivery.deadLetterSink.uri",
		},
		"route_noretry.yaml": {"static_resources.clusters[0].circuit_breakers.thresholds[0].max_retries"},
	} {
		out, err := Convert(open(t, "found/"+name), Lull, Options{})
		check.Equal(t, err == nil, want != nil, "%s: %v", name, err)
		for _, path := range want {
			if !slices.ContainsFunc(out.Report, func(e Entry) bool { return e.Kind == Lost && strings.HasPrefix(path, e.Path) }) {
				t.Errorf("%s: %s is not reported\n%s", name, path, out.Report)
			}
		}
	}
}

// The budget, deadline and attempts of the report are those of the policy, and what is in the
// policy and in no file is in the report.
func TestTheReportIsTrue(t *testing.T) {
	const (
		cluster  = "clusters: [{name: a, circuit_breakers: {thresholds: [{max_retries: 9}]}}]\n"
		budgeted = "clusters: [{name: a, circuit_breakers: {thresholds: [{retry_budget: {}}]}}]\n"
		routes   = "---\nvirtual_hosts: [{name: v, domains: ['*'], routes: [{match: {}, route: {cluster: a, retry_policy: {retry_on: 5xx}}}]}]\n"
		rule     = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: a}\nspec: {host: a, trafficPolicy: {connectionPool: {http: {maxRetries: 9}}}}\n---\n"
	)
	for _, c := range []struct {
		text  string
		kind  Kind
		path  string
		why   string
		stock float64
	}{
		{cluster, Lost, "clusters[0].circuit_breakers.thresholds[0].max_retries", "nothing to bound", 0},
		{cluster, Assumed, "clusters[0]", "one attempt, and 15s", 0},
		{cluster + routes, Changed, "clusters[0].circuit_breakers.thresholds[0].max_retries", "it is the stock here", 9},
		{budgeted, Lost, "clusters[0].circuit_breakers.thresholds[0].retry_budget", "nothing to bound", 0},
		{rule + routeOf("retries: {attempts: 0}"), Lost, "spec.trafficPolicy.connectionPool.http.maxRetries", "nothing to bound", 0},
		{rule + routeOf("retries: {attempts: 2}"), Changed, "spec.trafficPolicy.connectionPool.http.maxRetries", "it is the stock here", 9},
		{"retry_on: 5xx", Assumed, "(all)", "15s", 3},
		{`{"methodConfig": [{"name": [{}]}]}`, Assumed, "methodConfig[0]", "without timeout gRPC bounds no call", 0},
		{`{"methodConfig": [{"name": [{}]}]}`, Assumed, "methodConfig[0]", "makes one attempt", 0},
		{"apiVersion: gateway.networking.x-k8s.io/v1alpha1\nkind: XBackendTrafficPolicy\nspec: {targetRefs: [{name: a}], retryConstraint: {}}", Assumed, "spec", "no rule in these files", 0},
		{"virtual_hosts: [{name: v, domains: ['*'], retry_policy: {retry_on: 5xx, num_retries: 7}, routes: [{match: {}, route: {cluster: a, retry_policy: {retry_on: 5xx}}}]}]", Lost, "virtual_hosts[0].retry_policy", "has its own", 3},
	} {
		out := convert(t, File{"x.yaml", []byte(c.text)}, Lull, Options{})
		noted(t, out.Report, c.kind, c.path, c.why)
		b := policies(t, out.Data)[0].Policy.Budget
		if stock := slices.ContainsFunc(out.Report, func(e Entry) bool { return strings.Contains(e.Why, "it is the stock here") }); stock && b.Unlimited || c.stock != b.Stock && c.stock > 0 {
			t.Errorf("%s\nthe budget is %+v:\n%s", c.text, b, out.Report)
		}
	}
}
