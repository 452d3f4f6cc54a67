package convert

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/golden"
	"github.com/lullgo/lull/internal/must"
)

func open(t testing.TB, names ...string) []File {
	t.Helper()
	var files []File
	for _, name := range names {
		data := must.Have(os.ReadFile(filepath.Join("testdata", name)))
		files = append(files, File{filepath.Base(name), data})
	}
	return files
}

// One run reports all mistakes of a file, each with its place, path, value and what is allowed.
func TestMistakesOfFiles(t *testing.T) {
	for _, name := range []string{"istio.yaml", "envoy.yaml", "grpc.json", "gateway.yaml", "envoy-gateway.yaml", "dapr.yaml", "resilience4j.yaml", "lull.yaml"} {
		_, err := Convert(open(t, "mistakes/"+name), Lull, Options{})
		mistakes, ok := errors.AsType[config.Mistakes](err)
		if !ok {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, m := range mistakes {
			if m.File != name || m.Line < 1 || m.Column < 1 || m.Path == "" || m.Found == "" || m.Allowed == "" {
				t.Errorf("%s: %+v", name, m)
			}
		}
		golden.File(t, "testdata/mistakes/"+strings.TrimSuffix(name, filepath.Ext(name))+".txt", err.Error()+"\n")
	}
	_, err := Convert(open(t, "mistakes/istio.yaml", "mistakes/grpc.json"), Lull, Options{})
	if m, _ := errors.AsType[config.Mistakes](err); len(m) < 10 {
		t.Errorf("two files: %v", err)
	}
}

func TestMistakesOfTheText(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "x:1:1: an empty file: want at least one of: lull, grpc, istio, envoy, gateway, envoy-gateway, dapr, resilience4j or linkerd",
		"# nothing\n---\n":                    "x:1:1: an empty file",
		"{":                                   "x:1:2: not JSON: unexpected EOF",
		"{\n \"methodConfig\": [,]}":          "x:2:19: not JSON: invalid character ','",
		"a:\n\t- b":                           "x:2:1: a tab: want spaces, since YAML does not indent by tabs",
		"42":                                  "x:1:1: 42: want one of: a policy file of lull (dependencies), a gRPC service config (methodConfig)",
		"[1, 2]":                              "x:1:1: a list: want one of",
		"color: red\nsize: 3":                 "x:1:1: a mapping of color, size: want one of: a policy file of lull (dependencies), a gRPC service config (methodConfig)",
		"apiVersion: v1\nkind: Service":       "there is nothing that says how calls are made in these files",
		"{}":                                  "x:1:1: an empty mapping: want " + certain,
		"[{a: 1}, {name: b}]":                 "x:1:2: [0] is a mapping of a: want " + certain,
		"virtual_hosts: !!binary aGk=":        "tagged",
		"methodConfig: 3":                     "x:1:15: methodConfig is 3: want a list",
		"virtual_hosts: {}":                   "x:1:16: virtual_hosts is a mapping: want a list",
		"retry_policy: 3\ncluster: x":         "x:1:15: retry_policy is 3: want a mapping",
		"resources: [{\"@type\": a.Cluster}]": "",
		strings.Repeat("a: b\n---\n", 10_002): "too many documents",
		strings.Repeat(" ", 16<<20) + "a: b":  "more than 16 MiB",
	} {
		_, err := Convert([]File{{"x", []byte(text)}}, Lull, Options{})
		if want == "" && err == nil {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %.300v, want %q", text, err, want)
		}
	}
}

// After a hundred mistakes the report only states that there are more.
func TestMistakesEndSomewhere(t *testing.T) {
	_, err := Convert([]File{{"x", []byte("clusters:\n" + strings.Repeat("- {name: [], connect_timeout: 1s}\n", 150))}}, Lull, Options{})
	mistakes, _ := errors.AsType[config.Mistakes](err)
	if len(mistakes) != 101 || mistakes[100].Error() != "x:102:10: more mistakes from here on" {
		t.Errorf("%d mistakes, the last %v", len(mistakes), mistakes[max(len(mistakes), 1)-1])
	}
}

