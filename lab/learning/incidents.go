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
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

// incidentFormat is nginx' log_format, as lull learn asks for it.
const incidentFormat = `$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" $msec $request_time "$upstream_addr" "$upstream_response_time" "$upstream_status"`

// incidents are of a service that has 60 % of the calls that it can do. What waits in its queue then is too old when its turn
// comes, so that it takes a while until things are normal again, and longer with more attempts.
func incidents() (all []sim.Scenario) {
	const at = 15 * time.Second
	add := func(name string, change func(*sim.Service, *sim.Fleet)) {
		s := sim.Scenario{Name: name, Horizon: 60 * time.Second, Step: time.Second,
			Services: []sim.Service{{Name: "api", Workers: 10, Queue: sim.Queue{Limit: 500}, Time: sim.Distribution{Kind: sim.Exponential, Mean: 40 * time.Millisecond}}},
			Fleets:   []sim.Fleet{{Name: "shop", Calls: "api", Processes: 8, AttemptTimeout: 500 * time.Millisecond, Arrivals: sim.Arrivals{Rate: 150}}},
		}
		change(&s.Services[0], &s.Fleets[0])
		for i := range s.Services[0].Faults {
			s.Services[0].Faults[i].At = at
		}
		if options.short {
			shorten(&s)
		}
		all = append(all, s)
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

// shorten makes everything that happens take a third of its time.
func shorten(s *sim.Scenario) {
	s.Horizon /= 3
	for i := range s.Services[0].Faults {
		f := &s.Services[0].Faults[i]
		f.At, f.For, f.Warmup = f.At/3, f.For/3, f.Warmup/3
	}
	for i := range s.Fleets[0].Arrivals.Ramp {
		s.Fleets[0].Arrivals.Ramp[i].At /= 3
	}
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
	Back      float64    // seconds after the true end of the incident, the median; or never
	Backs     [2]float64 // the least and the most
	Attempts  float64    // for each call, the mean
	Succeeded float64    // share of calls
}

const never = 1e9

// probe is how exactly it is known when things were normal again: a window of sim.Scenario.
const probe = 1.0

// near reports whether a prediction of the time back is right.
func (a answer) near(truth answer) bool {
	return math.Abs(a.Back-truth.Back) <= max(0.2*truth.Back, probe) && (a.Back == never) == (truth.Back == never)
}

// order is how a and b compare: -1 if a is back first, 0 if they are level.
func order(a, b answer) int {
	switch d := a.Back - b.Back; {
	case math.Abs(d) <= max(0.2*min(a.Back, b.Back), probe):
		return 0
	case d < 0:
		return -1
	}
	return 1
}

// A replayed is what lull replay has answered.
type replayed struct {
	Reproduced bool
	Distances  []struct {
		Figure   string
		Distance float64
	}
	Policies []struct {
		Name    string
		Flights []struct {
			Totals struct {
				Calls, Succeeded float64
				Amplification    float64
			}
			Recovery struct {
				From      float64 `json:"from_s"`
				Time      float64 `json:"time_s"`
				Recovered bool
			}
		}
	}
	zero   time.Time // of the world
	failed error     // why lull replay has failed
}

// answers are those of the policies, in the order of names, for an incident that ended then.
func (r *replayed) answers(names []string, end time.Time) (all []answer) {
	offset := r.zero.Sub(end).Seconds()
	for _, name := range names {
		for _, p := range r.Policies {
			if p.Name != name {
				continue
			}
			a := answer{Name: name}
			var backs []float64
			for _, f := range p.Flights {
				back := float64(never)
				if f.Recovery.Recovered {
					back = max(offset+f.Recovery.From+f.Recovery.Time, 0)
				}
				backs = append(backs, back)
				a.Attempts += f.Totals.Amplification / float64(len(p.Flights))
				a.Succeeded += f.Totals.Succeeded / f.Totals.Calls / float64(len(p.Flights))
			}
			slices.Sort(backs)
			a.Back, a.Backs = backs[len(backs)/2], [2]float64{backs[0], backs[len(backs)-1]}
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
	_, learned, err := scenario.ReadLearned(world)
	if err != nil {
		return nil, err
	}
	text, err := run(ctx, "replay", "--quiet", "--json", world, "--policy", policies)
	must.Succeed(os.WriteFile(filepath.Join(folder, name+".json"), text, 0o600))
	r := &replayed{zero: must.Have(time.Parse(time.RFC3339Nano, learned.Zero)), failed: err}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, cmp.Or(r.failed, err)
	}
	return r, nil
}

// truthFile has a recording, once the incident has happened under all policies.
const truthFile = "truth.json"

// A recording is what an incident was in truth. What recorded it is beside it.
type recording struct {
	From, To time.Time // of the run of the first policy
	Answers  []answer
}

// recordIncident has an incident happen under each policy, and records the first.
func recordIncident(ctx context.Context, s sim.Scenario, seed uint64, folder string, policies []config.Dependency) (r recording) {
	must.Succeed(os.RemoveAll(folder))
	must.Succeed(os.MkdirAll(folder, 0o700))
	for k, p := range policies {
		if ctx.Err() != nil {
			return r
		}
		progress("incidents: %s, policy %s", s.Name, p.Name)
		where := ""
		if k == 0 {
			where = folder
		}
		one := live(ctx, s, p.Policy, seed, where)
		if k == 0 {
			r.From, r.To = one.from, one.to
		}
		r.Answers = append(r.Answers, answer{Name: p.Name, Back: backOf(one.recovery), Attempts: one.attempts, Succeeded: one.succeeded})
	}
	if ctx.Err() == nil {
		must.Succeed(os.WriteFile(filepath.Join(folder, truthFile), must.Have(json.Marshal(r)), 0o600))
	}
	return r
}

// runIncidents has incidents happen under the first policy, asks lull what the others would have done, and has them do it.
func runIncidents(ctx context.Context, out io.Writer) (err error) {
	defer must.Catch(&err)
	root := must.Have(filepath.Abs(options.folder))
	must.Succeed(os.MkdirAll(root, 0o700))
	file := filepath.Join(root, "policies.yaml")
	must.Succeed(os.WriteFile(file, []byte(policyFile), 0o600))
	policies := must.Have(config.ReadPolicyFile(file)).Dependencies
	var names []string
	for _, p := range policies {
		names = append(names, p.Name)
	}
	var sums [sets]sum
	for n, s := range incidents() {
		if options.only != "" && options.only != s.Name {
			continue
		}
		folder := filepath.Join(root, strings.ReplaceAll(s.Name, " ", "-"))
		var truth recording
		text, failed := os.ReadFile(filepath.Join(folder, truthFile))
		if options.again && failed == nil {
			progress("incidents: %s, as recorded", s.Name)
			must.Succeed(json.Unmarshal(text, &truth))
		} else {
			truth = recordIncident(ctx, s, uint64(n), folder, policies)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		prometheus, address := startPrometheus(folder, nil)
		access, service := filepath.Join(folder, "access.log"), filepath.Join(folder, "service.jsonl")
		metrics := []string{address, "--from", truth.From.Format(time.RFC3339), "--to", truth.To.Format(time.RFC3339)}
		var simulated []sim.Result
		for _, p := range policies {
			simulated = append(simulated, must.Have(sim.Run(ctx, s, sim.Contender{Name: p.Name, Policy: p.Policy}, sim.Options{Seed: 1})))
		}
		end := truth.From.Add(simulated[0].Recovery.From)
		var predicted [sets][]answer
		fmt.Fprintf(out, "\n### %s\n\n", s.Name)
		for k, sources := range [sets][]string{{access}, append([]string{access}, metrics...), append(append([]string{service}, metrics...), "--field", "side=served", "--field", "host=host")} {
			r, failed := replay(ctx, folder, fmt.Sprint("world-", k), file, sources...)
			switch {
			case failed != nil:
				fmt.Fprintf(out, "%s: no answer: %v\n\n", sourceNames[k], failed)
			case !r.Reproduced:
				fmt.Fprintf(out, "%s: refused: %s\n\n", sourceNames[k], r.far())
			case r.Policies == nil:
				fmt.Fprintf(out, "%s: reproduced (%s), but refused: %v\n\n", sourceNames[k], r.far(), r.failed)
			default:
				fmt.Fprintf(out, "%s: reproduced: %s\n\n", sourceNames[k], r.far())
				predicted[k] = r.answers(names, end)
			}
		}
		prometheus.Kill()

		fmt.Fprint(out, "<!-- not checked: it takes half an hour, and needs nginx and Prometheus -->\n\n")
		head := append([]string{"policy", "success", "back: sockets", "the true world, simulated"}, sourceNames[:]...)
		head = append(append(head, "attempts a call: sockets", "the true world, simulated"), sourceNames[:]...)
		row(out, head...)
		fmt.Fprintln(out, strings.Repeat("|---", len(head))+"|")
		for k, a := range truth.Answers {
			m := &simulated[k]
			cells := []string{a.Name, fmt.Sprintf("%.1f %%", 100*a.Succeeded), a.text(), answer{Back: backOf(m.Recovery)}.text()}
			for _, p := range predicted {
				cells = append(cells, mark(p, k, answer.text, func(p answer) bool { return p.near(a) }))
			}
			cells = append(cells, fmt.Sprintf("%.3f", a.Attempts), fmt.Sprintf("%.3f", m.Totals.Amplification))
			for _, p := range predicted {
				cells = append(cells, mark(p, k, func(p answer) string { return fmt.Sprintf("%.3f", p.Attempts) }, func(p answer) bool { return math.Abs(p.Attempts/a.Attempts-1) <= 0.05 }))
			}
			row(out, cells...)
		}
		for j := range predicted {
			sum := &sums[j]
			for a, p := range predicted[j] {
				sum.asked++
				if p.near(truth.Answers[a]) {
					sum.backs++
				}
				if math.Abs(p.Attempts/truth.Answers[a].Attempts-1) <= 0.05 {
					sum.attempts++
				}
				for b := range a {
					if o := order(truth.Answers[a], truth.Answers[b]); o != 0 {
						sum.pairs++
						if order(p, predicted[j][b]) == o {
							sum.ordered++
						}
					}
				}
			}
		}
	}
	fmt.Fprintln(out)
	row(out, append([]string{"six incidents on sockets, four policies"}, sourceNames[:]...)...)
	fmt.Fprintln(out, strings.Repeat("|---", 1+sets)+"|")
	for _, of := range []struct {
		what string
		text func(s sum) string
	}{
		{"answered", func(s sum) string { return fmt.Sprint(s.asked / len(policies)) }},
		{"time back within 20 % or 1 s", func(s sum) string { return fmt.Sprintf("%d of %d", s.backs, s.asked) }},
		{"attempts a call within 5 %", func(s sum) string { return fmt.Sprintf("%d of %d", s.attempts, s.asked) }},
		{"order of two policies that differ", func(s sum) string { return fmt.Sprintf("%d of %d", s.ordered, s.pairs) }},
	} {
		cells := []string{of.what}
		for _, s := range sums {
			cells = append(cells, of.text(s))
		}
		row(out, cells...)
	}
	return nil
}

// A sum counts the predictions that are right.
type sum struct{ asked, backs, attempts, pairs, ordered int }

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

func backOf(r sim.Recovery) float64 {
	if !r.Recovered {
		return never
	}
	return r.Time.Seconds()
}

func (a answer) text() string {
	text := func(s float64) string {
		if s == never {
			return "never"
		}
		return fmt.Sprintf("%.1f s", s)
	}
	if a.Backs[0] < a.Backs[1] {
		return fmt.Sprintf("%s (%s to %s)", text(a.Back), text(a.Backs[0]), text(a.Backs[1]))
	}
	return text(a.Back)
}

// far says how far the replay of the policy that ran is from what was observed.
func (r *replayed) far() string {
	var all []string
	for _, f := range r.Distances {
		if f.Distance >= 0 {
			all = append(all, fmt.Sprintf("%s %.2f", f.Figure, f.Distance))
		}
	}
	return strings.Join(all, ", ")
}
