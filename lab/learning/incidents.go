package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/sim"
)

// incidentFormat is nginx' log_format, as lull learn asks for it.
const incidentFormat = `$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" $msec $request_time "$upstream_addr" "$upstream_response_time" "$upstream_status"`

// An incident is a scenario that happens on sockets.
type incident struct {
	name     string
	scenario sim.Scenario
}

// incidents are of a service that has 75 % of the calls that it can do. What waits in its queue then is too old when its turn
// comes, so that it takes a while until things are normal again, and longer with more attempts.
func incidents() (all []incident) {
	const at = 15 * time.Second
	add := func(name string, change func(*sim.Service, *sim.Fleet)) {
		s := sim.Scenario{Name: name, Horizon: 60 * time.Second, Step: time.Second,
			Services: []sim.Service{{Name: "api", Workers: 8, Queue: sim.Queue{Limit: 500}, Time: sim.Distribution{Kind: sim.Exponential, Mean: 40 * time.Millisecond}}},
			Fleets:   []sim.Fleet{{Name: "shop", Calls: "api", Processes: 8, AttemptTimeout: 500 * time.Millisecond, Arrivals: sim.Arrivals{Rate: 150}}},
		}
		change(&s.Services[0], &s.Fleets[0])
		for i := range s.Services[0].Faults {
			s.Services[0].Faults[i].At = at
		}
		all = append(all, incident{name, s})
	}
	fault := func(f sim.Fault) func(*sim.Service, *sim.Fleet) {
		return func(v *sim.Service, _ *sim.Fleet) { v.Faults = []sim.Fault{f} }
	}
	add("stall", fault(sim.Fault{Kind: sim.Stall, For: 5 * time.Second}))
	add("brown-out", fault(sim.Fault{Kind: sim.BrownOut, For: 10 * time.Second, Share: 0.3}))
	add("spike", func(_ *sim.Service, f *sim.Fleet) {
		f.Arrivals.Ramp = []sim.RampPoint{{Factor: 1}, {At: at, Factor: 1}, {At: at, Factor: 2.5}, {At: at + 10*time.Second, Factor: 2.5}, {At: at + 10*time.Second, Factor: 1}}
	})
	add("errors", fault(sim.Fault{Kind: sim.Errors, For: 10 * time.Second, Share: 0.95}))
	add("sick host", func(v *sim.Service, _ *sim.Fleet) {
		v.Hosts, v.Workers = 3, 4
		v.Queue.Limit = 170
		v.Faults = []sim.Fault{{Kind: sim.Stall, For: 10 * time.Second, Hosts: 1}}
	})
	add("cold cache", fault(sim.Fault{Kind: sim.Crash, For: 2 * time.Second, Warmup: 15 * time.Second, Cold: 4}))
	return all
}

// policyFile has the policies that are compared. The first is the one in use.
const policyFile = `dependencies:
  now: {attempts: 3, attempt_timeout: 500ms, backoff: {base: 100ms, cap: 2s}, budget: {unlimited: true}, breaker: {off: true}}
  zero: {attempt_timeout: 500ms}
  once: {attempts: 1, attempt_timeout: 500ms, budget: {unlimited: true}, breaker: {off: true}}
  eager: {attempts: 6, attempt_timeout: 500ms, backoff: {base: 50ms, cap: 1s}, timeouts: always, budget: {unlimited: true}, breaker: {off: true}}
`

// An answer is what a policy did, or is predicted to do.
type answer struct {
	Name      string
	back      float64 // seconds, the median; infinite: never
	backs     [2]float64
	attempts  float64 // for each call, the mean
	succeeded float64
}

// probe is how exactly it is known when things were normal again: a window of sim.Scenario.
const probe = 1.0

// near reports whether a prediction of the time back is right.
func (a answer) near(truth answer) bool {
	return a.back == truth.back || math.Abs(a.back-truth.back) <= max(0.2*truth.back, probe)
}

