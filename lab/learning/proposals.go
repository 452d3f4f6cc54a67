package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/battery"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

// runProposals has lull learn and lull tune propose policies in worlds of the battery that are drawn, from the attempts that the zero policy makes there,
// and the number of processes. The proposals are judged in the true worlds and their peaces, by the rules of the battery, with other seeds.
func runProposals(ctx context.Context, out io.Writer) (err error) {
	defer must.Catch(&err)
	var unlearned, kept, made, level, better int
	var lines []string
	for _, w := range battery.Fresh(battery.Quick, options.seed|1, options.worlds) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		progress("proposals: %s", w.Name)
		folder := filepath.Join(options.folder, "proposals", w.Name)
		must.Succeed(os.MkdirAll(folder, 0o700))
		p, learned, err := propose(ctx, w, folder)
		switch {
		case err != nil:
			unlearned++
			lines = append(lines, fmt.Sprintf("%s: nothing is learnt: %v", w.Name, err))
			continue
		case p == lull.Policy{}:
			kept++
			continue
		}
		made++
		wins, losses := judgeProposal(ctx, w, learned, p)
		if losses == nil {
			level++
		}
		if wins != nil {
			better++
		}
		lines = append(lines, fmt.Sprintf("%s: %s; in the learned world better in %s; in the true one worse in %s", w.Name, strings.Join(strings.Fields(string(must.Have(config.FormatPolicies([]config.NamedPolicy{{Name: "policy", Policy: p}})))), " "),
			orNothing(wins), orNothing(losses)))
	}
	fmt.Fprintf(out, "\n%d worlds of the battery, from seed %d: %d times nothing was learnt, %d times the zero policy was kept, %d proposals were made. No worse than the zero policy in the true world are %d of them, better in the learned one %d.\n\n",
		options.worlds, options.seed|1, unlearned, kept, made, level, better)
	for _, l := range lines {
		fmt.Fprintln(out, "-", l)
	}
	return nil
}

func orNothing(all []string) string {
	if all == nil {
		return "nothing"
	}
	return strings.Join(all, ", ")
}

// propose returns what lull tune proposes for the first fleet of w, and the learned world.
func propose(ctx context.Context, w battery.World, folder string) (p lull.Policy, learned sim.Scenario, err error) {
	file := filepath.Join(folder, "policy.yaml")
	if done, err := config.ReadPolicyFile(file); options.again && err == nil {
		learned, _, err = scenario.ReadLearned(filepath.Join(folder, "world.yaml"))
		return done.Dependencies[0].Policy, learned, err
	}
	fleet := &w.Scenario.Fleets[0]
	flown := &world{scenario: w.Scenario, zero: time.Date(2026, 11, 29, 14, 0, 0, 0, time.UTC)}
	none := must.Have(battery.Preset(battery.None))
	jitter := must.Have(battery.Preset("full-jitter")) // of the neighbours, in the family "mixed"
	must.Have(sim.Run(ctx, w.Scenario, sim.Contender{Name: "lull"}, sim.Options{Seed: 1, Named: []sim.Contender{none, jitter}, Attempt: func(a sim.AttemptEnd) {
		if a.Service == fleet.Calls && (a.Caller == fleet.Name || a.Caller == fleet.Calls) {
			flown.attempts = append(flown.attempts, a)
		}
	}}))
	lines := sources[slices.IndexFunc(sources, func(s source) bool { return s.name == "JSON lines" })]
	learned, known, err := learn(ctx, folder, lines.export(flown, folder)...)
	if err != nil {
		return p, learned, err
	}
	for _, q := range known.Unknown {
		if q.Path == "fleets.0.processes" { // a log does not have it, and whoever runs them knows it
			must.Succeed(known.Answer(&learned, q, fmt.Sprint(max(fleet.Processes, 1))))
			must.Succeed(os.WriteFile(filepath.Join(folder, "world.yaml"), must.Have(scenario.FormatLearned(learned, *known)), 0o600))
		}
	}
	text, err := run(ctx, "tune", "--quiet", "-o", file, filepath.Join(folder, "world.yaml"))
	if err != nil {
		return p, learned, err
	}
	must.Succeed(os.WriteFile(filepath.Join(folder, "tune.txt"), text, 0o600))
	return must.Have(config.ReadPolicyFile(file)).Dependencies[0].Policy, learned, nil
}

// judgeProposal returns in what p is better than the zero policy in the learned world, and surely worse in the true one.
func judgeProposal(ctx context.Context, w battery.World, learned sim.Scenario, p lull.Policy) (wins, losses []string) {
	t := battery.Trial{Seeds: 6, Workers: 1, Patience: w.Scenario.Fleets[0].AttemptTimeout}
	add := func(s sim.Scenario, name string, from, to time.Duration) {
		s.Fleets = slices.Clone(s.Fleets)
		s.Fleets[0].AttemptTimeout = 0
		t.Worlds = append(t.Worlds, battery.World{Name: name, Scenario: s, From: from, To: to, Stationary: to == 0})
	}
	add(learned, "the learned world", w.From, w.To)
	add(w.Scenario, w.Name, w.From, w.To)
	for _, s := range w.Peace {
		add(s, s.Name, 0, 0)
	}
	for i := range t.Worlds {
		for _, d := range must.Have(t.Differences(ctx, p, lull.Policy{}, i, 5001)) {
			switch text := fmt.Sprintf("%s by %.3g (%s)", d.Figure, d.By, t.Worlds[i].Name); {
			case i == 0 && d.Better():
				wins = append(wins, text)
			case i > 0 && d.SurelyWorse():
				losses = append(losses, text)
			}
		}
	}
	return wins, losses
}
