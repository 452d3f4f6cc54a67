//go:build servers

package demo

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
)

// short runs are over in 2 s, and ask little of the machine.
var short2s = []string{"demo", "--duration=2s", "--timeout=100ms", "--outage=300ms", "--capacity=50"}

func TestJSON(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := lullProgram(t.Context(), append(short2s, "--json")...)
	if code != cli.OK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var got struct {
		Setting map[string]any
		Clients []map[string]any
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatalf("%v in\n%s", err, stdout)
	}
	if got.Setting["duration_ms"] != 2000.0 || got.Setting["seed"] != 1.0 || got.Setting["outage_ms"] != 300.0 {
		t.Errorf("setting %v", got.Setting)
	}
	var names []string
	for _, c := range got.Clients {
		name, _ := c["name"].(string)
		names = append(names, name)
		checkFigures(t, name, c)
	}
	if want := []string{"no retry", "immediate", "fixed interval", "exponential", "full jitter", "lull"}; !slices.Equal(names, want) {
		t.Errorf("clients %v, want %v", names, want)
	}
}

// checkFigures checks the keys of one client, and that the figures agree.
func checkFigures(t *testing.T, name string, c map[string]any) {
	t.Helper()
	keys := []string{"calls", "attempts", "amplification", "normal_rps", "peak_rps", "peak_ratio", "success_rate", "p50_ms", "p99_ms"}
	v := map[string]float64{}
	for _, k := range keys {
		n, ok := c[k].(float64)
		if !ok || n < 0 {
			t.Errorf("%s: %s is %v, want a number", name, k, c[k])
		}
		v[k] = n
	}
	if r, ok := c["recovery_ms"]; !ok {
		t.Errorf("%s: no recovery_ms", name)
	} else if n, isNumber := r.(float64); r != nil && (!isNumber || n < 0) {
		t.Errorf("%s: recovery_ms is %v, want a number or null", name, r)
	}
	if len(c) != len(keys)+2 {
		t.Errorf("%s: %d keys, want %d: %v", name, len(c), len(keys)+2, c)
	}
	if v["calls"] == 0 || v["attempts"] == 0 {
		t.Errorf("%s: %v calls, %v attempts", name, v["calls"], v["attempts"])
	}
	if math.Abs(v["amplification"]-v["attempts"]/v["calls"]) > 0.0001 {
		t.Errorf("%s: amplification %v of %v attempts and %v calls", name, v["amplification"], v["attempts"], v["calls"])
	}
	if v["amplification"] > 3 || name == "no retry" && v["amplification"] > 1 {
		t.Errorf("%s: amplification %v is more than its attempts allow", name, v["amplification"])
	}
	if v["success_rate"] > 1 || v["p50_ms"] > v["p99_ms"] || v["peak_rps"] == 0 {
		t.Errorf("%s: figures disagree: %v", name, c)
	}
	if v["normal_rps"] > 0 && math.Abs(v["peak_ratio"]-v["peak_rps"]/v["normal_rps"]) > 0.02*(1+v["peak_ratio"]) {
		t.Errorf("%s: a peak of %v is not %v of %v", name, v["peak_rps"], v["peak_ratio"], v["normal_rps"])
	}
}

func TestOutputHasNoEscapesUnlessOnATerminal(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := lullProgram(t.Context(), append(short2s, "--clients=immediate,lull", "--kind=errors")...)
	if code != cli.OK || stderr != "" {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
	if strings.ContainsRune(stdout, '\x1b') {
		t.Errorf("escape codes in\n%q", stdout)
	}
	for _, part := range []string{"   2 s", "immediate", "lull", "What the figures mean", "seed 1"} {
		if !strings.Contains(stdout, part) {
			t.Errorf("no %q in\n%s", part, stdout)
		}
	}
}

// What was measured until then is printed, and is no success.
func TestRule24InterruptedRunPrintsWhatItHas(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer cancel()
	code, stdout, stderr := lullProgram(ctx, "demo", "--duration=10m", "--outage=5m", "--capacity=50")
	if code != cli.Failed || !strings.HasPrefix(stderr, "lull: interrupted: ") {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
	if !strings.Contains(stdout, "Interrupted after") || !strings.Contains(stdout, "too early to tell") || !strings.Contains(stdout, "full jitter") {
		t.Errorf("printed\n%s", stdout)
	}
}

// stopper interrupts a run as soon as every client has calls under way.
type stopper struct {
	interrupt context.CancelFunc
}

func (s stopper) show(shot snapshot) {
	for _, l := range shot.lanes {
		if shot.phase() != during || l.queue == 0 {
			return
		}
	}
	s.interrupt()
}

func (stopper) end(snapshot) {}

// An interrupted run must not wait for calls that a frozen backend never answers.
func TestInterruptedDuringTheOutage(t *testing.T) {
	t.Parallel()
	s := tenSeconds()
	s.OutageAt, s.Outage, s.Timeout, s.Duration = 10*ms, time.Hour, time.Hour, 2*time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := runDemo(ctx, s, stopper{cancel})
	if err != nil || !r.interrupted {
		t.Fatalf("interrupted %v, error %v", r.interrupted, err)
	}
	if r.unfinished < len(stormClients) {
		t.Errorf("%d calls were under way, though nobody answered any", r.unfinished)
	}
}
