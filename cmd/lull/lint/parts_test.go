package lint

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lullgo/lull/cmd/lull/convert"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

func checked(t *testing.T, files ...File) Report {
	t.Helper()
	r := must.Have(Check(files, Options{}))
	return r
}

// spots are the rules and places of what was found, in other lines and columns.
func spots(r Report, lines, columns int) (all []string) {
	for _, f := range r.Findings {
		all = append(all, fmt.Sprintf("%s %d:%d", f.Rule, f.Line+lines, f.Column+columns))
	}
	slices.Sort(all)
	return all
}

// movedRight is text with each line that has something in it moved to the right.
func movedRight(text string, by int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			b.WriteString(strings.Repeat(" ", by))
		}
		b.WriteString(line)
	}
	return b.String()
}

// What is found in a policy file is found in it as a document among others, and as the text of a
// ConfigMap, at the right places.
func TestPoliciesInStreamsAndConfigMaps(t *testing.T) {
	const before = "# Source: shop/templates/deployment.yaml\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: shop}\n"
	configMap := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: policies}\ndata:\n  other.txt: |\n    nothing\n  policies.yaml: |\n"
	tried := 0
	for name, text := range filesOf(t, "../../../docs/examples/policies/bad/*.yaml") {
		text = strings.TrimRight(text, "\n") + "\n"
		alone := linted(t, text)
		if strings.Contains(name, "ignore-comment") || strings.Contains(text, "\n---") || strings.HasPrefix(text, "---") || !strings.Contains(text, ":\n") || strings.Contains(text, "\t") {
			continue // its messages have lines, it has several documents, or is none that can be indented
		}
		tried++
		stream := linted(t, before+"---\n"+text+"---\n"+before)
		lines := strings.Count(before, "\n") + 1
		check.Slices(t, spots(stream, -lines, 0), spots(alone, 0, 0), "%s in a stream", name)
		if len(alone.Unreadable) > 0 && !slices.ContainsFunc(alone.Findings, func(f Finding) bool { return f.Rule == ruleCap }) {
			continue // only what is known to be a policy file is read in a ConfigMap
		}
		within := linted(t, before+"---\n"+configMap+movedRight(text, 4))
		lines += strings.Count(configMap, "\n")
		check.Slices(t, spots(within, -lines, -4), spots(alone, 0, 0), "%s in a ConfigMap", name)
	}
	if tried < 20 {
		t.Errorf("only %d files", tried)
	}
}

// A text in quotes is not in the file line by line: its findings are at its key.
func TestPoliciesInQuotes(t *testing.T) {
	for _, text := range []string{
		"apiVersion: v1\nkind: ConfigMap\ndata:\n  a.yaml: \"dependencies: {a: {backoff: {jitter: none}}}\\n\"\n",
		`{"apiVersion": "v1", "kind": "ConfigMap",` + "\n\n" + `"data":` + "\n" + `  {"a.yaml": "dependencies:\n  a: {backoff: {jitter: none}}\n"}}`,
		"apiVersion: v1\nkind: List\nitems:\n- {kind: ConfigMap, apiVersion: v1, data: {a.yaml: \"attempts: 3\\nbackoff: {jitter: none}\"}}\n",
		"apiVersion: v1\nkind: ConfigMap\ndata:\n  a.yaml: >\n    dependencies: {a:\n      {backoff: {jitter: none}}}\n",
	} {
		r := linted(t, text)
		if len(r.Findings) != 1 || r.Findings[0].Rule != "jitter-missing" || r.Findings[0].Line != 4 {
			t.Errorf("%s\n%+v", text, r.Findings)
		}
	}
}

const (
	istioRoute = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: shop}
spec:
  hosts: [shop]
  http:
  - route: [{destination: {host: payments}}]
    timeout: 2s
    retries:
      attempts: 8
      perTryTimeout: 1s
      retryOn: 5xx
