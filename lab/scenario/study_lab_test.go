//go:build lab

package scenario

import (
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/check"
	"testing"
	"time"

	"github.com/lullgo/lull/lab/sim"
)

func TestStudyDecorrelatedAtTheCap(t *testing.T) {
	if testing.Short() {
		t.Skip("not short: statistics on one goroutine")
	}
	for _, c := range []struct {
		cap         time.Duration
		least, most float64 // of the first wave over that of full jitter
	}{{200 * time.Millisecond, 2.5, 4}, {time.Second, 0.3, 0.6}} {
		all := flown(t, studied(t, "cap").WithProcesses(5000), "cap", 1, func(p *config.NamedPolicy) { p.Policy.Backoff.Cap = c.cap })
		wave := func(name string) float64 {
			return mean(all[name], func(r sim.Result) float64 {
				most := 0.0
				for _, x := range r.Series.Retries {
					most = max(most, x)
				}
				return most
			})
		}
		wantBetween(t, "largest wave with a cap of "+c.cap.String()+", decorrelated over full", wave("decorrelated")/wave("full"), c.least, c.most)
	}
}

func TestStudyPlayers(t *testing.T) {
	if testing.Short() {
		t.Skip("not short: statistics on one goroutine")
	}
	all := flown(t, studied(t, "players").WithProcesses(250_000), "players", 1, nil)
	peak := func(name string) float64 { return all[name].PeakOverNormal.Mean }
	wantBetween(t, "exact", peak("exact-2s"), 1.9, 2.1)
	wantBetween(t, "fixed", peak("fixed-100ms"), 1.9, 2.1)
	wantBetween(t, "spread", peak("1s-to-5s"), 1, 1.1)
	wantBetween(t, "a cap for each key", peak("per-key"), 1, peak("1s-to-5s"))
	wantBetween(t, "calls lost with it", float64(all["per-key"].Results[0].Totals.Calls-all["per-key"].Results[0].Totals.Succeeded), 0, 0)
	lost := mean(all["none"], func(r sim.Result) float64 { return float64(r.Totals.Calls-r.Totals.Succeeded) / 250_000 })
	wantBetween(t, "share of players hit", lost, 0.024, 0.026)
}

func TestStudyJitterDoesNotHelpAQueueThatHasCollapsed(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not short: statistics on one goroutine")
	}
	four := func(p *config.NamedPolicy) { p.Policy.Attempts = 4 }
	all := flown(t, studied(t, "metastable-stall"), "jitters", 1, four)
	for name, m := range all {
		check.Equal(t, m.Recovered == 1, name == "none", "%s recovered", name)
	}
	wantBetween(t, "no retry is back after", all["none"].Recovery.Mean, 28, 45)
	for _, cure := range []string{"shed-queue", "lifo", "expired-work-dropped"} {
		full := flown(t, studied(t, cure), "jitters", 1, four)["full"]
		if full.Recovered != 1 {
			t.Errorf("%s: full jitter did not recover", cure)
			continue
		}
		wantBetween(t, cure+": full jitter is back after", full.Recovery.Mean, 0, 5)
	}
}
