package convert

import (
	"slices"
	"strings"
	"testing"

	"github.com/lullgo/lull/config"
)

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
		if slices.Sort(got); strings.Join(got, " ") != want {
			t.Errorf("%q, want %q of\n%s", got, want, text)
		}
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
		if len(again.File.Dependencies) != len(first.File.Dependencies) {
			t.Errorf("%q, then %q of\n%s", got, names(again.File.Dependencies), data)
		}
		if strings.Count(string(data), "\nkind: VirtualService") != strings.Count(string(data), "hosts: [") || strings.Count(string(data), "kind: DestinationRule") > 1 {
			t.Errorf("a host is written more than once:\n%s", data)
		}
	}
}

// A name of a dependency of lull's own is never taken for a subset.
func TestOnlyIstioHasSubsets(t *testing.T) {
	data := must(config.FormatPolicyFile(&config.PolicyFile{Dependencies: []config.Dependency{{Name: "reviews/v1"}}}))
	if out := convert(t, File{"p.yaml", data}, Istio, Options{}); !strings.Contains(string(out.Data), "host: reviews-v1") {
		t.Errorf("%s", out.Data)
	}
}
