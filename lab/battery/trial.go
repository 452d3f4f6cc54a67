package battery

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/lab/sim"
)

// A Trial flies policies in worlds, each once with each seed, and compares them by the rules of the judge.
type Trial struct {
	Worlds []World
	// InTime is how soon a success must come to count. Zero: none is too late.
	InTime time.Duration
	// Patience is the attempt timeout of a policy that sets none. Zero: the default.
	Patience time.Duration
	// Shortest is the shortest attempt timeout that is long enough. What is more than 2 % of the calls that it has room for is a loss,
	// though no gain. Zero: not known.
	Shortest time.Duration
	Seeds    int // of each flight: at least 1. Where two policies may differ by chance, up to four times as many are flown.
	Workers  int // flights side by side; zero: GOMAXPROCS
	// Flights is how many were flown.
	Flights int

	known map[trialKey][]Figures
}

type trialKey struct {
	policy lull.Policy
	world  int
	from   uint64
}

// Flown returns p as it flies: its attempt timeout is Patience if it sets none.
func (t *Trial) Flown(p lull.Policy) lull.Policy {
	if p.AttemptTimeout == 0 && t.Patience > 0 {
		p.AttemptTimeout = t.Patience
		if d := p.WithDefaults().Deadline; d > 0 {
			p.AttemptTimeout = min(p.AttemptTimeout, d)
		}
	}
	return p
}

// Fly returns the figures of p in a world, one for each seed from the given one on.
func (t *Trial) Fly(ctx context.Context, p lull.Policy, world int, from uint64) ([]Figures, error) {
	return t.fly(ctx, p, world, from, t.Seeds)
}

// fly flies with n seeds, as far as that was not done before.
func (t *Trial) fly(ctx context.Context, p lull.Policy, world int, from uint64, n int) ([]Figures, error) {
	key := trialKey{t.Flown(p), world, from}
	known := t.known[key]
	if len(known) >= n {
		return known[:n], nil
	}
	s := t.Worlds[world].Scenario
	more := n - len(known)
	all, errs := append(slices.Clone(known), make([]Figures, more)...), make([]error, more)
	sim.Each(more, t.Workers, func(i int) {
		k := len(known) + i
		r, err := sim.Run(ctx, s, sim.Contender{Name: "policy", Policy: key.policy}, sim.Options{Seed: from + uint64(k), Named: named(s), InTime: t.InTime})
		all[k], errs[i] = FiguresOf(&r), err
		if t.InTime > 0 {
			all[k].Good = r.Totals.InTime
		}
	})
	if err := cmp.Or(errs...); err != nil {
		return nil, err
	}
	if t.known == nil {
		t.known = map[trialKey][]Figures{}
	}
	t.Flights += more
	t.known[key] = all
	return all, nil
}

// inDoubt times as many seeds are flown before a difference that counts, and may be chance, is taken for one.
const inDoubt = 4

// Differences are by how much a is better than b in one world, with seeds from the given one on.
func (t *Trial) Differences(ctx context.Context, a, b lull.Policy, world int, from uint64) ([]Difference, error) {
	for n := t.Seeds; ; n *= 2 {
		ours, err := t.fly(ctx, a, world, from, n)
		if err != nil {
			return nil, err
		}
		theirs, err := t.fly(ctx, b, world, from, n)
		if err != nil {
			return nil, err
		}
		all := t.differences(a, b, world, ours, theirs)
		if 2*n > inDoubt*t.Seeds || !slices.ContainsFunc(all, Difference.doubtful) {
			return all, nil
		}
	}
}

func (t *Trial) differences(a, b lull.Policy, world int, ours, theirs []Figures) []Difference {
	w := &t.Worlds[world]
	calls := mean(theirs, func(f Figures) float64 { return float64(f.Calls) })
	room := func(patience time.Duration) float64 { // of two policies, that of the one which waits shorter
		for _, p := range []lull.Policy{a, b} {
			if d := t.Flown(p).WithDefaults().AttemptTimeout; d > 0 {
				patience = min(patience, d)
			}
		}
		return leastRoom * patience.Seconds() * calls / w.Scenario.Horizon.Seconds()
	}
	of := func(name string, g gain) Difference { return Difference{name, g.by, g.least, g.half, g.least} }
	all := []Difference{
		of("success", successes(ours, theirs)),
		of("back", recovery(ours, theirs, w.Slack())),
		of("held", fewer(ours, theirs, held, leastHeld, room(math.MaxInt64))),
		of("attempts", fewer(ours, theirs, Figures.attempts, leastAttempts, 0)),
	}
	if !w.Stationary {
		all[0].LeastSure *= min((Quick.Before+w.To-w.From+Quick.After).Seconds()/w.Scenario.Horizon.Seconds(), 1)
	}
	if t.Shortest > 0 {
		all[2].LeastSure = fewer(ours, theirs, held, leastHeld, room(t.Shortest)).least
	}
	return all
}

// A Difference is by how much one policy is better than another in one figure.
type Difference struct {
	Figure string // success, back, held, attempts
	// By is in the unit of the figure: a share, seconds, calls in progress, attempts for each call. Infinite: only one of
	// them is back.
	By float64
	// Least is the least that counts, Half the half of the 95 % interval.
	Least, Half float64
	// LeastSure is the least loss that counts if it is surely no chance. For success it is less than Least where a world is flown for
	// longer than Quick ones: a fault costs the less of all calls, the longer one looks on. For held it is of Trial.Shortest.
	LeastSure float64
}

// Better reports whether the difference counts.
func (d Difference) Better() bool { return gain{d.By, d.Least, d.Half}.sure() }

// Worse reports whether it is worse by more than Least, even if that may be chance, or surely by more than LeastSure.
func (d Difference) Worse() bool { return d.By < -d.Least || gain{-d.By, d.LeastSure, d.Half}.sure() }

// doubtful reports whether it is large enough to count, and may be chance.
func (d Difference) doubtful() bool { return math.Abs(d.By) > d.Least && math.Abs(d.By) <= d.Half }

// SurelyWorse reports whether it is worse by more than chance as well.
func (d Difference) SurelyWorse() bool { return gain{-d.By, d.Least, d.Half}.sure() }
