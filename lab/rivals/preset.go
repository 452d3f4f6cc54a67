package rivals

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/clients"
)

// A Preset is the retry policy of one client. Its fields may be changed; what is
// wired by Options follows them.
type Preset struct {
	Name string // how it is called on a command line, such as "aws-standard-2.1"
	// Title describes it in a line.
	Title  string
	Source string // where the figures come from
	// Note has the differences between engine and client, the assumptions, and the
	// lesson of the preset; may be empty.
	Note string

	Policy lull.Policy // everything that a policy can express
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

// All is every preset: lull itself, loops and single mechanisms first, then the
// clients by family, and consumers of queues. The order is stable. The slice is the caller's own.
func All() []Preset {
	return slices.Concat(loops(), mechanisms(), aws(), grpc(), proxies(), libraries(), messages())
}

// Find is the preset with the given name, in any case. The error names the
// nearest and lists them all.
func Find(name string) (Preset, error) {
	all := All()
	names := make([]string, len(all))
	for i, p := range all {
		if strings.EqualFold(p.Name, name) {
			return p, nil
		}
		names[i] = p.Name
	}
	guess := ""
	if near := choice.Either(strings.EqualFold(name, "zero"), "lull", choice.Nearest(name, names)); near != "" {
		guess = fmt.Sprintf("did you mean %s? ", near)
	}
	return Preset{}, fmt.Errorf("no preset is called %q: %sthere are %s", name, guess, strings.Join(names, ", "))
}

func init() {
	var all []clients.Client
	for _, p := range All() {
		if !p.Reads.Timeouts {
			p.Policy.Timeouts = lull.TimeoutsNever // in a simulation the driver decides
		}
		all = append(all, clients.Client{Name: p.Name, Policy: p.Policy, Partial: p.Budget != Budget{} || p.Jitter != Jitter{} || p.Messages})
	}
	clients.Register(all)
}
