package shipped

import (
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/sim"
)

// If a scenario has something that play does not have, play must refuse it. Without it the
// experiment would be another one.
func TestPlayRefusesWhatItDoesNotPlay(t *testing.T) {
	plain := func() sim.Scenario { return world(time.Second, 2*time.Second, 10, sim.Service{}, sim.Fleet{}) }
	must.Succeed(plays(plain(), sim.Contender{}))
	for name, change := range map[string]func(*sim.Scenario, *sim.Contender){
		"hosts": func(s *sim.Scenario, _ *sim.Contender) { s.Services[0].Hosts = 2 },
		"lognormal": func(s *sim.Scenario, _ *sim.Contender) {
			s.Services[0].Time = sim.Distribution{Kind: sim.LogNormal, Mean: ms, Sigma: 1}
		},
		"rate without burst": func(s *sim.Scenario, _ *sim.Contender) { s.Services[0].Rate.PerSecond = 1 },
		"crash": func(s *sim.Scenario, _ *sim.Contender) {
			s.Services[0].Faults = []sim.Fault{{Kind: sim.Crash, For: ms}}
		},
		"network": func(s *sim.Scenario, _ *sim.Contender) { s.Fleets[0].Network.Loss = 0.1 },
		"clockwork on a ramp": func(s *sim.Scenario, _ *sim.Contender) {
			s.Fleets[0].Arrivals = sim.Arrivals{Kind: sim.Constant, Rate: 1, Ramp: []sim.RampPoint{{Factor: 1}, {At: time.Second, Factor: 2}}}
		},
		"second fleet":  func(s *sim.Scenario, _ *sim.Contender) { s.Fleets = append(s.Fleets, s.Fleets[0]) },
		"warm-up":       func(s *sim.Scenario, _ *sim.Contender) { s.Warmup = ms },
		"other verdict": func(_ *sim.Scenario, c *sim.Contender) { c.Verdict = func(v lull.Verdict) lull.Verdict { return v } },
	} {
		s, c := plain(), sim.Contender{}
		change(&s, &c)
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if plays(s, c) == nil {
			t.Errorf("%s: play would leave it out", name)
		}
	}
}