func TestAliasBombsAreRefused(t *testing.T) {
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 10; i++ {
		was := "*a" + string(rune('0'+i-1))
		bomb += "a" + string(rune('0'+i)) + ": &a" + string(rune('0'+i)) + " [" + strings.Repeat(was+", ", 9) + was + "]\n"
	}
	refused(t, File{"x", []byte(bomb)}, Options{}, "too many aliased values")
}

func TestMistakesOfOptions(t *testing.T) {
	f := file(t, lull.Policy{}, lull.Policy{Attempts: 2})
	for _, c := range []struct {
		to   Format
		o    Options
		want string
	}{
		{Istio, Options{Base: "nobody"}, `base is "nobody": want "lull", or a preset: internal-service`},
		{Istio, Options{Only: "nothing"}, `dependency is "nothing": want one of those that there are: api or api-1`},
		{GRPC, Options{}, "dependency is not given: want the one to be written"},
		{99, Options{}, "to is format(99): want lull, grpc, istio, envoy, gateway, envoy-gateway or dapr"},
	} {
		_, err := Convert([]File{f}, c.to, c.o)
		if _, ok := errors.AsType[engine.Problems](err); !ok || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c, err, c.want)
		}
	}
	envoy := Envoy
	if _, err := Convert([]File{f}, Istio, Options{From: &envoy}); err == nil || !strings.Contains(err.Error(), "nothing that says how calls are made") {
		t.Errorf("policies that are said to be Envoy's: %v", err)
	}
	grpc := GRPC
	refused(t, File{"x", []byte(`{"a": 1}`)}, Options{From: &grpc}, "nothing that says")
}

// Reading stops where there are more dependencies than anybody can use, in each format.
func TestFilesWithTooManyDependencies(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not short: the same every time, on one goroutine")
	}
	many := func(head, each, tail string, n int) string {
		var b strings.Builder
		b.WriteString(head)
		for i := range n {
			if i > 0 && strings.HasPrefix(head, "{") {
				b.WriteByte(',')
			}
			b.WriteString(strings.ReplaceAll(each, "#", fmt.Sprint(i)))
		}
		b.WriteString(tail)
		return b.String()
	}
	for _, c := range []struct{ name, head, each, tail, at string }{
		{"methods", `{"methodConfig": [`, `{"name": [{"service": "s#"}], "timeout": "1s"}`, `]}`, "methodConfig[20000].name[0]"},
		{"clusters", `{"clusters": [`, `{"name": "c#"}`, `]}`, "clusters[20000]"},
		{"routes of Envoy", `{"virtual_hosts": [{"domains": ["*"], "routes": [`, `{"match": {}, "route": {"cluster": "c#"}}`, `]}]}`, "virtual_hosts[0].routes[20000].route"},
		{"routes of Istio", `{"apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "spec": {"http": [`, `{"route": [{"destination": {"host": "h#"}}]}`, `]}}`, "spec.http[20000]"},
		{"rules of a gateway", `{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "spec": {"rules": [`, `{"backendRefs": [{"name": "b#"}]}`, `]}}`, "spec.rules[20000]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := Convert([]File{{"x", []byte(many(c.head, c.each, c.tail, maxDependencies+200))}}, Envoy, Options{})
			want := c.at + " is one of too many dependencies: want at most 20000 in all files together"
			if err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "too many") != 1 {
				t.Errorf("%.300v, want %s", err, want)
			}
		})
	}
}

// Small things of the texts.

func routeOf(of string) string {
	return "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: v}\nspec: {hosts: [a], http: [{route: [{destination: {host: a}}], " + of + "}]}\n"
}

// Numbers are as those who read the file take them: 010 is eight in YAML of Kubernetes and
// of Envoy.
func TestNumbersOfYAML(t *testing.T) {
	for text, want := range map[string]int{"010": 9, "0x10": 17, "0o10": 9, "1_0": 11, "+3": 4, "0": 1, "08": 9} {
		check.Equal(t, one(t, routeOf("retries: {attempts: "+text+"}"), Options{}).WithDefaults().Attempts, want, "%s: attempts", text)
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
			check.Equal(t, e.To, Envoy, "%s: %+v", text, e)
		}
	}
}
