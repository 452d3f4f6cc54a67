package convert

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/tree"
)

var camelOf = regexp.MustCompile(`_[a-z0-9]`)

// respelt is n with its keys in camel case where camel is true for them. What is the name of
// something and no field stays.
func respelt(n *tree.Node, camel func() bool) *tree.Node {
	out := *n
	out.Items, out.Members = nil, nil
	for _, item := range n.Items {
		out.Items = append(out.Items, respelt(item, camel))
	}
	for _, m := range n.Members {
		if camel() {
			m.Key = camelOf.ReplaceAllStringFunc(m.Key, func(s string) string { return strings.ToUpper(s[1:]) })
		}
		m.Value = respelt(m.Value, camel)
		out.Members = append(out.Members, m)
	}
	return &out
}

func plainPaths(r Report) string {
	var b strings.Builder
	for _, e := range r {
		e.Path = plain(e.Path)
		e.Line, e.Column = 0, 0
		b.WriteString(e.String() + "\n")
	}
	return b.String()
}

// Protobuf's JSON has two spellings for every field, and takes both everywhere: Envoy's own
// dumps are in camel case.
func TestEveryFieldOfEnvoyHasTwoSpellings(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*envoy*.*")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	files = append(files, "testdata/found/clusters.yaml", "testdata/found/pair.yaml", "testdata/found/all.yaml")
	for _, name := range files {
		if strings.HasSuffix(name, ".report") || strings.Contains(name, "envoy-to") || strings.Contains(name, "envoy-gateway") {
			continue
		}
		docs := must.Have(parse("", must.Have(os.ReadFile(name))))
		run := func(camel func() bool) Output {
			var text []byte
			for _, d := range docs {
				text = append(text, respelt(d, camel).JSON()...)
			}
			return convert(t, File{"x.json", text}, Lull, Options{})
		}
		want := run(func() bool { return false })
		const seed = 7
		r := rand.New(rand.NewPCG(seed, 1))
		for i, camel := range []func() bool{func() bool { return true }, func() bool { return r.IntN(2) == 0 }} {
			got := run(camel)
			check.Equal(t, string(got.Data), string(want.Data), "%s, spelling %d, seed %d", name, i, seed)
			check.Equal(t, plainPaths(got.Report), plainPaths(want.Report), "%s, spelling %d, seed %d: the report", name, i, seed)
		}
	}
}

// A cluster with any one of its fields is one, in either spelling, alone or in a list; a text
// called loadBalancingPolicy makes a service config of gRPC.
func TestClustersAreNoServiceConfigs(t *testing.T) {
	for text, want := range map[string]Format{
		`{"name": "a", "type": "EDS", "loadBalancingPolicy": {"policies": []}}`:                 Envoy,
		`{"name": "a", "load_balancing_policy": {}}`:                                            Envoy,
		`{"name": "a", "type": "STRICT_DNS"}`:                                                   Envoy,
		`{"name": "a", "circuitBreakers": {}}`:                                                  Envoy,
		`{"loadBalancingPolicy": "round_robin"}`:                                                GRPC,
		`{"LoadBalancingPolicy": "round_robin", "methodConfig": []}`:                            GRPC,
		`{"filterChains": [], "address": {}}`:                                                   Envoy,
		`{"clusterName": "a", "endpoints": []}`:                                                 Envoy,
		`{"xds": {"gw": [{"@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump"}]}}`: Envoy,
	} {
		docs := must.Have(parse("", []byte(text)))
		if got, ok := recognise(docs[0]); !ok || got != want {
			t.Errorf("%s is taken for %v, %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"services: {web: {image: nginx}}", "gateways: []\nservices: [{kind: Service, metadata: {name: a}}]", "{}", "name: a"} {
		docs := must.Have(parse("", []byte(text)))
		if got, ok := recognise(docs[0]); ok {
			t.Errorf("%s is taken for %v", text, got)
		}
	}
}

// A cluster and a route in two files of a dump make one dependency. A cluster that cannot be
// recognised has the format of the others in its list.
func TestPairsOfDumps(t *testing.T) {
	out := convert(t, open(t, "found/pair.yaml")[0], Lull, Options{})
	if p := find(t, out, "payments"); p.Attempts != 4 || p.Deadline != 2*time.Second || p.Limit.InFlight != 50 || p.Budget.Stock != 100 || strings.Contains(out.Report.String(), "gRPC") {
		t.Errorf("%+v\n%s", p, out.Report)
	}
	enums := `{"name": "a", "circuitBreakers": {"thresholds": [{"priority": 0, "retryBudget": {"budgetPercent": {"value": "25"}}}, {"priority": 1}]}}`
	noted(t, convert(t, File{"c.json", []byte(enums)}, Lull, Options{}).Report, Lost, "circuitBreakers.thresholds[1]", "no priorities")
}
