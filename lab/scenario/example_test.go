package scenario_test

import (
	"fmt"
	"time"

	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

func ExampleParse() {
	s, err := scenario.Parse("stall.yaml", []byte(`
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

func ExampleRead() {
	s, err := scenario.Read("testdata/everything.yaml")
	fmt.Println(s.Title, err)
	// Output: Title: with a colon <nil>
}

func ExampleFormat() {
	data, err := scenario.Format(sim.Scenario{
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
	s, _ := scenario.Find("metastable-stall")
	fmt.Println(scenario.Set(&s, "services.api.queue.limit=500"), s.Services[0].Queue.Limit)
	fmt.Println(scenario.Set(&s, "fleets.0.arrivals.rate=0.9k"), s.Fleets[0].Arrivals.Rate)
	fmt.Println(scenario.Set(&s, "rate=900"))
	// Output:
	// <nil> 500
	// <nil> 900
	// rate is unknown: want name, title, teaches, source, horizon, step, window, warmup, services, fleets or topics; did you mean fleets.0.arrivals.rate?
}

func ExampleBuiltIn() {
	first := scenario.BuiltIn()[0]
	fmt.Println(first.Name + ": " + first.Title)
	// Output: blip-200ms: Errors for 200 ms, callers one by one
}

func ExampleFind() {
	_, err := scenario.Find("metastable")
	fmt.Println(err != nil)
	s, err := scenario.Find("metastable-stall")
	fmt.Println(s.Fleets[0].AttemptTimeout, err)
	// Output:
	// true
	// 1s <nil>
}
