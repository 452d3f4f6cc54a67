package scenario

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/sim"
)

// The study (lab/study/README.md) has the winners of each of its scenarios. This test checks them with
// fewer seeds and fewer clients, and with room for chance.

const studyFolder = "../study/"

// fixed is the preset of that name, as far as the bystanders of together-600 need
// it: their deadline ends their calls before the first wait is over.
var fixed = sim.Contender{Name: "fixed-100ms", Policy: lull.Policy{
	Backoff: backoff.Schedule{Kind: backoff.Constant, Jitter: backoff.None, Base: 100 * time.Millisecond},
	Budget:  budget.Config{Unlimited: true},
	Breaker: breaker.Config{Off: true},
}}

// studied is a scenario of the study, or a built-in one.
func studied(t *testing.T, name string) sim.Scenario {
	t.Helper()
	s, err := Read(studyFolder + name + ".yaml")
	if err != nil {
		s = must.Have(Find(name))
	}
	return s
}

// flown is the policies of a file flown through s, by name; "none" makes one
// attempt. change, if not nil, changes each policy first.
func flown(t *testing.T, s sim.Scenario, file string, seeds int, change func(*config.NamedPolicy)) map[string]sim.Summary {
	t.Helper()
	policies := must.Have(config.ReadPolicies(studyFolder + "policies/" + file + ".yaml"))
	one := policies[0]
	one.Name, one.Policy.Attempts = "none", 1
	cs := []sim.Contender{{Name: one.Name, Policy: one.Policy}}
	for _, p := range policies {
		if change != nil {
			change(&p)
		}
		cs = append(cs, sim.Contender{Name: p.Name, Policy: p.Policy})
	}
	all := must.Have(sim.Compare(context.Background(), s, cs, sim.CompareOptions{Seed: 1, Seeds: seeds, Named: []sim.Contender{fixed}}))
	byName := map[string]sim.Summary{}
	for _, m := range all {
		byName[m.Contender.Name] = m
	}
	return byName
}

// mean over the seeds.
func mean(m sim.Summary, of func(sim.Result) float64) float64 {
	sum := 0.0
	for _, r := range m.Results {
		sum += of(r)
	}
	return sum / float64(len(m.Results))
}

// peakFrom is the busiest step of attempts after a moment, per second.
func peakFrom(after time.Duration) func(sim.Result) float64 {
	return func(r sim.Result) float64 {
		most := 0.0
		for i := int(after / r.Series.Step); i < len(r.Series.First); i++ {
			most = max(most, r.Series.First[i]+r.Series.Retries[i])
		}
		return most
	}
}

func ended(reason string) func(sim.Result) float64 {
	return func(r sim.Result) float64 { return float64(r.Totals.Reasons[reason]) }
}

// wantBetween fails the test unless least <= got <= most.
func wantBetween(t *testing.T, what string, got, least, most float64) {
	t.Helper()
	t.Logf("%s: %.4g", what, got)
	if got < least || got > most {
		t.Errorf("%s: %.4g, the study says from %g to %g", what, got, least, most)
	}
}

