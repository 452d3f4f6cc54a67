package simulate

import (
	"fmt"
	"strconv"

	"github.com/lullgo/lull/cmd/lull/internal/cells"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/lab/rivals"
	"github.com/lullgo/lull/lab/sim"
)

// lullName is the preset of the zero Policy, the only one that --set policy.KEY changes.
const lullName = "lull"

var (
	defaultContenders = []string{"none", "full-jitter", "aws-legacy-standard", "grpc", lullName}
	defaultConsumers  = []string{"nack", "watermill", "spring-kafka", "queue"} // of topics
)

type contender struct {
	sim.Contender
	preset bool // --set policy.KEY does not change it
}

func (c contender) data() cells.Contender {
	if c.preset {
		return cells.ContenderOf(c.Contender, c.Name)
	}
	return cells.ContenderOf(c.Contender, "")
}

// contendersOf returns the policies of those names and files, in that order; nil if any
// of them is wrong. Without names they are those that the scenario is for.
func contendersOf(asked []string, s sim.Scenario) ([]contender, error) {
	switch {
	case len(asked) > 0:
	case onlyMessages(s):
		asked = defaultConsumers
	default:
		asked = defaultContenders
	}
	var wrong cli.Mistakes
	var all []contender
	for _, v := range asked {
		found, err := contendersNamed(v)
		wrong.Add(err)
		all = append(all, found...)
	}
	seen := map[string]bool{}
	var l problem.List
	for _, c := range all {
		l.Check(!seen[c.Name], "--policy", strconv.Quote(c.Name)+" twice", "names that differ")
		seen[c.Name] = true
	}
	wrong.Add(l.Err())
	if len(wrong) > 0 {
		return nil, wrong
	}
	return all, nil
}

func contendersNamed(v string) ([]contender, error) {
	if !isPath(v) {
		c, err := presetContender(v)
		if err != nil {
			return nil, fmt.Errorf("--policy: %w", noName(v, err))
		}
		return []contender{{Contender: c, preset: c.Name != lullName}}, nil
	}
	policies, err := config.ReadPolicies(v)
	if err != nil {
		return nil, cli.CannotRead(err)
	}
	var all []contender
	for _, p := range policies {
		all = append(all, contender{Contender: sim.Contender{Name: p.Name, Title: "of " + v, Policy: p.Policy}})
	}
	return all, nil
}

func presetContender(name string) (sim.Contender, error) {
	p, err := rivals.Find(name)
	return sim.Contender{Name: p.Name, Title: p.Title, Policy: p.Policy, Options: p.Options(), Verdict: p.Reads.Verdict, Holds: p.Holds}, err
}

// namedPolicies returns the policies that fleets and hops of the scenario name. A name is
// looked up among the contenders first, then among the presets; sim knows "none".
func namedPolicies(s sim.Scenario, contenders []contender) ([]cells.Contender, error) {
	known := map[string]bool{"": true, "none": true}
	var named []cells.Contender
	var wrong cli.Mistakes
	add := func(name string) {
		if known[name] {
			return
		}
		known[name] = true
		for _, c := range contenders {
			if c.Name == name {
				named = append(named, c.data())
				return
			}
		}
		c, err := presetContender(name)
		if err != nil {
			wrong.In("policy of the scenario", fmt.Errorf("%w; or give a policy of that name with --policy", err))
			return
		}
		named = append(named, cells.ContenderOf(c, c.Name))
	}
	for _, f := range s.Fleets {
		add(f.Policy)
	}
	for _, t := range s.Topics {
		add(t.Policy)
	}
	for _, service := range s.Services {
		for _, h := range service.Calls {
			add(h.Policy)
		}
	}
	return named, wrong.Err()
}