// order is how a and b compare: -1 if a is back first, 0 if they are level.
func order(a, b answer) int {
	switch d := a.back - b.back; {
	case a.back == b.back || math.Abs(d) <= max(0.2*min(a.back, b.back), probe):
		return 0
	case d < 0:
		return -1
	}
	return 1
}

// A replayed is what lull replay has answered.
type replayed struct {
	Reproduced bool
	Figures    []struct {
		Name     string
		Distance *float64
	}
	Policies []struct {
		Name    string
		Flights []struct {
			Back     *float64 `json:"back_s"`
			Success  float64
			Attempts float64 `json:"attempts_a_call"`
		}
	}
}

// answers are those of the policies, in the order of their names.
func (r *replayed) answers(names []string) (all []answer) {
	for _, name := range names {
		for _, p := range r.Policies {
			if p.Name != name {
				continue
			}
			a := answer{Name: name}
			var backs []float64
			for _, f := range p.Flights {
				back := math.Inf(1)
				if f.Back != nil {
					back = *f.Back
				}
				backs = append(backs, back)
				a.attempts += f.Attempts / float64(len(p.Flights))
				a.succeeded += f.Success / float64(len(p.Flights))
			}
			slices.Sort(backs)
			a.back, a.backs = backs[len(backs)/2], [2]float64{backs[0], backs[len(backs)-1]}
			all = append(all, a)
		}
	}
	return all
}

// replay has lull learn and lull replay answer from some sources. The error says why there is no answer.
func replay(ctx context.Context, folder, name, policies string, sources ...string) (*replayed, error) {
	world := filepath.Join(folder, name+".yaml")
	if _, err := run(ctx, append([]string{"learn", "--quiet", "-o", world}, sources...)...); err != nil {
		return nil, err
	}
	text, failed := run(ctx, "replay", "--quiet", "--json", world, "--policy", policies)
	must.Succeed(os.WriteFile(filepath.Join(folder, name+".json"), text, 0o600))
	r := new(replayed)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, cmp.Or(failed, err)
	}
	return r, nil
}

