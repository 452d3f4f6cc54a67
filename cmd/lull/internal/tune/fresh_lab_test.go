//go:build lab

package tune

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/battery"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

// In worlds that are drawn, what is proposed is no worse than the zero policy in 95 % of them, and better in the learned one.
// The worlds are judged with other seeds than those of the choice, with their own distributions, and in the battery's peaces.
func TestProposalsAreNoWorseThanTheZeroPolicy(t *testing.T) {
	n, seed := 26, uint64(51)
	if v := os.Getenv("LULL_TUNE_WORLDS"); v != "" { // such as 60@53
		count, of, _ := strings.Cut(v, "@")
		n, seed = must.Have(strconv.Atoi(count)), must.Have(strconv.ParseUint(of, 10, 64))
	}
	made, worse, better := 0, 0, 0
	for _, w := range battery.Fresh(battery.Quick, seed, n) {
		start := time.Now()
		s := w.Scenario
		s.Services = append([]sim.Service(nil), s.Services...)
		for i := range s.Services {
			s.Services[i].Time = drawn(s.Services[i].Time, 20_000, seed+uint64(i))
		}
		f, err := factsOf(s, &scenario.Learned{})
		if err != nil {
			t.Fatal(w, err)
		}
		b := bench{battery.Trial{Seeds: 6, Patience: f.patience}, func(int, string) {}}
		if b.Worlds, _, _, err = f.around(); err != nil {
			t.Fatal(w, err)
		}
		d := must.Have(b.decide(t.Context(), lull.Policy{}, &f, goals{falseTimeouts: 0.001, hedgeLoad: 0.02}))
		if d.tuned == d.base {
			t.Logf("%s: keep, %d flights, %v", w, b.Flights, time.Since(start).Round(100*time.Millisecond))
			for _, r := range d.proposals {
				if r.Value != "" {
					t.Logf("    %s=%s %s", r.Field, r.Value, r.Verdict)
				}
			}
			continue
		}
		made++
		var fields []string
		for _, r := range d.proposals {
			if r.Kept {
				fields = append(fields, r.Field+"="+r.Value+" "+r.Verdict)
			}
		}
		judge := battery.Trial{Seeds: 6, Patience: f.patience, Shortest: b.Shortest}
		for k, own := range append([]sim.Scenario{w.Scenario}, w.Peace...) {
			own.Fleets = append([]sim.Fleet(nil), own.Fleets...)
			own.Fleets[f.fleet].AttemptTimeout = 0
			judge.Worlds = append(judge.Worlds, battery.World{Name: own.Name, Scenario: own, From: w.From, To: w.To, Stationary: w.Stationary || k > 0})
		}
		var wins, losses []string
		for k := range judge.Worlds {
			for _, diff := range must.Have(judge.Differences(t.Context(), d.tuned, d.base, k, 5001)) {
				switch {
				case diff.SurelyWorse():
					losses = append(losses, judge.Worlds[k].Name+": "+inWords(diff))
				case diff.Better() && k == 0:
					wins = append(wins, inWords(diff))
				}
			}
		}
		if losses != nil {
			worse++
		}
		if wins != nil {
			better++
		}
		t.Logf("%s: %s\n  learned: %s\n  WORSE: %s\n  %d flights, %v", w, strings.Join(fields, "\n    "), strings.Join(wins, "; "), strings.Join(losses, "; "), b.Flights, time.Since(start).Round(100*time.Millisecond))
	}
	text := fmt.Sprintf("%d worlds: a proposal in %d, better in the learned world in %d of them, worse somewhere in %d", n, made, better, worse)
	t.Log(text)
	if float64(worse) > 0.05*float64(n) || better < made-worse {
		t.Error(text)
	}
}

// drawn is a histogram of n times.
func drawn(d sim.Distribution, n int, seed uint64) sim.Distribution {
	r := rand.New(rand.NewPCG(seed, 7))
	return histogramOf(n, func() time.Duration {
		switch d.Kind {
		case sim.Exponential:
			return time.Duration(r.ExpFloat64() * float64(d.Mean))
		case sim.LogNormal:
			return time.Duration(math.Exp(math.Log(float64(d.Mean)) - d.Sigma*d.Sigma/2 + d.Sigma*r.NormFloat64()))
		}
		return d.Mean
	})
}
