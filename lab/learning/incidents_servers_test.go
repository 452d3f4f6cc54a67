//go:build servers

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/scenario"
)

// A short incident on sockets: nginx has logged each attempt and the callers have counted their calls, and lull learns from both.
func TestIncident(t *testing.T) {
	for path, how := range map[string]string{nginxProgram: "install nginx", prometheusProgram(): "run .ci/install-prometheus"} {
		if _, err := exec.LookPath(path); err != nil && os.Getenv("CI") != "" {
			t.Fatalf("%s: %v", how, err)
		} else if err != nil {
			t.Skipf("%s: %v", how, err)
		}
	}
	folder := t.TempDir()
	policies := must.Have(config.ParsePolicyFile("policies.yaml", []byte(policyFile))).Dependencies
	s := incidents()[3]
	check.Equal(t, s.Name, "errors", "the incident")
	s.Horizon = 15 * time.Second
	s.Services[0].Faults[0].At, s.Services[0].Faults[0].For = 6*time.Second, 3*time.Second
	r := live(t.Context(), s, policies[0].Policy, 1, folder)
	if r.succeeded < 0.5 || r.succeeded > 0.99 || r.attempts <= 1 {
		t.Errorf("%.3f of the calls succeeded, with %.3f attempts each: there was no incident", r.succeeded, r.attempts)
	}
	lines := bytes.Count(must.Have(os.ReadFile(filepath.Join(folder, "access.log"))), []byte("\n"))
	if got := float64(lines) / r.attempts / 150 / s.Horizon.Seconds(); got < 0.8 || got > 1.2 {
		t.Errorf("nginx has logged %d requests, of about 150 calls a second with %.3f attempts each", lines, r.attempts)
	}
	prometheus, address := startPrometheus(folder, nil)
	defer prometheus.Kill()
	learned, l, err := learn(t.Context(), folder, filepath.Join(folder, "access.log"), address, "--from", r.from.Format(time.RFC3339), "--to", r.to.Format(time.RFC3339))
	if err != nil || len(learned.Services) != 1 || learned.Services[0].Name != "api" || learned.Fleets[0].Processes != 8 {
		t.Fatalf("%v, services %+v, fleets %+v", err, learned.Services, learned.Fleets)
	}
	i := slices.IndexFunc(l.Values, func(v scenario.Interval) bool { return v.Path == "fleets.0.arrivals.rate" })
	if i < 0 || !strings.Contains(l.Values[i].By, " calls in ") {
		t.Errorf("the rate is not that of calls, as the callers have counted them: %+v", l.Values)
	}
}
