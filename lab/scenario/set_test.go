package scenario

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/lab/sim"
)

// two is a scenario with two services, one of them with a dot in its name.
func two() sim.Scenario {
	return sim.Scenario{
		Horizon: time.Minute,
		Services: []sim.Service{
			{Name: "api", Time: sim.Distribution{Kind: sim.Exponential, Mean: time.Second}, Faults: []sim.Fault{{At: time.Second}}},
			{Name: "db.eu"},
		},
		Fleets: []sim.Fleet{{Name: "phones", Arrivals: sim.Arrivals{Rate: 10, Ramp: []sim.RampPoint{{Factor: 1}}}}},
	}
}

func TestSet(t *testing.T) {
	for assignment, change := range map[string]func(*sim.Scenario){
		"horizon=2m":                        func(s *sim.Scenario) { s.Horizon = 2 * time.Minute },
		" horizon = 2m ":                    func(s *sim.Scenario) { s.Horizon = 2 * time.Minute },
		"title=":                            func(s *sim.Scenario) { s.Title = "" },
		"title=a=b: {c":                     func(s *sim.Scenario) { s.Title = "a=b: {c" },
		"services.0.queue.limit=10k":        func(s *sim.Scenario) { s.Services[0].Queue.Limit = 10_000 },
		"services.api.queue.limit=10k":      func(s *sim.Scenario) { s.Services[0].Queue.Limit = 10_000 },
		"services.db.eu.queue.order=lifo":   func(s *sim.Scenario) { s.Services[1].Queue.Order = sim.LIFO },
		"services.db.eu.errors=5%":          func(s *sim.Scenario) { s.Services[1].Errors = 0.05 },
		"services.api.faults.0.at=0":        func(s *sim.Scenario) { s.Services[0].Faults[0].At = 0 },
		"services.api.faults=[]":            func(s *sim.Scenario) { s.Services[0].Faults = nil },
		"services.api.time=50ms":            func(s *sim.Scenario) { s.Services[0].Time = sim.Distribution{Mean: 50 * time.Millisecond} },
		"services.api.time.mean=50ms":       func(s *sim.Scenario) { s.Services[0].Time.Mean = 50 * time.Millisecond },
		"services.api.time={mean: 1s}":      func(s *sim.Scenario) { s.Services[0].Time = sim.Distribution{Mean: time.Second} },
		"fleets.phones.processes=25M":       func(s *sim.Scenario) { s.Fleets[0].Processes = 25_000_000 },
		"fleets.0.arrivals.rate=800":        func(s *sim.Scenario) { s.Fleets[0].Arrivals.Rate = 800 },
		"fleets.0.arrivals.ramp.0.factor=3": func(s *sim.Scenario) { s.Fleets[0].Arrivals.Ramp[0].Factor = 3 },
		"fleets.0.not_idempotent=true":      func(s *sim.Scenario) { s.Fleets[0].NotIdempotent = true },
		"fleets.0.deadline=-1ns":            func(s *sim.Scenario) { s.Fleets[0].Deadline = -1 }, // not validated
	} {
		got, want := two(), two()
		shared := got
		change(&want)
		if err := Set(&got, assignment); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", assignment, got, err, want)
		}
		if !reflect.DeepEqual(shared, two()) {
			t.Errorf("%s changes another scenario, too", assignment)
		}
	}
}

func TestSetReportsWhatIsWrong(t *testing.T) {
	const service = "want name, hosts, workers, queue, connections, heap, admission, time, congestion, cancel_work, errors, error_time, error_cost, refusal_time, rate, deduplicates, contention, calls or faults"
	for assignment, want := range map[string]string{
		"":                                   `"": want an assignment such as services.0.queue.limit=500`,
		"horizon":                            `"horizon": want an assignment such as services.0.queue.limit=500`,
		"=3":                                 `"=3": want an assignment such as services.0.queue.limit=500`,
		"horizon=":                           `horizon is "": want a duration such as 250ms, 1.5s or 2m`,
		"horizn=1m":                          `horizn is unknown: want name, title, teaches, source, horizon, step, window, warmup, services, fleets or topics; did you mean horizon?`,
		"rate=800":                           `rate is unknown: want name, title, teaches, source, horizon, step, window, warmup, services, fleets or topics; did you mean fleets.0.arrivals.rate?`,
		"services.0.queu.limit=5":            `services.0.queu is unknown: ` + service + `; did you mean queue?`,
		"services.2.workers=5":               `services.2 is unknown: want a number from 0 to 1, or api or db.eu`,
		"services.apo.workers=5":             `services.apo is unknown: want a number from 0 to 1, or api or db.eu; did you mean api?`,
		"services.api.calls.0.policy=none":   `services.0.calls.0 is unknown: want no element, for the list is empty`,
		"services.api.faults.-1.at=1s":       `services.0.faults.-1 is unknown: want a number from 0 to 0`,
		"services.api.queue.limit.x=5":       `services.0.queue.limit.x is unknown: want services.0.queue.limit alone, which has no fields; did you mean services.0.queue.limit?`,
		"services.api.queue.limit=many":      `services.0.queue.limit is "many": want a whole number such as 500, 25k or 2M`,
		"services.api.queue=5":               `services.0.queue is "5": want a mapping of limit, order, drop_expired, retry_after or dont_retry; did you mean {limit: 5}?`,
		"services.api.queue={limit: 5":       `services.0.queue is "{limit: 5": want a mapping in braces or a list in brackets`,
		"services.api.time=exponential":      `services.0.time is "exponential": want a duration such as 250ms, 1.5s or 2m, or a mapping such as {kind: exponential, mean: 100ms}; did you mean {kind: exponential, mean: 100ms}?`,
		"services.api.time={file: x.csv}":    `services.0.time.file is "x.csv": want the name of a file in the folder of this one, or below it`,
		"services.api={workers: 1, hots: 2}": `services.0.hots is unknown: ` + service + `; did you mean hosts?`,
		"services=5":                         `services is "5": want a list, each element after a "- " or all in brackets`,
		"fleets.0.arrivals.kind=poison":      `fleets.0.arrivals.kind is "poison": want poisson, constant, at-once, periodic or closed; did you mean poisson?`,
	} {
		s := two()
		check.Equal(t, fmt.Sprint(Set(&s, assignment)), want, "%q", assignment)
		if !reflect.DeepEqual(s, two()) {
			t.Errorf("%q changed the scenario", assignment)
		}
	}
}
