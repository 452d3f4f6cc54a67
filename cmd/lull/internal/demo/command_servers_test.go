//go:build servers

package demo

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/pace"
)

// TestMain has the demos wait beside each other.
func TestMain(m *testing.M) {
	pace.Overlap(4)
	os.Exit(m.Run())
}

// short runs are over in 2 s, and ask little of the machine.
var short2s = []string{"demo", "--duration=2s", "--timeout=100ms", "--outage=300ms", "--capacity=50"}

// On real sockets all figures must be there and agree with one another. Their values depend
// on how busy this machine is; tests in virtual time check them.
func TestStormOnRealSockets(t *testing.T) {
	t.Parallel()
	got := must.Have(runDemo(t.Context(), parse(t, short2s[1:]...), &plain{out: t.Output()}))
	check.Equal(t, len(got.retriers), len(stormClients), "clients")
	for i, f := range got.retriers {
		if f.Name != stormClients[i].name || f.Calls == 0 || f.Attempts == 0 || f.PeakRPS == 0 || f.Amplification > 3 || i == 0 && f.Amplification > 1 ||
			f.SuccessRate > 1 || f.P50 > f.P99 || f.Recovery < 0 {
			t.Errorf("figures disagree: %+v", f)
		}
	}
}

func TestTailOnRealSockets(t *testing.T) {
	t.Parallel()
	got := must.Have(runDemo(t.Context(), parse(t, "--scenario=tail", "--duration=3s", "--capacity=120", "--queue=1000"), &plain{out: t.Output()}))
	var names []string
	for _, f := range got.hedgers {
		names = append(names, f.Name)
		// A machine that stands still for the whole of a part has no calls to show for it, and reports how late it was.
		if f.After == nil || f.Whole == nil || (f.Before == nil || f.Slow == nil) && got.late.p99() < got.setting.Outage/2 {
			t.Fatalf("%s: parts are missing in %+v", f.Name, f)
		}
		calls := 0
		for _, part := range []*periodFigures{f.Before, f.Slow, f.After} {
			if part != nil {
				calls += part.Calls
			}
		}
		if f.Whole.Calls+got.unfinished < f.Calls || f.Whole.Calls > f.Calls || calls > f.Calls || f.Attempts == 0 {
			t.Errorf("%s: the parts do not agree: %+v", f.Name, f)
		}
		if f.Whole.AttemptsPerCall < 1 || f.Whole.AttemptsPerCall > 2 || f.Name == "no hedging" && (f.Whole.AttemptsPerCall != 1 || f.Whole.WorstSecond != 0) {
			t.Errorf("%s: %v requests a call, an extra load of %v", f.Name, f.Whole.AttemptsPerCall, f.Whole.WorstSecond)
		}
		if f.Name != "lull" && f.Whole.HeldBack != 0 {
			t.Errorf("%s has held back %d", f.Name, f.Whole.HeldBack)
		}
	}
	if want := []string{"no hedging", "naive", "lull"}; !slices.Equal(names, want) {
		t.Fatalf("clients %v, want %v", names, want)
	}
	// A request takes longer than its delay, however busy the machine is.
	if naive := got.hedgers[1]; naive.Slow != nil && naive.Slow.AttemptsPerCall < 1.5 {
		t.Errorf("while everything takes 350 ms and more, the naive client makes %v requests a call after 20 ms", naive.Slow.AttemptsPerCall)
	}
}

func TestOutputHasNoEscapesUnlessOnATerminal(t *testing.T) {
	for _, c := range []struct{ args, want []string }{
		{append(short2s, "--clients=immediate,lull", "--kind=errors"), []string{"   2 s", "immediate", "lull", "What the figures mean", "seed 1"}},
		{[]string{"demo", "--scenario=tail", "--duration=2s", "--capacity=60", "--clients=naive,lull", "--plain"},
			[]string{"   1 s!", "   2 s", "extra fail", "naive", "hedge.Config{Attempts: 2}", "What the figures mean", "seed 1"}},
	} {
		t.Run(c.want[1], func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := lullProgram(t.Context(), c.args...)
			if code != cli.OK || stderr != "" {
				t.Errorf("exit code %d, stderr %q", code, stderr)
			}
			if strings.ContainsRune(stdout, '\x1b') {
				t.Errorf("escape codes in\n%q", stdout)
			}
			for _, part := range c.want {
				if !strings.Contains(stdout, part) {
					t.Errorf("no %q in\n%s", part, stdout)
				}
			}
		})
	}
}

// What was measured until then is printed, and is no success.
func TestRule24InterruptedRunPrintsWhatItHas(t *testing.T) {
	for _, c := range []struct{ client, args string }{
		{"full jitter", "demo --duration=10m --outage=5m --capacity=50"}, {"no hedging", "demo --scenario=tail --duration=10m --capacity=50"},
	} {
		t.Run(c.client, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
			defer cancel()
			code, stdout, stderr := lullProgram(ctx, strings.Fields(c.args)...)
			if code != cli.Failed || !strings.HasPrefix(stderr, "lull: interrupted: ") {
				t.Errorf("exit code %d, stderr %q", code, stderr)
			}
			if !strings.Contains(stdout, "Interrupted after") || !strings.Contains(stdout, "too early to tell") || !strings.Contains(stdout, c.client) {
				t.Errorf("printed\n%s", stdout)
			}
		})
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
