package rivals

import (
	"github.com/lullgo/lull"
)

// A Preset is the retry policy of one client. Its fields may be changed; what is
// wired by Options follows them.
type Preset struct {
	// Name is how it is called on a command line, such as "aws-standard-2.1".
	Name string
	// Title describes it in a line.
	Title string
	// Source is where the figures come from.
	Source string
	// Note has the differences between engine and client, the assumptions, and the
	// lesson of the preset; may be empty.
	Note string

	// Policy has everything that a policy can express.
	Policy lull.Policy
	// Budget replaces Policy.Budget, unless it is zero.
	Budget Budget
	// Jitter replaces that of Policy.Backoff, unless it is zero.
	Jitter Jitter
	// Reads sets what the client takes into account when an attempt fails.
	Reads Reads
	// Messages: it consumes a queue. Holds: between attempts its handlers sleep with the
	// message in hand, and do not extend the lease.
	Messages, Holds bool
}

// Options returns the wiring for a [lull.NewDependency] with p.Policy. It may serve
// any number of dependencies, and each of them gets a budget of its own.
func (p Preset) Options() []lull.Option {
	var opts []lull.Option
	if p.Budget != (Budget{}) {
		opts = append(opts, lull.WithBudget(p.Budget.New))
	}
	if wait := p.Jitter.wait(p.Policy.Backoff); wait != nil {
		opts = append(opts, lull.WithBackoff(wait))
	}
	return opts
}
