package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/must"
)

// contested is a scenario with a bit of everything, and policies for it.
func contested() (Scenario, []Contender) {
	s := Scenario{
		Horizon: 20 * time.Second,
		Services: []Service{
			{Name: "api", Hosts: 2, Workers: 4, Queue: Queue{Limit: 50}, Time: Distribution{Kind: Exponential, Mean: 20 * millisecond},
				Calls:  []Hop{{Service: "store", Network: Network{Latency: Distribution{Kind: LogNormal, Mean: millisecond, Sigma: 0.3}}}},
				Faults: []Fault{{Kind: Stall, At: 5 * time.Second, For: time.Second}}},
			{Name: "store", Errors: 0.01, Rate: Rate{PerSecond: 500}},
		},
		Fleets: []Fleet{
			{Calls: "api", Processes: 10, AttemptTimeout: 200 * millisecond, Arrivals: Arrivals{Rate: 150}, NotIdempotent: true, Keyed: true,
				Network: Network{Latency: Distribution{Kind: Exponential, Mean: millisecond}, Loss: 0.01}},
			{Calls: "api", Processes: 20, AttemptTimeout: 200 * millisecond, Arrivals: Arrivals{Kind: Closed, Think: fixed(time.Second)}, Policy: "none"},
		},
	}
	naive := retrying(4, 50*millisecond)
	naive.Backoff.Jitter = 0 // full
	paid := naive
	paid.Budget = budget.Config{}
	return s, []Contender{{Name: "naive", Policy: naive}, {Name: "paid", Policy: paid}, None()}
}

// text returns summaries as they are in a file, without the contenders' wiring.
func text(t testing.TB, sums []Summary) []byte {
	t.Helper()
	b := must.Have(json.Marshal(sums))
	return b
}

func TestCompareIsTheSameEverywhere(t *testing.T) {
	s, cs := contested()
	admitted := overloaded(true)
	admitted.Horizon, admitted.Warmup, admitted.Services[0].Hosts, admitted.Services[0].Workers = 5*time.Second, 0, 3, 30
	links := tied(9500*millisecond, 300_000) // many connections are lost at once
	links.Fleets[0].Redial = true
	links.Fleets = append(links.Fleets, Fleet{Name: "clients", Calls: "front", Processes: 1000, Link: Link{On: true}, Reload: links.Fleets[0].Reload})
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for name, c := range map[string]struct {
		s       Scenario
		cs      []Contender
		workers []int
	}{
		"contested": {s, cs, []int{0, 5}},
		"admission": {admitted, []Contender{{Name: "lull"}, naive(3, 0)}, []int{2}},
		"links":     {links, []Contender{{Name: "lull"}}, []int{2}},
	} {
		compare := func(seed uint64, workers int) []byte {
			sums := must.Have(Compare(t.Context(), c.s, c.cs, CompareOptions{Seed: seed, Seeds: 3, Workers: workers}))
			return text(t, sums)
		}
		one := compare(7, 1)
		for _, procs := range []int{1, 2} {
			runtime.GOMAXPROCS(procs)
			for _, workers := range c.workers {
				if !bytes.Equal(compare(7, workers), one) {
					t.Errorf("%s: %d workers on %d cores give something else than one", name, workers, procs)
				}
			}
		}
		if bytes.Equal(compare(8, 1), one) {
			t.Errorf("%s: another seed gives the same", name)
		}
	}
}

