package lint

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/lullgo/lull/cmd/lull/convert"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/internal/tree"
)

// changed is a file of another system with the changes of a fix made.
func changed(t *testing.T, data []byte, changes []Change) []byte {
	t.Helper()
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var docs []*yaml.Node
	for {
		var n yaml.Node
		if decoder.Decode(&n) != nil {
			break
		}
		docs = append(docs, &n)
	}
	for _, c := range changes {
		var in *yaml.Node
		for _, n := range docs {
			if n.Content[0].Line <= c.Line {
				in = n.Content[0]
			}
		}
		if in == nil {
			t.Fatalf("%+v: there is no document in line %d", c, c.Line)
		}
		put(t, in, c.Path, c.Value)
	}
	var b bytes.Buffer
	for i, n := range docs {
		if i > 0 {
			b.WriteString("---\n")
		}
		text := must.Have(yaml.Marshal(n))
		b.Write(text)
	}
	return b.Bytes()
}

// put sets the value at a path below n, which is a mapping or a list. An empty value removes it.
func put(t *testing.T, n *yaml.Node, path, value string) {
	t.Helper()
	key, index, rest := tree.Cut(path)
	if index >= 0 {
		put(t, n.Content[index], rest, value)
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value != key {
			continue
		}
		switch {
		case rest != "":
			put(t, n.Content[i+1], rest, value)
		case value == "":
			n.Content = slices.Delete(n.Content, i, i+2)
		default:
			n.Content[i+1] = parsed(t, value)
		}
		return
	}
	if value == "" {
		t.Fatalf("there is no %s to be removed", path)
	}
	child := &yaml.Node{Kind: yaml.MappingNode}
	if rest == "" {
		child = parsed(t, value)
	} else {
		put(t, child, rest, value)
	}
	name := &yaml.Node{Kind: yaml.ScalarNode, Value: key}
	if len(n.Content) > 0 {
		name.Style = n.Content[0].Style // JSON has quotes
	}
	n.Content = append(n.Content, name, child)
}

func parsed(t *testing.T, value string) *yaml.Node {
	t.Helper()
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(value), &n); err != nil || len(n.Content) != 1 {
		t.Fatalf("%q is no value: %v", value, err)
	}
	return n.Content[0]
}

// perRule is how many findings there are of each rule.
func perRule(r Report) map[string]int {
	n := map[string]int{}
	for _, f := range r.Findings {
		n[f.Rule]++
	}
	return n
}

// fixHolds makes the changes of each fix, one at a time: its finding is gone, and there is no other.
func fixHolds(t *testing.T, name string, data []byte) {
	t.Helper()
	before := checked(t, File{Name: name, Data: data})
	for _, f := range before.Findings {
		if f.Rule == ruleMistake {
			t.Errorf("%s: %s\n%s", name, f.Message, data)
			return
		}
		if len(f.Fix.Changes) == 0 {
			t.Errorf("%s: %s: the fix %q changes nothing\n%s", name, f.Rule, f.Fix.Text, data)
			continue
		}
		for _, c := range f.Fix.Changes {
			last := ""
			for rest := c.Path; rest != ""; {
				last, _, rest = tree.Cut(rest)
			}
			if c.Value != "" {
				last += ": " + c.Value
			}
			if !strings.Contains(f.Fix.Text, last) {
				t.Errorf("%s: %s: the fix %q says nothing of %s", name, f.Rule, f.Fix.Text, last)
			}
		}
		better := changed(t, data, f.Fix.Changes)
		after := checked(t, File{Name: name, Data: better})
		was, is := perRule(before), perRule(after)
		was[f.Rule]--
		for rule, n := range is {
			if n > was[rule] {
				t.Errorf("%s: %s: %s\nfix: %s\nthen there are %d findings of %s, %d before\n%s\nbefore:\n%s\nafter:\n%s", name, f.Rule, f.Message, f.Fix.Text, n, rule, was[rule], messages(after), data, better)
			}
		}
	}
}

func messages(r Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%d %s %s: %s (%s)\n", f.Line, f.Severity, f.Rule, f.Message, f.Fix.Text)
	}
	return b.String()
}

