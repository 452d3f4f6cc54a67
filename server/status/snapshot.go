package status

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
)

// A snapshot is the page as data. Parts that a dependency does not have are absent. Times are in seconds.
type snapshot struct {
	Time         time.Time    `json:"time"`
	Dependencies []dependency `json:"dependencies"`
}

type dependency struct {
	Name       string    `json:"name"`
	Watched    bool      `json:"watched"`  // its state is known
	Observed   bool      `json:"observed"` // the page has had an event of it, so what fails is counted
	Circuit    circuit   `json:"circuit,omitzero"`
	Budget     *budget   `json:"budget,omitempty"`
	Limit      *limit    `json:"limit,omitempty"`
	Throttle   *throttle `json:"throttle,omitempty"`
	Waiting    int       `json:"waiting_for_retry"`  // calls
	Failed     int64     `json:"failed_last_minute"` // calls
	LastMinute []reason  `json:"last_minute"`
	Errors     []failure `json:"last_errors"` // the latest of each code and operation
}

type circuit struct {
	State     string  `json:"state"`
	Forced    bool    `json:"forced"`
	OpenFor   float64 `json:"open_for,omitempty"`    // since it opened first
	ProbeIn   float64 `json:"probe_in,omitempty"`    // zero: it is forced open
	Change    string  `json:"last_change,omitempty"` // that was observed: "closed to open: failure rate (10 of 20)"
	ChangeAgo float64 `json:"last_change_ago,omitempty"`
}

type budget struct {
	Tokens float64 `json:"tokens"`
	Stock  float64 `json:"stock,omitempty"` // when it is full; zero: it has none
}

type limit struct {
	InFlight int `json:"in_flight"`
	Most     int `json:"most"`
	Waiting  int `json:"waiting_for_room"`
}

type throttle struct {
	Refusal float64 `json:"refusal"`        // the probability
	Rate    float64 `json:"rate,omitempty"` // attempts a second; zero: not held to one
	Wait    float64 `json:"wait,omitempty"` // of an attempt that starts now
}

// A reason has the calls of the last minute that failed for it, those of them that made no attempt, and the hedges
// that were refused for it.
type reason struct {
	Reason      string `json:"reason"`
	Meaning     string `json:"meaning"`
	Calls       int64  `json:"calls"`
	Unattempted int64  `json:"without_attempt"`
	Hedges      int64  `json:"hedges,omitempty"`
}

// read returns the state of all. Circuits that are open come first, then the half-open (by the alphabet), then those
// with the most failed calls.
func (p *Page) read() snapshot {
	p.init()
	s := snapshot{Time: time.Now().UTC().Truncate(time.Millisecond), Dependencies: []dependency{}}
	now := time.Since(p.began)
	watched := map[string]bool{}
	add := func(d dependency) {
		watched[d.Name] = true
		if d.Observed = p.tallies.Has(d.Name); d.Observed {
			p.tallies.Get(d.Name).read(now, &d)
		}
		s.Dependencies = append(s.Dependencies, d)
	}
	p.dependencies(func(d *lull.Dependency) { add(stateOf(d)) })
	for name := range p.tallies.All {
		if !watched[name] {
			add(dependency{Name: name, LastMinute: []reason{}, Errors: []failure{}})
		}
	}
	slices.SortFunc(s.Dependencies, func(a, b dependency) int {
		return cmp.Or(cmp.Compare(b.Circuit.State, a.Circuit.State), cmp.Compare(b.Failed, a.Failed), cmp.Compare(a.Name, b.Name))
	})
	return s
}

func stateOf(d *lull.Dependency) dependency {
	now := d.Now()
	s := dependency{Name: key(d.Name()), Watched: true, Waiting: d.State().Waiting(), LastMinute: []reason{}, Errors: []failure{}}
	if b := d.Breaker(); b != nil {
		s.Circuit = circuit{State: b.State(now).String(), Forced: b.Forced(), ProbeIn: seconds(b.RetryAt(now) - now)}
		if at, ok := b.OpenedAt(now); ok {
			s.Circuit.OpenFor = seconds(now - at)
		}
	}
	if b := d.Budget(); b != nil {
		s.Budget = &budget{Tokens: finite(b.Balance(now))}
		if stocked, ok := b.(interface{ Stock() float64 }); ok {
			s.Budget.Stock = finite(stocked.Stock())
		}
	}
	if l := d.Limiter(); l != nil {
		s.Limit = &limit{InFlight: l.InFlight(), Most: d.Policy().Limit.InFlight, Waiting: l.Waiting()}
	}
	if t := d.Throttle(); t != nil {
		state := t.State(now)
		s.Throttle = &throttle{Refusal: state.Refusal, Rate: state.Rate, Wait: seconds(state.Wait)}
	}
	return s
}

// read adds what was counted.
func (t *tally) read(now time.Duration, d *dependency) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d.LastMinute = t.lastMinute(int64(now / slotWidth))
	for _, r := range d.LastMinute {
		d.Failed += r.Calls
	}
	d.Errors = append([]failure{}, t.errors...)
	for i := range d.Errors {
		d.Errors[i].Ago = seconds(now - d.Errors[i].at)
	}
	slices.SortFunc(d.Errors, func(a, b failure) int { return cmp.Compare(b.at, a.at) })
	if d.Circuit.State != "" && t.changedAt > 0 {
		d.Circuit.Change, d.Circuit.ChangeAgo = t.change.String(), seconds(now-t.changedAt)
	}
}

func (t *tally) lastMinute(tick int64) []reason {
	all := []reason{}
	for r := range engine.Reasons {
		sum := reason{Reason: engine.Reason(r).String(), Meaning: engine.Reason(r).Meaning()}
		for i := int64(0); t.counts != nil && i < slots; i++ {
			if s := &t.counts[i]; s.tick > tick-slots {
				sum.Calls += int64(s.calls[r])
				sum.Unattempted += int64(s.unattempted[r])
				sum.Hedges += int64(s.hedges[r])
			}
		}
		if sum.Calls+sum.Hedges > 0 {
			all = append(all, sum)
		}
	}
	slices.SortStableFunc(all, func(a, b reason) int { return cmp.Compare(b.Calls+b.Hedges, a.Calls+a.Hedges) })
	return all
}

// seconds returns d in seconds, to the millisecond, and at least zero.
func seconds(d time.Duration) float64 {
	return float64(max(d, 0).Round(time.Millisecond)/time.Millisecond) / 1000
}

// finite returns what JSON can have: no infinity, and 0 for what is not a number.
func finite(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return min(max(x, -math.MaxFloat64), math.MaxFloat64)
}