`
	shopGraph = "services:\n  shop: {slo: 1s, calls: [payments]}\n"
)

// Files of other systems are checked as policies of lull, with the places and the names of their
// own fields.
func TestFilesOfOtherSystems(t *testing.T) {
	r := checked(t, File{Name: "istio.yaml", Data: []byte(istioRoute)}, File{Name: "graph.yaml", Data: []byte(shopGraph)})
	found := map[string]Finding{}
	for _, f := range r.Findings {
		found[f.Rule] = f
	}
	if f, ok := found["budget-missing"]; ok { // a DestinationRule may have it
		t.Errorf("%+v", f)
	}
	if f := found["attempt-never-made"]; f.Line != 10 || f.Column != 7 || !strings.HasPrefix(f.Fix.Text, "write retries.attempts: 1 in spec.http[0] (line 7)") {
		t.Errorf("%+v", f)
	}
	if f := found["worst-case-over-slo"]; f.File != "graph.yaml" || f.Line != 2 {
		t.Errorf("%+v", f)
	}
	if !slices.Equal(r.Files, []string{"istio.yaml", "graph.yaml"}) || len(r.Skipped) > 0 {
		t.Errorf("%v %v", r.Files, r.Skipped)
	}
	// Routes and rules of one host belong together in whatever files they are.
	rule := "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: x}\nspec: {host: payments, trafficPolicy: {retryBudget: {percent: 10, minRetryConcurrency: 1}}}\n"
	r = checked(t, File{Name: "istio.yaml", Data: []byte(istioRoute)}, File{Name: "rule.yaml", Data: []byte(rule)})
	if !slices.Equal(r.Files, []string{"istio.yaml", "rule.yaml"}) || len(r.Skipped) > 0 {
		t.Errorf("%v %v", r.Files, r.Skipped)
	}
	for _, f := range r.Findings {
		if f.Rule == "budget-missing" {
			t.Errorf("there is a budget, and %+v", f)
		}
	}
}

// Comments ignore findings in files of other systems as well.
func TestIgnoresInFilesOfOtherSystems(t *testing.T) {
	text := strings.Replace(istioRoute, "attempts: 8", "attempts: 8 # lint:ignore attempt-never-made it is what the mesh had", 1)
	r := checked(t, File{Name: "istio.yaml", Data: []byte("# lint:file-ignore budget-missing,breaker-cannot-trip the mesh has none\n" + text)})
	for _, f := range r.Findings {
		if ignored := f.Rule == "attempt-never-made" || f.Rule == "budget-missing" || f.Rule == "breaker-cannot-trip"; ignored != (f.Ignored != nil) && f.Rule != ruleDirective {
			t.Errorf("%+v", f)
		}
	}
}

// A mistake in a file of another system is one of that file alone.
func TestMistakesInFilesOfOtherSystems(t *testing.T) {
	r := checked(t, File{Name: "bad.yaml", Data: []byte(strings.Replace(istioRoute, "attempts: 8", "attempts: many", 1))},
		File{Name: "good.yaml", Data: []byte(strings.ReplaceAll(istioRoute, "payments", "stock"))})
	if !slices.Equal(r.Unreadable, []string{"bad.yaml"}) || !slices.Equal(r.Files, []string{"bad.yaml", "good.yaml"}) {
		t.Errorf("%v %v", r.Unreadable, r.Files)
	}
	if f := r.Findings[0]; f.Rule != ruleMistake || f.File != "bad.yaml" || f.Line != 10 {
		t.Errorf("%+v", f)
	}
	if !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.File == "good.yaml" }) {
		t.Errorf("good.yaml was not checked: %+v", r.Findings)
	}
}

// What lull convert makes of many methods with one policy has one finding for all of them.
func TestConvertedMethodsHaveOneFinding(t *testing.T) {
	var names []string
	for i := range 149 {
		names = append(names, fmt.Sprintf(`{"service": "a.B", "method": "M%d"}`, i))
	}
	out := must.Have(convert.Convert([]convert.File{{Name: "x.json", Data: []byte(`{"methodConfig": [{"name": [` + strings.Join(names, ",") + `], "timeout": "60s",
		"retryPolicy": {"initialBackoff": "0.1s", "maxBackoff": "60s", "backoffMultiplier": 1.3, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`)}}, convert.Lull, convert.Options{GAPIC: true}))
	seen := map[string]int{}
	for _, f := range checked(t, File{Name: "policies.yaml", Data: out.Data}).Findings {
		if seen[f.Rule]++; seen[f.Rule] > 1 {
			t.Errorf("%s once more: line %d, %s", f.Rule, f.Line, f.Message)
		}
	}
	if len(seen) == 0 {
		t.Error("nothing is found in policies without a budget")
	}
}

// Of files in a directory only those are read that are policies; what is skipped is listed, and none is an
// error. One that was named is, unless it is a template or an object of Kubernetes that is about something else.
func TestOtherPeoplesFiles(t *testing.T) {
	const (
		virtual = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a}\nspec:\n  http:\n  - route: [{destination: {host: a}}]\n"
		nothing = "nothing in it says how calls are made"
		aside   = "it is a template"
		broken  = "it cannot be read: "
	)
	for text, want := range map[string]struct{ found, named string }{
		"openapi: 3.1.0\ninfo: {title: x}\npaths: {/a: {get: {responses: {}}}}\n":                                                       {nothing, "mistake"},
		"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {names: {kind: Retry}}\n":                           {nothing, nothing},
		"- op: replace\n  path: /spec/http/0/timeout\n  value: 3s\n":                                                                    {nothing, "mistake"},
		"apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a}\nspec: {http: [{route: [{destination: {}}]}]}\n": {broken, "mistake"}, // a patch
		"apiVersion: v2\nname: chart\ndependencies: [{name: redis, version: 1.2.3}]\n":                                                  {nothing, nothing},
		virtual + "    timeout: ${TIMEOUT}\n":                                                                                           {broken, "mistake"},
		virtual + "    timeout: {{ .Values.timeout }}\n":                                                                                {aside, aside},
		virtual + "    timeout: \"{{ .Values.timeout }}\"\n":                                                                            {aside, aside},
		virtual + "    timeout: 3s\n    name: '{{ include \"x\" . }}'\n":                                                                {aside, aside},
		virtual + "    {{- if .Values.timeout }}\n    timeout: 3s\n    {{- end }}\n":                                                    {aside, aside},
		virtual + "{% if timeout %}\n    timeout: 3s\n{% endif %}\n":                                                                    {aside, aside},
		"# {{ see the manual }}\n" + virtual + "    timeout: 3s\n":                                                                      {"", ""},
		"# {{ see the manual }}\ndependencies: [\n":                                                                                     {"mistake", "mistake"},
		"apiVersion: v1\nkind: ConfigMap\ndata: {greeting: 'Hello {{ name }}', x.yaml: \"a: b\"}\n":                                     {nothing, nothing},
		"apiVersion: v1\nkind: ConfigMap\ndata:\n  deps.yaml: |\n    dependencies: {flutter: {sdk: flutter}}\n":                         {nothing, nothing},
		"apiVersion: v1\nkind: ConfigMap\ndata:\n  t.yaml: |\n    resilience4j.retry.instances: {a: {maxAttempts: {{ .Values.n }}}}\n":  {nothing, nothing},
		"server: {port: 8080}\nspring: {application: {name: x}}\n":                                                                      {nothing, nothing},
		"a: [\n": {broken + "line 2: ", "mistake"},
		"// a comment\n{\"compilerOptions\": {}}\n":                           {broken, "mistake"},
		"name: x\nspec: {timeout: 3s}\n---\n" + virtual + "    timeout: 3s\n": {"", ""},
		"dependencies: {flutter: {sdk: flutter}}\n":                           {nothing, "mistake"},
		"# nothing\n": {nothing, "mistake"},
		"apiVersion: v1\nkind: Service\n---\na: b\n":                                  {nothing, "the document in line 3 is nothing"},
		"apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {name: x}\n":    {nothing, nothing},
		"name: stall\nhorizon: 6m\nservices: [{name: api, workers: 3}]\nfleets: []\n": {nothing, "mistake"},
	} {
		for _, found := range []bool{true, false} {
			r := checked(t, File{Name: "x.yaml", Data: []byte(text), Found: found})
			wanted, got := want.named, ""
			if found {
				wanted = want.found
			}
			switch {
			case len(r.Unreadable) > 0:
				got = "mistake"
			case len(r.Skipped) == 1:
				got = r.Skipped[0].Why
			}
			if !strings.HasPrefix(got, wanted) || wanted == "" && got != "" || wanted == "mistake" && len(r.Skipped) > 0 {
				t.Errorf("found %v: %q, want %q of\n%s", found, got, wanted, text)
			}
		}
	}
	skipped := checked(t, File{Name: "x.yaml", Data: []byte("a: b"), Found: true})
	check.Equal(t, printed(t, skipped.Text), "nothing found in 0 files; 1 skipped\nskipped: x.yaml: "+nothing+"\n", "printed(t, skipped.Text)")
}

// Files of other systems within a ConfigMap are checked as if they were files, at their places.
func TestOtherSystemsInConfigMaps(t *testing.T) {
	for _, inner := range []string{
		"resilience4j.retry.instances:\n  stock: {maxAttempts: 50, waitDuration: 10s}\n",
		"spring.application.name: x\n---\nresilience4j.retry.instances:\n  stock: {maxAttempts: 50, waitDuration: 10s}\n",
		"{\"methodConfig\": [{\"name\": [{\"service\": \"s\"}], \"retryPolicy\": {\"maxAttempts\": 5, \"initialBackoff\": \"0.1s\", \"maxBackoff\": \"1s\",\n \"backoffMultiplier\": 2, \"retryableStatusCodes\": [\"UNAVAILABLE\"]}}]}\n",
		"virtual_hosts:\n- name: all\n  domains: ['*']\n  routes: [{match: {prefix: /}, route: {cluster: stock, timeout: 0s,\n    retry_policy: {retry_on: 5xx, num_retries: 50}}}]\n",
		istioRoute,
	} {
		alone := checked(t, File{Name: "x.yaml", Data: []byte(inner)})
		if len(alone.Findings) == 0 {
			t.Fatalf("nothing is found in\n%s", inner)
		}
		const before = "apiVersion: apps/v1\nkind: Deployment\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  a.txt: b\n  file.yaml: |\n"
		within := checked(t, File{Name: "x.yaml", Data: []byte(before + movedRight(inner, 4)), Found: true})
		check.Slices(t, spots(within, -strings.Count(before, "\n"), -4), spots(alone, 0, 0), "%s", inner)
		quoted := checked(t, File{Name: "x.yaml", Data: []byte("apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, data: {file.yaml: " + fmt.Sprintf("%q", inner) + "}}\n")})
		check.Equal(t, len(quoted.Findings), len(alone.Findings), "findings in quotes of\n%s", inner)
		for _, f := range quoted.Findings {
			check.Equal(t, f.Line, 4, "line of %s", f.Message)
		}
	}
}
