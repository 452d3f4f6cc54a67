package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/pace"
	"github.com/lullgo/lull/torture"
)

// TestMain: clients wait more than they work.
func TestMain(m *testing.M) {
	pace.Overlap(8)
	os.Exit(m.Run())
}

type label struct {
	name, client, why string
	grade             torture.Grade
}

func readLabels(t *testing.T) map[string][]label {
	text, err := os.ReadFile("labels.txt")
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string][]label{}
	n := 0
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 4 {
			t.Fatalf("labels.txt:%d: %d fields, want 4", i+1, len(f))
		}
		labels[f[0]] = append(labels[f[0]], label{f[1], f[0], f[3], torture.Grade(f[2])})
		n++
	}
	if n < 40 {
		t.Fatalf("%d labels, want at least 40", n)
	}
	return labels
}

// clientNamed returns a client of this module, or one of the scripts beside it.
func clientNamed(t *testing.T, name string) torture.Client {
	if make, ok := clients[name]; ok {
		return torture.HTTP(name, make)
	}
	if _, err := exec.LookPath(name); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is missing: apt-get install %[1]s", name)
		}
		t.Skipf("%s is missing: apt-get install %[1]s", name)
	}
	script, err := filepath.Abs("../" + name + ".sh")
	if err != nil {
		t.Fatal(err)
	}
	c, err := torture.Command(name, []string{"sh", script, "{url}", "{method}", "{body-file}", "{timeout-ms}", "{key}"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// constant reports whether the label is that waits are not drawn at random.
func (l label) constant() bool { return l.name == "wait-jitter" && l.grade == torture.Warn }

// No verdict differs from its label.
func TestTheVerdictsAreThoseOfTheLabels(t *testing.T) {
	t.Parallel()
	for name, labels := range readLabels(t) {
		labels = slices.DeleteFunc(labels, func(l label) bool {
			return l.constant() || testing.Short() && (strings.HasPrefix(l.name, "wait-") || l.name == "hint-day" || l.name == "deadline-none" || l.name == "status-always")
		})
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compare(t, name, labels)
		})
	}
}

func TestConstantWaits(t *testing.T) { // not beside others: a busy machine adds time to waits, at random
	if testing.Short() {
		t.Skip("not short: measures waits")
	}
	measured := 0
	for name, labels := range readLabels(t) {
		labels = slices.DeleteFunc(labels, func(l label) bool { return !l.constant() })
		if len(labels) > 0 {
			measured++
			compare(t, name, labels)
		}
	}
	if measured == 0 {
		t.Error("no client is labelled so")
	}
}

// compare grades a client, and compares the verdicts with the labels.
func compare(t *testing.T, name string, labels []label) {
	client := clientNamed(t, name)
	var names []string
	want := map[string]label{}
	for _, l := range labels {
		names = append(names, l.name)
		want[l.name] = l
	}
	cases, err := torture.Select(names)
	if err != nil {
		t.Fatal(err)
	}
	card, err := torture.Run(t.Context(), client, torture.Options{Cases: cases})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range card.Results {
		if strings.HasPrefix(r.Why, "the machine was too busy") {
			t.Logf("%s: %s", r.Case, r.Why)
			continue
		}
		if w := want[r.Case]; r.Grade != w.grade {
			t.Errorf("%s is %s (%s), want %s: %s", r.Case, r.Grade, r.Why, w.grade, w.why)
			for _, e := range r.Events[:min(len(r.Events), 20)] {
				t.Logf("%8.3f call %d: %s", e.At.Seconds(), e.Call, e.Text)
			}
		}
	}
}

// The adapters of this module are built and speak the protocol.
func TestTheProtocol(t *testing.T) {
	if testing.Short() {
		t.Skip("not short: it builds the adapter")
	}
	t.Parallel()
	program := filepath.Join(t.TempDir(), "go-clients.exe")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	client, err := torture.Command("go-retryablehttp", []string{program, "go-retryablehttp"})
	if err != nil {
		t.Fatal(err)
	}
	cases, err := torture.Select([]string{"status-503", "body-post-key", "deadline-silent", "connection-calls", "connection-tls"})
	if err != nil {
		t.Fatal(err)
	}
	card, err := torture.Run(t.Context(), client, torture.Options{Cases: cases})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range card.Results {
		if r.Grade != torture.Pass {
			t.Errorf("%s is %s: %s", r.Case, r.Grade, r.Why)
		}
	}
}