// The seeds follow one another, whatever is run beside them; all contenders meet
// the same arrivals; and the estimates are those of the results.
func TestCompareIsRuns(t *testing.T) {
	s, cs := contested()
	sums := must.Have(Compare(t.Context(), s, cs, CompareOptions{Seed: 7, Seeds: 3}))
	for k, sum := range sums {
		want(t, "contender", sum.Contender.Name, cs[k].Name)
		want(t, "results", len(sum.Results), 3)
		recovered := 0
		var success float64
		for i, r := range sum.Results {
			want(t, "seed", r.Seed, 7+uint64(i))
			alone, err := Run(t.Context(), s, cs[k], Options{Seed: r.Seed})
			a, _ := json.Marshal(alone)
			b, _ := json.Marshal(r)
			if err != nil || !bytes.Equal(a, b) {
				t.Errorf("%s with seed %d alone: %v\n%s\n%s", r.Contender, r.Seed, err, a, b)
			}
			if r.Recovery.Recovered {
				recovered++
			}
			success += r.Totals.SuccessRate() / 3
			conserved(t, &s, r)
			if i > 0 && r.Totals.Attempts == sum.Results[0].Totals.Attempts && r.Latency.Mean == sum.Results[0].Latency.Mean {
				t.Errorf("%s: seeds %d and %d give the same", r.Contender, r.Seed, sum.Results[0].Seed)
			}
		}
		want(t, "recovered", sum.Recovered, recovered)
		if d := sum.Success.Mean - success; d > 1e-12 || d < -1e-12 || sum.Success.Half <= 0 {
			t.Errorf("success %+v, want a mean of %v", sum.Success, success)
		}
	}
	// Without the closed loop, arrivals do not depend on how calls go.
	s.Fleets = s.Fleets[:1]
	sums = must.Have(Compare(t.Context(), s, cs, CompareOptions{Seed: 7}))
	for i, rate := range sums[0].Results[0].Series.Calls {
		if sums[1].Results[0].Series.Calls[i] != rate || sums[2].Results[0].Series.Calls[i] != rate {
			t.Errorf("step %d: the arrivals differ", i)
		}
	}
	want(t, "one seed: half width", sums[0].Success.Half, 0)
}

func TestInterruptedRun(t *testing.T) {
	s, cs := contested()
	s.Horizon = time.Hour
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	reports := 0
	r, err := Run(ctx, s, cs[0], Options{Progress: func(p Progress) {
		if reports++; reports == 3 {
			cancel(why)
		}
		want(t, "horizon", p.Horizon, time.Hour)
	}})
	if err != why || !r.Interrupted || r.End <= 0 || r.End >= time.Hour {
		t.Errorf("%v, interrupted %v, end %v", err, r.Interrupted, r.End)
	}
	if r.Totals.Calls == 0 || r.Totals.Unfinished == 0 {
		t.Errorf("%d calls, %d unfinished", r.Totals.Calls, r.Totals.Unfinished)
	}
	conserved(t, &s, r)

	// It may also have ended before.
	r, err = Run(ctx, s, cs[0], Options{})
	if err != why || !r.Interrupted || r.End != 0 || r.Totals.Calls != 0 {
		t.Errorf("%v, interrupted %v, end %v, %d calls", err, r.Interrupted, r.End, r.Totals.Calls)
	}
	// Everything happens at once and never ends.
	s.Fleets = callsAt(0)
	s.Services = []Service{{Name: "api", Calls: []Hop{{Service: "b"}, {Service: "b"}}}, {Name: "b", Calls: []Hop{{Service: "c"}}}, {Name: "c", Calls: []Hop{{Service: "d"}}}, {Name: "d", Errors: 1}}
	ctx, stop := context.WithCancel(t.Context())
	reports = 0
	r, err = Run(ctx, s, Contender{Policy: retrying(1000, 0)}, Options{Progress: func(Progress) {
		if reports++; reports == 3 {
			stop()
		}
	}})
	if !errors.Is(err, context.Canceled) || !r.Interrupted {
		t.Errorf("%v, interrupted %v", err, r.Interrupted)
	}
}

func TestInterruptedCompare(t *testing.T) {
	s, cs := contested()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	sums, err := Compare(ctx, s, cs, CompareOptions{Seeds: 2})
	if !errors.Is(err, context.Canceled) || len(sums) != len(cs) || len(sums[0].Results) != 2 || !sums[0].Results[1].Interrupted {
		t.Errorf("%d summaries, %v", len(sums), err)
	}
	text(t, sums)
}

func TestCompareRefuses(t *testing.T) {
	s, cs := contested()
	if _, err := Compare(t.Context(), Scenario{}, cs, CompareOptions{}); err == nil {
		t.Error("a scenario of nothing")
	}
	if _, err := Compare(t.Context(), s, []Contender{{Name: "bad", Policy: lull.Policy{Attempts: -1}}}, CompareOptions{}); err == nil {
		t.Error("a policy that is wrong")
	}
	if sums, err := Compare(t.Context(), s, nil, CompareOptions{}); err != nil || len(sums) != 0 {
		t.Errorf("nobody: %v, %v", sums, err)
	}
	if _, err := Run(t.Context(), Scenario{}, cs[0], Options{}); err == nil {
		t.Error("a scenario of nothing")
	}
}
