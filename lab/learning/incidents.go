package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
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
		v.Queue.Limit = 150
		v.Faults = []sim.Fault{{Kind: sim.Stall, For: 10 * time.Second, Hosts: 1}}
	})
	add("cold cache", fault(sim.Fault{Kind: sim.Crash, For: 2 * time.Second, Warmup: 15 * time.Second, Cold: 4}))
	return all
}

// policies that are compared. The first is the one in use.
func policies() []sim.Contender {
	naive := func(attempts int, b backoff.Schedule) (p lull.Policy) {
		p.Attempts, p.Backoff, p.Budget.Unlimited, p.Breaker.Off = attempts, b, true, true
		return p
	}
	one := sim.None()
	return []sim.Contender{
		{Name: "a", Title: "3 attempts without a budget", Policy: naive(3, backoff.Schedule{Base: 100 * time.Millisecond, Cap: 2 * time.Second})},
		{Name: "b", Title: "the zero policy"},
		{Name: "c", Title: "no retries", Policy: one.Policy},
		{Name: "d", Title: "6 attempts without a budget", Policy: naive(6, backoff.Schedule{Base: 50 * time.Millisecond, Cap: time.Second})},
	}
}

func runIncidents(ctx context.Context, out io.Writer) (err error) {
	defer must.Catch(&err)
	row := func(cells ...any) {
		for _, c := range cells {
			fmt.Fprintf(out, "| %v ", c)
		}
		fmt.Fprintln(out, "|")
	}
	row("incident", "policy", "success: sockets", "simulator", "attempts a call: sockets", "simulator", "back: sockets", "simulator")
	for n, i := range incidents() {
		if options.only != "" && options.only != i.name {
			continue
		}
		folder := filepath.Join(options.folder, i.name)
		must.Succeed(os.MkdirAll(folder, 0o700))
		for k, c := range policies() {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			where := ""
			if k == 0 {
				where = folder
			}
			r := live(ctx, i.scenario, c.Policy, uint64(n), where, nil)
			m := must.Have(sim.Run(ctx, i.scenario, c, sim.Options{Seed: 1}))
			row(i.name, c.Name, percent(r.succeeded), percent(float64(m.Totals.Succeeded)/float64(m.Totals.Calls)),
				fmt.Sprintf("%.3f", r.attempts), fmt.Sprintf("%.3f", float64(m.Totals.Attempts)/float64(m.Totals.Calls)), back(r.recovery), back(m.Recovery))
		}
	}
	return nil
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

func back(r sim.Recovery) string {
	if !r.Recovered {
		return "never"
	}
	return r.Time.String()
}
