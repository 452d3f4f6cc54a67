package lint

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every file can be checked and printed.
func FuzzCheck(f *testing.F) {
	for _, r := range Rules() {
		f.Add([]byte(r.Bad))
		f.Add([]byte(r.Good))
	}
	examples, err := filepath.Glob(filepath.Join("..", "..", "..", "docs", "examples", "policies", "*", "*.yaml"))
	if err != nil || len(examples) == 0 {
		f.Fatalf("no examples: %v", err)
	}
	systems, err := filepath.Glob("testdata/systems/*")
	if examples = append(examples, systems...); err != nil || len(systems) == 0 {
		f.Fatalf("no files of other systems: %v", err)
	}
	for _, name := range examples {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("dependencies: {a: {attempts: 1000, attempt_timeout: 2562047h, deadline: none, backoff: {base: 2562047h, cap: 2562047h}}}\nservices: {a: {slo: 1ns, visibility: 1ns, calls: [{dependency: a, times: 10000}, a]}}\n"))
	f.Add([]byte(istioRoute + "---\n" + shopGraph + "---\napiVersion: v1\nkind: ConfigMap\ndata:\n  a: |2\n      attempts: 3\n  b: \"attempts: 3\"\n"))
	f.Add([]byte("--- {attempts: 3, backoff: {jitter: none}}\n--- |\n text\n...\n---\nattempts: x\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Check([]File{{Name: "a.yaml", Data: data}, {Name: "b.yaml", Data: data}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		allFormats(t, r)
		for _, found := range r.Findings {
			if found.Line < 1 || found.Column < 1 || found.Line > len(split(data)) || found.Message == "" || found.Fix.Text == "" {
				t.Errorf("%+v", found)
			}
		}
	})
}

func allFormats(t *testing.T, r Report) {
	t.Helper()
	if err := r.Text(io.Discard); err != nil {
		t.Error(err)
	}
	if err := r.GitHub(io.Discard); err != nil {
		t.Error(err)
	}
	if err := r.GitLab(io.Discard); err != nil {
		t.Error(err)
	}
	if err := r.JUnit(io.Discard, Warning); err != nil {
		t.Error(err)
	}
	var b strings.Builder
	if err := r.JSON(&b); err != nil || !json.Valid([]byte(b.String())) {
		t.Errorf("JSON: %v", err)
	}
	b.Reset()
	if err := r.SARIF(&b, ""); err != nil || !json.Valid([]byte(b.String())) {
		t.Errorf("SARIF: %v", err)
	}
}

// Nothing panics at policies and graphs of all kinds.
func FuzzFindings(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 0))
		for range 5 {
			for _, found := range findings(randomFile(r)) {
				if found.Message == "" || found.Fix.Text == "" || strings.Contains(found.Message+found.Fix.Text, "%!") {
					t.Errorf("%+v", found)
				}
			}
		}
	})
}
