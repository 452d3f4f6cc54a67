package lint

import (
	"io"
	"testing"
)

// Every file can be checked and printed.
func FuzzCheck(f *testing.F) {
	for _, r := range Rules() {
		f.Add([]byte(r.Bad))
		f.Add([]byte(r.Good))
	}
	for _, text := range filesOf(f, "../../../docs/examples/policies/*/*.yaml", "testdata/systems/*") {
		f.Add([]byte(text))
	}
	f.Add([]byte("dependencies: {a: {attempts: 1000, attempt_timeout: 2562047h, deadline: none, backoff: {base: 2562047h, cap: 2562047h}}}\nservices: {a: {slo: 1ns, visibility: 1ns, calls: [{dependency: a, times: 10000}, a]}}\n"))
	f.Add([]byte(istioRoute + "---\n" + shopGraph + "---\napiVersion: v1\nkind: ConfigMap\ndata:\n  a: |2\n      attempts: 3\n  b: \"attempts: 3\"\n"))
	f.Add([]byte("--- {attempts: 3, backoff: {jitter: none}}\n--- |\n text\n...\n---\nattempts: x\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Check([]File{{Name: "a.yaml", Data: data}, {Name: "b.yaml", Data: data}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, write := range []func(io.Writer) error{
			r.Text, r.GitHub, r.GitLab, r.JSON,
			func(w io.Writer) error { return r.JUnit(w, Warning) },
			func(w io.Writer) error { return r.SARIF(w, "") },
		} {
			printed(t, write)
		}
		for _, found := range r.Findings {
			if found.Line < 1 || found.Column < 1 || found.Line > len(split(data)) || found.Message == "" || found.Fix.Text == "" {
				t.Errorf("%+v", found)
			}
		}
	})
}
