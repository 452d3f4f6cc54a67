//go:build servers

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// A short incident on sockets: nginx has logged each attempt, and lull learns from its log.
func TestIncident(t *testing.T) {
	for path, how := range map[string]string{nginxProgram: "install nginx", prometheusProgram(): "run .ci/install-prometheus"} {
		if _, err := exec.LookPath(path); err != nil && os.Getenv("CI") != "" {
			t.Fatalf("%s: %v", how, err)
		} else if err != nil {
			t.Skipf("%s: %v", how, err)
		}
	}
	folder := t.TempDir()
	options.folder = folder
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
	learned, _, err := learn(t.Context(), folder, filepath.Join(folder, "access.log"))
	if err != nil || len(learned.Services) != 1 {
		t.Errorf("%v, %d services", err, len(learned.Services))
	}
}
