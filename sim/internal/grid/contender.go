package grid

import (
	"github.com/lullgo/lull"
	"github.com/lullgo/lull/preset"
	"github.com/lullgo/lull/sim"
)

// Zero is the policy whose defaults are decided here.
const Zero = "lull"

// Presets are all of them as contenders, the zero Policy and consumers of queues left out.
func Presets() []sim.Contender {
	var all []sim.Contender
	for _, p := range preset.All() {
		if p.Name != Zero && !p.Messages {
			all = append(all, contender(p))
		}
	}
	return all
}

// Preset is the contender of that name.
func Preset(name string) (sim.Contender, error) {
	p, err := preset.Find(name)
	return contender(p), err
}

func contender(p preset.Preset) sim.Contender {
	c := sim.Contender{Name: p.Name, Title: p.Title, Policy: p.Policy, Options: p.Options(), Verdict: p.Reads.Verdict}
	if p.Name != Zero {
		// No other client asks whether somebody else was answered, and none has a
		// breaker that it does not name.
		c.Policy.Timeouts = lull.TimeoutsAlways
		if !c.Policy.Breaker.Off {
			c.Policy.Breaker.Consecutive = -1
		}
	}
	return c
}
