package report

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/lab/sim"
)

// clients differ in how they come through the stall.
var clients = []sim.Contender{
	{Name: "lull", Title: "the zero Policy"},
	{Name: "none", Title: "a single attempt", Policy: lull.Policy{Attempts: 1}},
	{Name: "naive", Title: "three retries at once", Policy: unthrottled(4, budget.Config{Unlimited: true}, breaker.Config{Off: true})},
	{Name: "cautious", Title: "a budget and no breaker", Policy: unthrottled(3, budget.Config{}, breaker.Config{Off: true})},
	{Name: "breaking", Title: "a breaker and no budget", Policy: unthrottled(3, budget.Config{Unlimited: true}, breaker.Config{})},
	{Name: "bold", Title: "a budget of a fifth", Policy: unthrottled(2, budget.Config{Ratio: 0.2}, breaker.Config{})},
}

// unthrottled repeats whatever failed, timeouts too, without a wait.
func unthrottled(attempts int, b budget.Config, c breaker.Config) lull.Policy {
	return lull.Policy{Attempts: attempts, Timeouts: engine.TimeoutsAlways, Backoff: backoff.Schedule{Kind: backoff.Constant}, Budget: b, Breaker: c}
}

// fabricate returns a page of clients in a stall, each with some seeds.
func fabricate(clients []sim.Contender, seeds int) Page {
	s := sim.Scenario{
		Name: "metastable-stall", Title: "A stall of five seconds that never ends",
		Teaches: "A backend at 80 % load stands still for five seconds. When it works again, retries keep its queue so long " +
			"that every attempt times out before its turn: all the work is done for callers that have gone.",
		Source:  "Bronson et al., Metastable Failures in Distributed Systems, HotOS 2021",
		Horizon: 120 * time.Second, Step: 500 * time.Millisecond, Warmup: 5 * time.Second,
		Services: []sim.Service{{
			Name: "backend", Workers: 10, Queue: sim.Queue{Limit: 1000},
			Time:   sim.Distribution{Kind: sim.Exponential, Mean: 100 * time.Millisecond},
			Faults: []sim.Fault{{Kind: sim.Stall, At: 20 * time.Second, For: 5 * time.Second}},
		}},
		Fleets: []sim.Fleet{{Name: "web", Calls: "backend", Processes: 10, Arrivals: sim.Arrivals{Rate: 80}, AttemptTimeout: time.Second}},
	}
	p := Page{
		Scenario: s, Version: "0.3.0", Seed: 7, Seeds: seeds,
		ScenarioYAML: "name: metastable-stall\nhorizon: 120s\n", PoliciesYAML: "dependencies:\n  naive: {attempts: 4}\n",
		Command: "lull simulate metastable-stall --policy lull,none,naive --seed 7 --seeds 5 --report stall.html",
	}
	p.Windows = []Window{{From: 20 * time.Second, To: 25 * time.Second, Kind: "fault", Mark: "stall 5 s", What: "backend: workers stand still"}}
	var err error
	if p.Summaries, err = sim.Compare(context.Background(), s, clients, sim.CompareOptions{Seed: p.Seed, Seeds: seeds}); err != nil {
		panic(err)
	}
	p.Verdict.Columns = []Column{{"back after", "time to recover"}, {"success", "share of calls that succeeded"}}
	for i, s := range p.Summaries {
		p.Verdict.Rows = append(p.Verdict.Rows, Row{s.Contender.Name, []Cell{{Text: "9 s", Best: i == 0}, {Text: "90%"}}})
	}
	return p
}

// fabricatedMaps are of load and the length of the stall.
func fabricatedMaps() *Maps {
	m := &Maps{
		Title: "Recovered or not", About: "The time to recover.", Legend: []MapCell{{Text: "quick", Class: "level-0"}, {Text: "never", Class: "never"}},
		X: Parameter{Name: "load", Values: []string{"0.2", "0.4", "0.6", "0.7", "0.8", "0.9", "0.95"}},
		Y: Parameter{Name: "stall", Values: []string{"200ms", "1s", "5s", "10s", "30s"}},
	}
	for _, c := range clients[:4] {
		g := Grid{Name: c.Name}
		for y := range m.Y.Values {
			var row []MapCell
			for x := range m.X.Values {
				row = append(row, MapCell{Text: fmt.Sprintf("%d s", x*y), More: "90%", Class: fmt.Sprintf("level-%d", x*y%5), Tip: "a cell"})
			}
			g.Cells = append(g.Cells, row)
		}
		m.Grids = append(m.Grids, g)
	}
	return m
}

// dozen are twelve clients.
func dozen() []sim.Contender {
	cs := slices.Repeat(clients, 2)
	for i := range cs[len(clients):] {
		cs[len(clients)+i].Name += fmt.Sprint("-", i)
	}
	return cs
}

func full() Page {
	p := fabricate(clients, 5)
	p.Maps = fabricatedMaps()
	p.OfFleets, p.OfSeeds = p.Verdict, p.Verdict
	return p
}
