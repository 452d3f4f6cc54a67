//go:build servers

package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/pace"
	"github.com/lullgo/lull/lab/torture"
)

// TestMain is the adapter when a case has started this program as one. Clients wait more than they work.
func TestMain(m *testing.M) {
	if os.Getenv("LULL_TORTURE_CA") != "" {
		main()
		return
	}
	pace.Overlap(48)
	os.Exit(m.Run())
}

type label struct {
	name, client, why string
	grade             torture.Grade
}

func readLabels(t *testing.T) map[string][]label {
	text := must.Have(os.ReadFile("labels.txt"))
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
	script := must.Have(filepath.Abs("../" + name + ".sh"))
	c := must.Have(torture.Command(name, []string{"sh", script, "{url}", "{method}", "{body-file}", "{timeout-ms}", "{key}"}))
	return c
}

// group returns which labels are compared in one run. Those that take long have runs of their own, beside each other.
func (l label) group() string {
	switch {
	case l.name == "hint-day" || l.name == "deadline-none":
		return endless
	case l.name == "status-always" || strings.HasPrefix(l.name, "wait-"):
		return l.name
	}
	return "others"
}

var whole = flag.Bool("whole", false, "also see go-retryablehttp wait for a quarter of a minute (status-always)")

// endless is the group of cases in which some clients wait for as long as they may.
const endless = "endless"

// No verdict differs from its label.
func TestTheVerdictsAreThoseOfTheLabels(t *testing.T) {
	t.Parallel()
	for name, labels := range readLabels(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := clientNamed(t, name)
			groups := map[string][]label{}
			for _, l := range labels {
				groups[l.group()] = append(groups[l.group()], l)
			}
			for group, labels := range groups {
				if testing.Short() && group != "others" || name == "go-retryablehttp" && group == "status-always" && !*whole {
					continue
				}
				o := torture.Options{}
				if group == endless {
					o.Limit = 5 * time.Second
				}
				t.Run(group, func(t *testing.T) {
					t.Parallel()
					compare(t, client, labels, o)
				})
			}
		})
	}
}

// compare grades a client, and compares the verdicts with the labels.
func compare(t *testing.T, client torture.Client, labels []label, o torture.Options) {
	var names []string
	want := map[string]label{}
	for _, l := range labels {
		names = append(names, l.name)
		want[l.name] = l
	}
	o.Cases = must.Have(torture.Select(names))
	card := must.Have(torture.Run(t.Context(), client, o))
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

// The adapters of this module speak the protocol.
func TestTheProtocol(t *testing.T) {
	t.Parallel()
	program := must.Have(os.Executable())
	client := must.Have(torture.Command("go-retryablehttp", []string{program, "go-retryablehttp"}))
	cases := must.Have(torture.Select([]string{"status-503", "body-post-key", "deadline-silent", "connection-calls", "connection-tls"}))
	card := must.Have(torture.Run(t.Context(), client, torture.Options{Cases: cases}))
	for _, r := range card.Results {
		check.Equal(t, r.Grade, torture.Pass, "%s: %s", r.Case, r.Why)
	}
}
