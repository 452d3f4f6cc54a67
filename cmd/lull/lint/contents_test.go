package lint

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

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
	if got, want := printed(t, skipped.Text), "nothing found in 0 files; 1 skipped\nskipped: x.yaml: "+nothing+"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
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
		if got, want := spots(within, -strings.Count(before, "\n"), -4), spots(alone, 0, 0); !slices.Equal(got, want) {
			t.Errorf("%q, want %q of\n%s", got, want, inner)
		}
		quoted := checked(t, File{Name: "x.yaml", Data: []byte("apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, data: {file.yaml: " + fmt.Sprintf("%q", inner) + "}}\n")})
		if len(quoted.Findings) != len(alone.Findings) {
			t.Errorf("%d in quotes, want %d of\n%s", len(quoted.Findings), len(alone.Findings), inner)
		}
		for _, f := range quoted.Findings {
			if f.Line != 4 {
				t.Errorf("line %d of %s", f.Line, f.Message)
			}
		}
	}
}
