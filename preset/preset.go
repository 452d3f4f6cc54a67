package preset

import (
	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/problem"
)

// A Preset is the retry policy of one client. Its fields may be changed; what is
// wired by Options follows them.
type Preset struct {
	// Name is how it is called on a command line, such as "aws-standard-2.1".
	Name string
	// Title says in a line what it is.
	Title string
	// Source is where the figures come from.
	Source string
	// Note is what the engine does otherwise than the client, what was assumed, and
	// what the preset teaches; may be empty.
	Note string

	// Policy is all that can be said in a policy.
	Policy lull.Policy
	// Budget replaces Policy.Budget, unless it is zero.
	Budget Budget
	// Jitter replaces that of Policy.Backoff, unless it is zero.
	Jitter Jitter
	// Reads is what the client takes notice of when an attempt fails.
	Reads Reads
	// Messages: it consumes a queue. Holds: between attempts its handlers sleep with the
	// message in hand, and do not extend the lease.
	Messages, Holds bool
}

// Validate reports everything that is wrong with p at once, each problem naming
// its field; nil if nothing is.
func (p Preset) Validate() error {
	var l problem.List
	l.In("Policy", p.Policy.Validate())
	l.In("Budget", p.Budget.Validate())
	l.In("Jitter", p.Jitter.Validate())
	return l.Err()
}

// Options is the wiring for a [lull.NewDependency] with p.Policy. It may serve
// any number of dependencies, and each of them gets a budget of its own. A Budget
// that does not validate pays for no retry.
func (p Preset) Options() []lull.Option {
	var opts []lull.Option
	if p.Budget != (Budget{}) {
		open := p.Budget.New
		if p.Budget.Validate() == nil {
			open = p.Budget.build
		}
		opts = append(opts, lull.WithBudget(open))
	}
	if wait := p.Jitter.wait(p.Policy.Backoff); wait != nil {
		opts = append(opts, lull.WithBackoff(wait))
	}
	return opts
}
