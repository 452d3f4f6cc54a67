package config_test

import (
	"fmt"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/sim"
)

func ExampleParsePolicies() {
	policies, err := config.ParsePolicies("retry.yaml", []byte(`
policies:
  payments:
    attempts: 2
    deadline: 3s
    budget: {ratio: 5%}
  mail:
    preset: background-worker
    limit: {limit: 16}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range policies {
		fmt.Println(p.Name, p.Policy.Attempts, p.Policy.Deadline, p.Policy.Budget.Ratio, p.Policy.Limit.Limit)
	}
	// Output:
	// payments 2 3s 0.05 0
	// mail 8 10m0s 0 16
}

func ExampleParsePolicies_mistakes() {
	_, err := config.ParsePolicies("retry.yaml", []byte(`policies:
  api:
    deadline: 3 sec
    limit: {max_wiat: 1s}
    backoff: {base: 1s, cap: 500ms}
`))
	fmt.Println(err)
	// Output:
	// retry.yaml:3:15: policies.api.deadline is "3 sec": want a duration such as 250ms, 1.5s or 2m, or "none"; did you mean 3s?
	// retry.yaml:4:13: policies.api.limit.max_wiat is unknown: want limit, max_wait or max_queue; did you mean max_wait?
	// retry.yaml:5:30: policies.api.backoff.cap is 500ms: want zero or at least Base (1s)
}

func ExampleReadPolicies() {
	policies, err := config.ReadPolicies("testdata/policies.yaml")
	fmt.Println(policies[0].Name, policies[0].Policy.Attempts, err)
	// Output: full 7 <nil>
}

func ExampleFormatPolicies() {
	data, err := config.FormatPolicies([]config.NamedPolicy{
		{Name: "recommended"},
		{Name: "patient", Policy: lull.Policy{
			Attempts: 6,
			Deadline: lull.NoTimeout,
			Backoff:  backoff.Schedule{Jitter: backoff.Equal, Base: 2 * time.Second, Cap: 2 * time.Minute},
		}},
	})
	fmt.Print(string(data), err)
	// Output:
	// policies:
	//   recommended: {}
	//   patient:
	//     attempts: 6
	//     deadline: none
	//     backoff: {kind: exponential, jitter: equal, base: 2s, cap: 2m}
	// <nil>
}

func ExampleParseScenario() {
	s, err := config.ParseScenario("stall.yaml", []byte(`
horizon: 6m
services:
  - name: api
    workers: 100
    queue: {limit: 10k}
    time: {kind: exponential, mean: 100ms}
    faults:
      - {kind: stall, at: 1m, for: 10s}
fleets:
  - name: phones
    calls: api
    processes: 25M
    arrivals: {kind: poisson, rate: 800}
`))
	fmt.Println(s.Name, s.Services[0].Queue.Limit, s.Services[0].Faults[0].Kind, s.Fleets[0].Processes, err)
	// Output: stall 10000 stall 25000000 <nil>
}

func ExampleReadScenario() {
	s, err := config.ReadScenario("testdata/everything.yaml")
	fmt.Println(s.Title, err)
	// Output: Title: with a colon <nil>
}

func ExampleFormatScenario() {
	data, err := config.FormatScenario(sim.Scenario{
		Name:     "spike",
		Horizon:  5 * time.Minute,
		Services: []sim.Service{{Name: "api", Workers: 100, Time: sim.Distribution{Mean: 100 * time.Millisecond}}},
		Fleets: []sim.Fleet{{Calls: "api", Processes: 1_000_000, Arrivals: sim.Arrivals{Rate: 800, Ramp: []sim.RampPoint{
			{At: time.Minute, Factor: 1}, {At: time.Minute, Factor: 3},
		}}}},
	})
	fmt.Print(string(data), err)
	// Output:
	// name: spike
	// horizon: 5m
	// services:
	//   - name: api
	//     workers: 100
	//     time: 100ms
	// fleets:
	//   - calls: api
	//     processes: 1M
	//     arrivals:
	//       kind: poisson
	//       rate: 800
	//       ramp:
	//         - {at: 1m, factor: 1}
	//         - {at: 1m, factor: 3}
	// <nil>
}

func ExampleSet() {
	s, _ := config.FindBuiltIn("metastable-stall")
	fmt.Println(config.Set(&s, "services.api.queue.limit=500"), s.Services[0].Queue.Limit)
	fmt.Println(config.Set(&s, "fleets.0.arrivals.rate=0.9k"), s.Fleets[0].Arrivals.Rate)
	fmt.Println(config.Set(&s, "rate=900"))
	// Output:
	// <nil> 500
	// <nil> 900
	// rate is unknown: want name, title, teaches, source, horizon, step, window, warmup, services or fleets; did you mean fleets.0.arrivals.rate?
}

func ExampleSetPolicy() {
	p := lull.ExternalAPI()
	fmt.Println(config.SetPolicy(&p, "backoff.base=50ms"), p.Backoff.Base)
	fmt.Println(config.SetPolicy(&p, "backoff.jitter=ful"))
	// Output:
	// <nil> 50ms
	// backoff.jitter is "ful": want full, equal, none, decorrelated or proportional; did you mean full?
}

func ExampleBuiltIn() {
	first := config.BuiltIn()[0]
	fmt.Println(first.Name + ": " + first.Title)
	// Output: blip-200ms: Errors for 200 ms, callers one by one
}

func ExampleFindBuiltIn() {
	_, err := config.FindBuiltIn("metastable")
	fmt.Println(err != nil)
	s, err := config.FindBuiltIn("metastable-stall")
	fmt.Println(s.Fleets[0].AttemptTimeout, err)
	// Output:
	// true
	// 1s <nil>
}

func ExampleMistake() {
	_, err := config.ParsePolicies("retry.yaml", []byte("backoff:\n  bace: 1s\n"))
	for _, m := range err.(config.Mistakes) {
		fmt.Printf("line %d, column %d: %s; suggested: %s\n", m.Line, m.Column, m.Path, m.Suggestion)
	}
	// Output: line 2, column 3: backoff.bace; suggested: base
}
