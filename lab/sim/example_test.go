package sim_test

import (
	"context"
	"fmt"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/lab/sim"
)

// A service of ten workers stands still for two seconds.
func stalled() sim.Scenario {
	return sim.Scenario{
		Horizon: 60 * time.Second,
		Services: []sim.Service{{
			Name: "api", Workers: 10, Queue: sim.Queue{Limit: 1000},
			Time:   sim.Distribution{Mean: 100 * time.Millisecond},
			Faults: []sim.Fault{{Kind: sim.Stall, At: 20 * time.Second, For: 2 * time.Second}},
		}},
		Fleets: []sim.Fleet{{
			Calls: "api", Processes: 10, Arrivals: sim.Arrivals{Kind: sim.Constant, Rate: 80},
			AttemptTimeout: time.Second,
		}},
	}
}

// naive makes four attempts, whatever happens.
func naive() lull.Policy {
	return lull.Policy{
		Attempts: 4, Timeouts: lull.TimeoutsAlways,
		Backoff: backoff.Schedule{Kind: backoff.Constant, Base: 100 * time.Millisecond, Jitter: backoff.None},
		Budget:  budget.Config{Unlimited: true}, Breaker: breaker.Config{Off: true},
	}
}

func ExampleRun() {
	ctx, scenario := context.Background(), stalled()
	r, err := sim.Run(ctx, scenario, sim.None(), sim.Options{Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Totals.Calls, "calls,", r.Totals.Succeeded, "succeeded,", r.Totals.Wasted, "attempts were worked on in vain")
	fmt.Println("recovered:", r.Recovery.Recovered)
	// Output:
	// 4799 calls, 4344 succeeded, 448 attempts were worked on in vain
	// recovered: true
}

// Results that were computed at other times, or on other machines, are summarized like those of Compare.
func ExampleSummarize() {
	var results []sim.Result
	for seed := range uint64(3) {
		r, err := sim.Run(context.Background(), stalled(), sim.None(), sim.Options{Seed: 1 + seed})
		if err != nil {
			fmt.Println(err)
			return
		}
		results = append(results, r)
	}
	s := sim.Summarize(sim.None(), results)
	fmt.Printf("%.1f %% of the calls succeeded; it was back in %d of %d runs\n", 100*s.Success.Mean, s.Recovered, len(s.Results))
	// Output:
	// 90.7 % of the calls succeeded; it was back in 3 of 3 runs
}

func ExampleCompare() {
	sums, err := sim.Compare(context.Background(), stalled(), []sim.Contender{
		sim.None(),
		{Name: "naive", Policy: naive()},
	}, sim.CompareOptions{Seed: 1, Seeds: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range sums {
		fmt.Printf("%-5s recovered in %d of %d runs, %.1f attempts per call\n", s.Contender.Name, s.Recovered, len(s.Results), s.Amplification.Mean)
	}
	// Output:
	// none  recovered in 3 of 3 runs, 1.0 attempts per call
	// naive recovered in 0 of 3 runs, 2.9 attempts per call
}

// A message in ten minutes kills its worker. After six times it is a dead letter.
func ExampleTopic() {
	s := sim.Scenario{
		Horizon:  time.Hour,
		Services: []sim.Service{{Name: "api", Time: sim.Distribution{Mean: 50 * time.Millisecond}}},
		Topics: []sim.Topic{{
			Name: "orders", Calls: "api", Arrivals: sim.Arrivals{Rate: 5}, Poison: sim.Poison{Share: 1.0 / 3000, Kills: true},
			Consumers: sim.Consumers{Processes: 3},
		}},
	}
	r, err := sim.Run(context.Background(), s, sim.Contender{Policy: lull.Policy{Attempts: 3}}, sim.Options{Seed: 1, Message: func(m sim.MessageEnd) {
		if m.Reason == engine.Crashed && m.At < 20*time.Minute {
			fmt.Println("message", m.Number, "is dead after", m.At.Round(time.Second))
		}
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	t := r.Topics[0]
	fmt.Println(t.Sent, "sent,", t.Handled, "handled,", t.Dead, "dead,", t.Left, "left;", t.Lapsed, "leases lapsed")
	// Output:
	// message 1 is dead after 3m2s
	// 17770 sent, 17765 handled, 4 dead, 1 left; 24 leases lapsed
}

// Each process has up to ten connections to a database that stands still for three seconds. An
// attempt that times out takes its connection with it, and each new one takes 20 ms of a worker.
func ExamplePool() {
	s := sim.Scenario{
		Horizon: 3 * time.Minute,
		Services: []sim.Service{{
			Name: "db", Workers: 50, Queue: sim.Queue{Limit: 2000}, Time: sim.Distribution{Kind: sim.Exponential, Mean: 50 * time.Millisecond},
			Connections: sim.Connections{Limit: 500, Handshake: sim.Distribution{Mean: 20 * time.Millisecond}},
			Faults:      []sim.Fault{{Kind: sim.Stall, At: time.Minute, For: 3 * time.Second}},
		}},
		Fleets: []sim.Fleet{{
			Calls: "db", Processes: 50, AttemptTimeout: time.Second,
			Arrivals: sim.Arrivals{Kind: sim.Poisson, Rate: 700},
			Network:  sim.Network{Pool: sim.Pool{On: true, Kind: sim.SQL, Size: 10}},
		}},
	}
	r, err := sim.Run(context.Background(), s, sim.None(), sim.Options{Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := r.Connections
	fmt.Printf("back after %v, %d dials, at most %d connections\n", r.Recovery.Time, c.Dials, c.Most)
	// Output: back after 0s, 1150 dials, at most 500 connections
}

// Without retries it comes back at all loads after an outage of two seconds, and at all but the
// last after one of four. With four attempts for each call it comes back at a few of them.
// Calls of a real service, here one second long each, are judged by the rule of a run.
func ExampleScenario_Judge() {
	s := stalled()
	fault := s.Services[0].Faults[0]
	var calls []sim.Made
	for at := time.Duration(0); at < s.Horizon; at += 100 * time.Millisecond {
		stands := at+time.Second > fault.At && at < fault.At+fault.For+3*time.Second
		calls = append(calls, sim.Made{Began: at, Ended: at + time.Second, Succeeded: !stands})
	}
	r, err := s.Judge(calls)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("back: %v, after %v\n", r.Back(), r.Time)
	// Output:
	// back: true, after 3s
}

func ExampleFindStability() {
	s := stalled()
	o := sim.StabilityOptions{Loads: []float64{0.2, 0.4, 0.6, 0.8, 1, 1.2}, Outages: []time.Duration{2 * time.Second, 4 * time.Second}, Seed: 1}
	four := sim.Contender{Name: "four", Policy: lull.Policy{Attempts: 4, Timeouts: lull.TimeoutsAlways, Deadline: lull.NoTimeout,
		Budget: budget.Config{Unlimited: true}, Breaker: breaker.Config{Off: true}}}
	for _, c := range []sim.Contender{sim.None(), four} {
		m, err := sim.FindStability(context.Background(), s, c, o)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: back %v, with help %v of %v calls a second; by theory without retries %v\n", c.Name, m.Back, m.Helped, m.Loads, m.Theory)
	}
	// Output:
	// none: back [6 5], with help [6 6] of [16 32 48 64 80 96] calls a second; by theory without retries [6 5]
	// four: back [2 1], with help [6 6] of [16 32 48 64 80 96] calls a second; by theory without retries [6 5]
}