func TestStudyFilesAreValid(t *testing.T) {
	scenarios, err := filepath.Glob(studyFolder + "*.yaml")
	if err != nil || len(scenarios) == 0 {
		t.Fatalf("%d scenarios, %v", len(scenarios), err)
	}
	for _, path := range scenarios {
		s := must.Have(Read(path))
		s = s.WithProcesses(10 * len(s.Fleets))
		if _, err := sim.Run(context.Background(), s, sim.Contender{Name: "lull"}, sim.Options{Seed: 1, Named: []sim.Contender{fixed}}); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	policies, err := filepath.Glob(studyFolder + "policies/*.yaml")
	if err != nil || len(policies) == 0 {
		t.Fatalf("%d policy files, %v", len(policies), err)
	}
	for _, path := range policies {
		must.Have(config.ReadPolicies(path))
	}
}

func TestStudyJitterRaisesThePeakOfCallersThatComeOneByOne(t *testing.T) {
	all := flown(t, studied(t, "one-by-one"), "jitters", 5, nil)
	peak := peakFrom(2200 * time.Millisecond)
	wantBetween(t, "no retry", mean(all["none"], peak), 499, 501)
	wantBetween(t, "no jitter", mean(all["exponential"], peak), 999, 1001)
	wantBetween(t, "equal jitter", mean(all["equal"], peak), 1150, 1450)
	wantBetween(t, "full jitter", mean(all["full"], peak), 1150, 1500)
	wantBetween(t, "fixed", mean(all["fixed"], peak), 1499, 1501)
}

func TestStudyJitterLowersThePeakOfCallersThatFailTogether(t *testing.T) {
	all := flown(t, studied(t, "together"), "jitters", 5, nil)
	peak := peakFrom(1200 * time.Millisecond)
	wantBetween(t, "no jitter", mean(all["exponential"], peak), 4379, 4381)
	wantBetween(t, "equal jitter", mean(all["equal"], peak), 2100, 2700)
	wantBetween(t, "full jitter", mean(all["full"], peak), 1450, 1950)
}

func TestStudyJitterSavesTheCohortAtTheCostOfOthers(t *testing.T) {
	all := flown(t, studied(t, "together-600"), "jitters", 5, nil)
	cohort, others := ended("attempts_exhausted"), ended("deadline")
	wantBetween(t, "cohort lost, no jitter", mean(all["exponential"], cohort), 165, 185)
	wantBetween(t, "cohort lost, full jitter", mean(all["full"], cohort), 0, 10)
	wantBetween(t, "others lost, no jitter", mean(all["exponential"], others), 99, 105)
	wantBetween(t, "others lost, full jitter", mean(all["full"], others), 150, 200)
}

func TestStudyLayers(t *testing.T) {
	if testing.Short() {
		t.Skip("not short: statistics on one goroutine")
	}
	for _, c := range []struct {
		name                string
		attempts, retries   float64
		budget, budgetWidth float64
	}{{"two-layers", 9, 16, 1.21, 0.05}, {"three-layers", 27, 64, 1.33, 0.07}} {
		s := studied(t, c.name)
		last := &s.Services[len(s.Services)-1]
		last.Errors, last.Faults = 1, nil
		all := flown(t, s, "attempts", 1, nil)
		wantBetween(t, c.name+", 3 attempts", all["3-attempts"].Amplification.Mean, c.attempts-0.1, c.attempts)
		wantBetween(t, c.name+", 3 retries", all["3-retries"].Amplification.Mean, c.retries-0.3, c.retries)
		wantBetween(t, c.name+", budgets", all["10%-of-calls"].Amplification.Mean, c.budget-c.budgetWidth, c.budget+c.budgetWidth)
	}
}

func TestStudyBurst(t *testing.T) {
	all := flown(t, studied(t, "burst"), "jitters", 10, func(p *config.NamedPolicy) { p.Policy.Attempts, p.Policy.Backoff.Base = 4, 300*time.Millisecond })
	lost := func(name string) float64 { return 1 - all[name].Success.Mean }
	wantBetween(t, "lost without jitter", lost("exponential"), 0.13, 0.24)
	wantBetween(t, "lost with full jitter", lost("full"), 0.09, 0.18)
	wantBetween(t, "lost with equal jitter", lost("equal"), 0, 0.06)
	wantBetween(t, "lost with decorrelated jitter", lost("decorrelated"), 0, 0.01)
}

func TestStudyContention(t *testing.T) {
	all := flown(t, studied(t, "aws-2015").WithProcesses(100), "aws-2015", 20, nil)
	calls := func(name string) float64 { return 100 * all[name].Amplification.Mean }
	last := func(name string) float64 {
		return mean(all[name], func(r sim.Result) float64 { return r.Totals.Last.Seconds() })
	}
	wantBetween(t, "calls, full", calls("full"), 770, 820)
	wantBetween(t, "calls, decorrelated", calls("decorrelated"), 960, 1040)
	wantBetween(t, "last, full over decorrelated", last("full")/last("decorrelated"), 1, 1.15)
	wantBetween(t, "last, no wait over full", last("no-wait")/last("full"), 0.3, 0.6)
}

// Tasks that start together and read one table: a small region comes back, a large one does not, and four things end that.
func TestStudyTasksThatStartTogether(t *testing.T) {
	for _, c := range []struct {
		set  string
		most time.Duration // when the last task has begun; zero: never
	}{
		{"horizon=2m", 0},
		{"fleets.tasks.processes=1k", 16 * time.Second},
		{"fleets.tasks.redial=true", 5 * time.Minute},
		{"fleets.tasks.arrivals.within=30s", 41 * time.Second},
		{"services.policies.hosts=3", 30 * time.Second},
		{"services.policies.queue.limit=500", time.Minute},
	} {
		s := studied(t, "service-control-2025")
		s.Horizon = 5 * time.Minute
		must.Succeed(Set(&s, c.set))
		r := must.Have(sim.Run(t.Context(), s, sim.None(), sim.Options{Seed: 1})).Totals
		began := r.Succeeded == int64(s.Fleets[0].Processes)
		if began != (c.most > 0) || began && r.Last > c.most {
			t.Errorf("%s: %d tasks have begun, the last at %v", c.set, r.Succeeded, r.Last)
		}
	}
	all := flown(t, studied(t, "service-control-2025"), "jitters", 1, func(p *config.NamedPolicy) {
		p.Policy.Attempts, p.Policy.Backoff.Base, p.Policy.Backoff.Cap = 200, 5*time.Second, 5*time.Minute
	})
	last := func(name string) float64 {
		return mean(all[name], func(r sim.Result) float64 { return r.Totals.Last.Seconds() })
	}
	wantBetween(t, "no jitter", last("exponential"), 500, 800)
	for _, jittered := range []string{"equal", "full", "decorrelated"} {
		wantBetween(t, jittered+" jitter", last(jittered), 120, 480)
	}
}

// What ends the retries of a client that mostly gets "overloaded; don't retry" is its budget, not its breaker.
func TestStudyDontRetry(t *testing.T) {
	s := studied(t, "dont-retry")
	s.Horizon = 3 * time.Minute
	succeeded := map[bool]int64{}
	for unlimited, retries := range map[bool][2]float64{false: {10, 40}, true: {250, 450}} {
		policy := lull.Policy{Breaker: breaker.Config{Off: true}, Budget: budget.Config{Unlimited: unlimited}}
		r := must.Have(sim.Run(t.Context(), s, sim.Contender{Policy: policy}, sim.Options{Seed: 1}))
		second := r.Series.Retries[2*time.Minute/r.Series.Step:] // minute of the failure
		sum := 0.0
		for _, x := range second {
			sum += x
		}
		wantBetween(t, fmt.Sprintf("retries a second, no budget %t", unlimited), sum/float64(len(second)), retries[0], retries[1])
		succeeded[unlimited] = r.Totals.Succeeded
	}
	wantBetween(t, "successes without a budget, of those with one", float64(succeeded[true])/float64(succeeded[false]), 0.99, 1.01)
}