// In the files of all systems, what a fix writes ends its finding, and starts no other.
func TestFixesOfOtherSystemsFix(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(seed.Fresh(t), 4))
	files := 60
	if testing.Short() {
		files = 15
	}
	for i := 0; i < files && !t.Failed(); i++ {
		f := &config.PolicyFile{Dependencies: []config.Dependency{{Name: "a", Policy: randomPolicy(r)}}}
		text := must.Have(config.FormatPolicyFile(f))
		for _, to := range convert.Targets() {
			if to == convert.Lull {
				continue
			}
			out, err := convert.Convert([]convert.File{{Name: "x.yaml", Data: text}}, to, convert.Options{})
			if err != nil {
				continue // the system has no such policy
			}
			fixHolds(t, "x.yaml", out.Data)
		}
	}
}

// The same in files like those that people have: testdata/systems, whose first line names the findings at
// or above a warning. "none" is silence.
func TestFilesOfSystems(t *testing.T) {
	for name, data := range filesOf(t, "testdata/systems/*") {
		first, _, _ := strings.Cut(data, "\n")
		want := strings.Fields(strings.TrimPrefix(first, "# finds: "))
		if len(want) == 1 && want[0] == "none" {
			want = nil
		}
		r := linted(t, data).WithoutNotes()
		var got []string
		for rule, n := range perRule(r) {
			got = append(got, slices.Repeat([]string{rule}, n)...)
		}
		slices.Sort(got)
		slices.Sort(want)
		check.Slices(t, got, want, "%s\n%s", name, messages(r))
		fixHolds(t, name, []byte(data))
	}
}

// A file without a setting of retries, timeouts, breakers or limits has no finding, not even a note. Nor has
// what depends on a file that is not there.
func TestFilesWithoutSettingsAreSilent(t *testing.T) {
	for name, text := range map[string]string{
		"a route of Istio":          "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a}\nspec:\n  hosts: [a]\n  http: [{route: [{destination: {host: a}}]}]\n",
		"a rule of Istio":           "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: a}\nspec: {host: a, trafficPolicy: {loadBalancer: {simple: RANDOM}}, subsets: [{name: v1, labels: {version: v1}}]}\n",
		"a route and its rule":      "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a}\nspec: {hosts: [a], http: [{route: [{destination: {host: a}}]}]}\n---\napiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: a}\nspec: {host: a, trafficPolicy: {tls: {mode: ISTIO_MUTUAL}}}\n",
		"routes of Envoy":           "virtual_hosts: [{name: a, domains: [\"*\"], routes: [{match: {prefix: /}, route: {cluster: a}}]}]\n",
		"routes without a cluster":  "virtual_hosts: [{name: a, domains: [\"*\"], routes: [{match: {prefix: /}, route: {cluster: a, timeout: 3s}}]}]\n",
		"a cluster of Envoy":        "static_resources: {clusters: [{name: a, connect_timeout: 1s, type: STATIC}]}\n",
		"an HTTPRoute":              "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: a}\nspec: {rules: [{backendRefs: [{name: a, port: 80}]}]}\n",
		"a ServiceProfile":          "apiVersion: linkerd.io/v1alpha2\nkind: ServiceProfile\nmetadata: {name: a.b.svc.cluster.local}\nspec: {routes: [{name: GET /, condition: {method: GET, pathRegex: /}}]}\n",
		"a target of Dapr":          "apiVersion: dapr.io/v1alpha1\nkind: Resiliency\nmetadata: {name: a}\nspec: {policies: {}, targets: {apps: {a: {}}}}\n",
		"an instance of r4j":        "resilience4j.retry: {instances: {a: {eventConsumerBufferSize: 10}}}\n",
		"a service config for gRPC": "{\"methodConfig\": [{\"name\": [{\"service\": \"a.B\"}], \"waitForReady\": true}]}\n",
	} {
		if r := checked(t, File{Name: "x.yaml", Data: []byte(text), Found: true}); len(r.Findings) > 0 {
			t.Errorf("%s:\n%s", name, messages(r))
		}
	}
}
