package battery

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/lab/rivals"
	"github.com/lullgo/lull/lab/sim"
)

// Figures are what one flight is judged by.
type Figures struct {
	Good, Calls int64 // calls that ended, and those of them that succeeded
	Attempts    int64
	// Settled: it was back after Back, and stayed so. Few: too few calls were made to say.
	Settled, Few bool
	Back         time.Duration
	// Over is how many attempts more than 1.1 × calls there were in the worst minute.
	Over float64
	// Worst is the most attempts for each call in ten seconds, from the outage on.
	Worst float64
	// Held is how many calls were in progress on average: what callers hold, in call-seconds a second.
	Held float64
}

// Share is the share of calls that succeeded, 0 if there were none.
func (f Figures) Share() float64 {
	if f.Calls == 0 {
		return 0
	}
	return float64(f.Good) / float64(f.Calls)
}

// A Plan is what is flown.
type Plan struct {
	Worlds []World
	Judged sim.Contender   // the policy that is judged
	Rivals []sim.Contender // those that it is held against; "none" is always among them
	Seeds  int             // zero: 1
	// Workers is how many flights there are side by side. Zero: GOMAXPROCS.
	Workers int
	// Known are figures of flights of rivals that need not be flown again.
	Known map[Key]Figures
	// Fly, if not nil, flies them instead: it calls done with the figures of each. Calls of done
	// do not overlap.
	Fly func(ctx context.Context, all []Flight, done func(i int, f Figures)) error
	// Progress, if not nil, is called after each flight. Calls do not overlap.
	Progress func(done, of int)
}

// Rivals are the presets that a policy is compared with by default.
var Rivals = []string{
	None, "aws-standard-2.1", "breaker-5s", "token-bucket", "envoy-retry-budget", "finagle",
	"full-jitter", "grpc", "budget10+breaker5s", "dotnet-standard",
}

// None is the preset that does not retry.
const None = "none"

// Preset is the contender of that name.
func Preset(name string) (sim.Contender, error) {
	p, err := rivals.Find(name)
	return contender(p), err
}

// Presets are all of them as contenders, the zero Policy and consumers of queues left out.
func Presets() []sim.Contender {
	var all []sim.Contender
	for _, p := range rivals.All() {
		if p.Name != "lull" && !p.Messages {
			all = append(all, contender(p))
		}
	}
	return all
}

func contender(p rivals.Preset) sim.Contender {
	return sim.Contender{Name: p.Name, Title: p.Title, Policy: p.Policy, Options: p.Options(), Verdict: p.Reads.Verdict}
}

// A Flown is what one contender did in one world: Figures for each seed.
type Flown struct {
	Contender string
	Runs      []Figures
	// Peace is that of the world without its outage, in the order of World.Peace.
	Peace [][]Figures
}

// in returns the runs of the world itself (0), or of its nth peace.
func (f *Flown) in(n int) []Figures {
	if n == 0 {
		return f.Runs
	}
	return f.Peace[n-1]
}

// An Outcome is everything that was flown in one world: ours first, then the rivals.
type Outcome struct {
	World World
	Flown []Flown
}

// Judged is the policy that is judged.
func (o *Outcome) Judged() *Flown { return &o.Flown[0] }

// Of returns what the contender of that name did; nil if it did not fly.
func (o *Outcome) Of(name string) *Flown {
	for i := range o.Flown {
		if o.Flown[i].Contender == name {
			return &o.Flown[i]
		}
	}
	return nil
}

// Fly flies everything of the plan. The figures do not depend on the number of workers.
func Fly(ctx context.Context, p Plan) ([]Outcome, error) {
	none, err := Preset(None)
	if err != nil {
		return nil, err
	}
	contenders := []sim.Contender{p.Judged, none}
	for _, c := range p.Rivals {
		if c.Name != None {
			contenders = append(contenders, c)
		}
	}
	f := &flights{plan: p, seeds: max(p.Seeds, 1), runs: map[Key]*Figures{}}
	for _, w := range p.Worlds {
		for _, c := range contenders {
			for _, scenario := range append([]sim.Scenario{w.Scenario}, w.Peace...) {
				f.want(scenario, c)
			}
		}
	}
	if err := f.fly(ctx); err != nil {
		return nil, err
	}
	var all []Outcome
	for _, w := range p.Worlds {
		o := Outcome{World: w}
		for _, c := range contenders {
			flown := Flown{Contender: c.Name, Runs: f.runsOf(w.Scenario, c)}
			for _, s := range w.Peace {
				flown.Peace = append(flown.Peace, f.runsOf(s, c))
			}
			o.Flown = append(o.Flown, flown)
		}
		all = append(all, o)
	}
	return all, nil
}

