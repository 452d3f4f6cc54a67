package convert

import (
	"errors"
	"strings"
	"testing"

	"github.com/lullgo/lull/config"
)

// Small things of the texts.

func routeOf(of string) string {
	return "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: v}\nspec: {hosts: [a], http: [{route: [{destination: {host: a}}], " + of + "}]}\n"
}

// Numbers are as those who read the file take them: 010 is eight in YAML of Kubernetes and
// of Envoy.
func TestNumbersOfYAML(t *testing.T) {
	for text, want := range map[string]int{"010": 9, "0x10": 17, "0o10": 9, "1_0": 11, "+3": 4, "0": 1, "08": 9} {
		if p := one(t, routeOf("retries: {attempts: "+text+"}"), Options{}); p.WithDefaults().Attempts != want {
			t.Errorf("%s: %d attempts, want %d", text, p.WithDefaults().Attempts, want)
		}
	}
	out := convert(t, File{"x.yaml", []byte(routeOf("retries: {attempts: 010}"))}, Lull, Options{})
	if e := entry(out.Report, Assumed, "spec.http[0].retries.attempts", "8"); e == nil || e.Value != "010" {
		t.Errorf("010 is not reported:\n%s", out.Report)
	}
}

// A path leads to one place, also if keys have dots and brackets in them.
func TestPathsOfKeysWithDots(t *testing.T) {
	const text = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  annotations:
    x.io/a: {timeout.b: 1}
    a.timeout:
      b: 2
    a.timeout.b: 3
    'x[0]."timeout': 4
spec: {http: [{route: [{destination: {host: a}}]}]}
`
	out := convert(t, File{"x.yaml", []byte(text)}, Lull, Options{})
	lines := map[string]int{
		`metadata.annotations["x.io/a"]`:         5,
		`metadata.annotations["a.timeout"]`:      6,
		`metadata.annotations["a.timeout.b"]`:    8,
		`metadata.annotations["x[0].\"timeout"]`: 9,
	}
	for path, line := range lines {
		if e := entry(out.Report, Lost, path, ""); e == nil || e.Line != line {
			t.Errorf("%s: %v, want line %d", path, e, line)
		}
	}
	if t.Failed() {
		t.Log(out.Report)
	}
}

// Valid files that have nothing to convert are not wrong; what is in them is reported.
func TestNothingToConvert(t *testing.T) {
	for text, wrong := range map[string]bool{
		"apiVersion: v1\nkind: Service\nmetadata: {name: a}":                              false,
		"apiVersion: traefik.io/v1alpha1\nkind: Middleware\nspec: {retry: {attempts: 4}}": false,
		"static_resources: {clusters: [], listeners: []}":                                 false,
		`{"loadBalancingPolicy": "round_robin"}`:                                          false,
		"services: {web: {image: nginx}}":                                                 true,
		"{}":                                                                              true,
		"apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: a}\nspec: {x: [1]}": false,
	} {
		out, err := Convert([]File{{"x", []byte(text)}}, Envoy, Options{})
		_, mistakes := errors.AsType[config.Mistakes](err)
		if mistakes != wrong || errors.Is(err, ErrNothing) == wrong {
			t.Errorf("%s: %v", text, err)
		}
		if strings.Contains(text, "retry") && len(out.Report.Losses()) == 0 {
			t.Errorf("%s: nothing is reported", text)
		}
		for _, e := range out.Report {
			if e.To != Envoy {
				t.Errorf("%s: %+v", text, e)
			}
		}
	}
}
