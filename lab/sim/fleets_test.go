package sim

import (
	"testing"
	"time"
)

// Each fleet has figures of its own, and together they are the totals.
func TestFleetsHaveTheirOwnFigures(t *testing.T) {
	const sec = time.Second
	s := Scenario{
		Horizon: 60 * sec, Step: sec, Warmup: 5 * sec,
		Services: []Service{{
			Name: "api", Workers: 10, Queue: Queue{Limit: 1000}, Time: Distribution{Kind: Exponential, Mean: 100 * millisecond},
			Faults: []Fault{{Kind: Stall, At: 20 * sec, For: 2 * sec}},
		}},
		Fleets: []Fleet{
			{Name: "ours", Calls: "api", Arrivals: Arrivals{Rate: 30}, AttemptTimeout: sec},
			{Name: "theirs", Calls: "api", Arrivals: Arrivals{Rate: 10}, AttemptTimeout: 50 * millisecond, Policy: "none"},
		},
	}
	r := play(t, s, retrying(3, 0))
	if len(r.Fleets) != 2 {
		t.Fatalf("%d fleets", len(r.Fleets))
	}
	ours, theirs := r.Fleets[0], r.Fleets[1]
	want(t, "name", ours.Name, "ours")
	want(t, "calls", ours.Totals.Calls+theirs.Totals.Calls, r.Totals.Calls)
	want(t, "succeeded", ours.Totals.Succeeded+theirs.Totals.Succeeded, r.Totals.Succeeded)
	want(t, "attempts", ours.Totals.Attempts+theirs.Totals.Attempts, r.Totals.Attempts)
	want(t, "retries", ours.Totals.Retries+theirs.Totals.Retries, r.Totals.Retries)
	want(t, "unfinished", ours.Totals.Unfinished+theirs.Totals.Unfinished, r.Totals.Unfinished)
	want(t, "retries of those who make none", theirs.Totals.Retries, 0)
	want(t, "latencies", ours.Latency.Count, ours.Totals.Succeeded)
	if a, b := ours.Totals.SuccessRate(), theirs.Totals.SuccessRate(); a < 2*b || b == 0 {
		t.Errorf("%.3f of ours succeed and %.3f of theirs, who wait for half of the usual time", a, b)
	}
	if ours.Totals.Amplification <= 1 || theirs.Totals.Amplification != 1 {
		t.Errorf("%.3f attempts for each call of ours, %.3f of theirs", ours.Totals.Amplification, theirs.Totals.Amplification)
	}
	if !ours.Recovery.Measured || ours.Recovery.Normal < 0.9 || theirs.Recovery.Normal > 0.6 {
		t.Errorf("normal is %+v for ours and %+v for theirs", ours.Recovery, theirs.Recovery)
	}
	all := Summarize(Contender{}, []Result{r})
	want(t, "success of ours", all.OfFleet(0).Success.Mean, ours.Totals.SuccessRate())
	want(t, "attempts for each call of theirs", all.OfFleet(1).Amplification.Mean, 1)
	s.Fleets = s.Fleets[:1]
	if r = play(t, s, retrying(3, 0)); r.Fleets != nil {
		t.Errorf("a single fleet has the totals: %+v", r.Fleets)
	}
}

func TestTheOldestUser(t *testing.T) {
	const sec = time.Second
	down := func(from, to time.Duration) []Fault { return []Fault{{Kind: Errors, At: from, For: to - from}} }
	one := Fleet{Calls: "api", Arrivals: Arrivals{Kind: AtOnce, At: 10 * sec}, AttemptTimeout: 5 * sec}
	comesBack := one
	comesBack.Reload = Reload{Share: 1, After: fixed(2 * sec), Times: 4}
	for _, c := range []struct {
		name   string
		fleet  Fleet
		time   time.Duration
		faults []Fault
		want   time.Duration
	}{
		{"a success", one, sec, nil, sec},
		{"a timeout", one, 7 * sec, nil, 5 * sec},
		{"two reloads", comesBack, sec, down(9*sec, 13*sec), 5 * sec},              // 10, 12, and a success at 14 that takes a second
		{"who gives up", comesBack, sec, down(9*sec, 50*sec), 8 * sec},             // 10, 12, 14, 16, 18
		{"about to come back at the end", comesBack, sec, down(9*sec, 50*sec), -1}, // see below
	} {
		s := Scenario{
			Horizon: 40 * sec, Window: sec, Step: sec,
			Services: []Service{{Name: "api", Time: fixed(c.time), Faults: c.faults}}, Fleets: []Fleet{c.fleet},
		}
		if c.want < 0 {
			s.Horizon, c.want = 15*sec+500*millisecond, 5*sec+500*millisecond
		}
		want(t, c.name, play(t, s, once()).Totals.Oldest, c.want)
	}
	// A call that has not ended when the run does.
	s := Scenario{
		Horizon: 14 * sec, Window: sec, Step: sec,
		Services: []Service{{Name: "api", Time: fixed(20 * sec)}}, Fleets: []Fleet{one},
	}
	want(t, "in flight at the end", play(t, s, once()).Totals.Oldest, 4*sec)
}