// flights are all that are flown, each of them once.
type flights struct {
	plan  Plan
	seeds int
	runs  map[Key]*Figures
	next  []wantedFlight // those that are not known
}

// A Key names a flight.
type Key struct {
	Scenario  string // its Digest
	Contender string
	Seed      int
}

// A Flight is one contender in one scenario, with one seed.
type Flight struct {
	Scenario  sim.Scenario
	Contender sim.Contender
	Named     []sim.Contender // presets that fleets of the scenario name
	Seed      uint64
}

type wantedFlight struct {
	key Key
	Flight
}

// Digest tells scenarios apart by what is in them: the peace of several worlds is the same.
func Digest(s sim.Scenario) string {
	s.Name = ""
	sum := sha256.Sum256(fmt.Appendf(nil, "%+v", s))
	return hex.EncodeToString(sum[:6])
}

func (f *flights) want(s sim.Scenario, c sim.Contender) {
	digest := Digest(s)
	for seed := range f.seeds {
		k := Key{digest, c.Name, seed + 1}
		if f.runs[k] != nil {
			continue
		}
		known, ok := f.plan.Known[k]
		f.runs[k] = &known
		if !ok || c.Name == f.plan.Judged.Name {
			f.next = append(f.next, wantedFlight{k, Flight{s, c, named(s), uint64(k.Seed)}})
		}
	}
}

func (f *flights) runsOf(s sim.Scenario, c sim.Contender) (all []Figures) {
	digest := Digest(s)
	for seed := range f.seeds {
		all = append(all, *f.runs[Key{digest, c.Name, seed + 1}])
	}
	return all
}

// fly flies those that have been asked for, the longest first, so that none is alone at the end.
func (f *flights) fly(ctx context.Context) error {
	slices.SortStableFunc(f.next, func(a, b wantedFlight) int { return cmp.Compare(work(b.Scenario), work(a.Scenario)) })
	all := make([]Flight, len(f.next))
	for i, n := range f.next {
		all[i] = n.Flight
	}
	fly := f.plan.Fly
	if fly == nil {
		fly = f.flyHere
	}
	flown := 0
	return fly(ctx, all, func(i int, got Figures) {
		*f.runs[f.next[i].key] = got
		flown++
		if f.plan.Progress != nil {
			f.plan.Progress(flown, len(all))
		}
	})
}

// flyHere flies them in this process.
func (f *flights) flyHere(ctx context.Context, all []Flight, done func(int, Figures)) error {
	errs := make([]error, len(all))
	var counts sync.Mutex
	sim.Each(len(all), f.plan.Workers, func(i int) {
		n := all[i]
		if errs[i] = ctx.Err(); errs[i] != nil {
			return
		}
		r, err := sim.Run(ctx, n.Scenario, n.Contender, sim.Options{Seed: n.Seed, Named: n.Named})
		if err != nil {
			errs[i] = fmt.Errorf("%s with %s: %w", n.Scenario.Name, n.Contender.Name, err)
			return
		}
		counts.Lock()
		defer counts.Unlock()
		done(i, FiguresOf(&r))
	})
	return cmp.Or(errs...)
}

func work(s sim.Scenario) float64 {
	sum := 0.0
	for _, f := range s.Fleets {
		sum += f.Arrivals.Rate * s.Horizon.Seconds()
	}
	return sum
}

// named are the policies that fleets of the scenario name.
func named(s sim.Scenario) []sim.Contender {
	var all []sim.Contender
	for _, f := range s.Fleets {
		if f.Policy == "" {
			continue
		}
		if c, err := Preset(f.Policy); err == nil {
			all = append(all, c)
		}
	}
	return all
}

// FiguresOf returns the figures of a flight.
func FiguresOf(r *sim.Result) Figures {
	f := Figures{
		Good: r.Totals.Succeeded, Attempts: r.Totals.Attempts, Over: worstMinute(&r.Series, 1+budget.DefaultRatio),
		Settled: r.Recovery.Recovered, Back: r.Recovery.Time, Few: r.Recovery.Few,
		Worst: r.Totals.WorstTenSeconds, Held: r.HeldRate(),
	}
	for _, n := range r.Totals.Reasons {
		f.Calls += n
	}
	return f
}

// worstMinute is by how many attempts the worst minute is above the given ratio of its calls.
func worstMinute(s *sim.Series, ratio float64) (over float64) {
	const minute = 60
	var sum float64
	for i := range s.Calls {
		sum += (s.First[i] + s.Retries[i] - ratio*s.Calls[i]) * s.Step.Seconds()
		if i >= minute {
			k := i - minute
			sum -= (s.First[k] + s.Retries[k] - ratio*s.Calls[k]) * s.Step.Seconds()
		}
		if over < sum || i == minute-1 {
			over = max(sum, over)
		}
	}
	return over
}