// runIncidents has incidents happen under the first policy, asks lull what the others would have done, and has them do it.
func runIncidents(ctx context.Context, out io.Writer) (err error) {
	defer must.Catch(&err)
	folder := must.Have(filepath.Abs(options.folder))
	must.Succeed(os.MkdirAll(folder, 0o700))
	file := filepath.Join(folder, "policies.yaml")
	must.Succeed(os.WriteFile(file, []byte(policyFile), 0o600))
	policies := must.Have(config.ReadPolicyFile(file)).Dependencies
	var names []string
	for _, p := range policies {
		names = append(names, p.Name)
	}
	var sums [sets]struct{ asked, backs, attempts, pairs, ordered, n int }
	for n, i := range incidents() {
		if options.only != "" && options.only != i.name {
			continue
		}
		folder := filepath.Join(folder, i.name)
		must.Succeed(os.MkdirAll(folder, 0o700))
		var learned [sets]*replayed
		var refused [sets]error
		var truth, simulated []answer
		for k, p := range policies {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			progress("incidents: %s, policy %s", i.name, p.Name)
			var where string
			var use func(record)
			if k == 0 {
				where = folder
				use = func(r record) {
					learned[0], refused[0] = replay(ctx, folder, "log", file, r.accessLog)
					learned[1], refused[1] = replay(ctx, folder, "both", file, r.accessLog, r.prometheus)
					learned[2], refused[2] = replay(ctx, folder, "service", file, r.serviceLog, r.prometheus, "--field", "side=served")
				}
			}
			r := live(ctx, i.scenario, p.Policy, uint64(n), where, use)
			truth = append(truth, answer{Name: p.Name, back: seconds(r.recovery), attempts: r.attempts, succeeded: r.succeeded})
			m := must.Have(sim.Run(ctx, i.scenario, sim.Contender{Name: p.Name, Policy: p.Policy}, sim.Options{Seed: 1}))
			simulated = append(simulated, answer{Name: p.Name, back: seconds(m.Recovery), attempts: float64(m.Totals.Attempts) / float64(m.Totals.Calls)})
		}
		fmt.Fprintf(out, "\n%s\n\n", i.name)
		head := append([]string{"policy", "success", "back: sockets", "the true world, simulated"}, sourceNames[:]...)
		head = append(append(head, "attempts a call: sockets", "the true world, simulated"), sourceNames[:]...)
		row(out, head...)
		fmt.Fprintln(out, strings.Repeat("|---", len(head))+"|")
		var predicted [sets][]answer
		for k, l := range learned {
			if refused[k] != nil {
				fmt.Fprintf(out, "(no answer %s: %v)\n", sourceNames[k], refused[k])
				continue
			}
			if predicted[k] = l.answers(names); !l.Reproduced {
				fmt.Fprintf(out, "(refused %s: %s)\n", sourceNames[k], l.distances())
			}
		}
		for k, a := range truth {
			cells := []string{a.Name, fmt.Sprintf("%.1f %%", 100*a.succeeded), a.text(), simulated[k].text()}
			for j := range predicted {
				cells = append(cells, mark(predicted[j], k, func(p answer) string { return p.text() }, func(p answer) bool { return p.near(a) }))
			}
			cells = append(cells, fmt.Sprintf("%.3f", a.attempts), fmt.Sprintf("%.3f", simulated[k].attempts))
			for j := range predicted {
				cells = append(cells, mark(predicted[j], k, func(p answer) string { return fmt.Sprintf("%.3f", p.attempts) }, func(p answer) bool { return math.Abs(p.attempts/a.attempts-1) <= 0.05 }))
			}
			row(out, cells...)
		}
		for j := range predicted {
			s := &sums[j]
			for a := range predicted[j] {
				s.asked++
				if predicted[j][a].near(truth[a]) {
					s.backs++
				}
				if math.Abs(predicted[j][a].attempts/truth[a].attempts-1) <= 0.05 {
					s.attempts++
				}
				for b := range a {
					if o := order(truth[a], truth[b]); o != 0 {
						s.pairs++
						if order(predicted[j][a], predicted[j][b]) == o {
							s.ordered++
						}
					}
				}
			}
		}
	}
	for j, s := range sums {
		fmt.Fprintf(out, "\n%s: time back right for %d of %d policies, attempts for %d, order right for %d of %d pairs that differ\n", sourceNames[j], s.backs, s.asked, s.attempts, s.ordered, s.pairs)
	}
	return nil
}

// The sources that lull learns from.
const sets = 3

var sourceNames = [sets]string{"from nginx' log", "from nginx' log and metrics", "from the service's log and metrics"}

// mark writes the kth prediction, and whether it is right.
func mark(all []answer, k int, text func(answer) string, right func(answer) bool) string {
	if k >= len(all) {
		return "-"
	}
	if right(all[k]) {
		return text(all[k])
	}
	return text(all[k]) + " **off**"
}

func seconds(r sim.Recovery) float64 {
	if !r.Recovered {
		return math.Inf(1)
	}
	return r.Time.Seconds()
}

func (a answer) text() string {
	text := func(s float64) string {
		if math.IsInf(s, 1) {
			return "never"
		}
		return fmt.Sprintf("%.0f s", s)
	}
	if a.backs[0] < a.backs[1] {
		return fmt.Sprintf("%s (%s to %s)", text(a.back), text(a.backs[0]), text(a.backs[1]))
	}
	return text(a.back)
}

func (r *replayed) distances() string {
	var all []string
	for _, f := range r.Figures {
		if f.Distance != nil {
			all = append(all, fmt.Sprintf("%s %.2f", f.Name, *f.Distance))
		}
	}
	return strings.Join(all, ", ")
}
