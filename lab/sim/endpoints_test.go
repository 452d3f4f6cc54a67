package sim

import (
	"testing"
	"time"

	"github.com/lullgo/lull/outlier"
)

// One host of five answers nothing but errors. Processes that choose by package outlier leave it out
// after a few of them.
func TestSickHostIsLeftOut(t *testing.T) {
	s := Scenario{
		Horizon: time.Minute,
		Services: []Service{{
			Name: "api", Hosts: 5, Workers: 10, Queue: Queue{Limit: 100}, Time: fixed(20 * millisecond),
			Faults: []Fault{{Kind: Errors, At: 20 * time.Second, For: 20 * time.Second, Hosts: 1}},
		}},
		Fleets: []Fleet{{Calls: "api", Processes: 3, Arrivals: Arrivals{Rate: 300}}},
	}
	at := play(t, s, once()).Totals
	if at.AttemptsFailed < 1000 || at.Ejections != 0 {
		t.Fatalf("by chance: %d failed, %d ejections", at.AttemptsFailed, at.Ejections)
	}
	s.Fleets[0].Network.Endpoints.On = true
	on := play(t, s, once()).Totals
	if on.AttemptsFailed > 100 || on.Ejections < 3 {
		t.Errorf("with endpoints: %d failed, %d ejections", on.AttemptsFailed, on.Ejections)
	}
	s.Fleets[0].Network.Endpoints.Config = outlier.Config{Off: true}
	off := play(t, s, once()).Totals
	if off.AttemptsFailed < 1000 || off.Ejections != 0 {
		t.Errorf("with a set that ejects none: %d failed, %d ejections", off.AttemptsFailed, off.Ejections)
	}
	s.Fleets[0].Network.Endpoints.Config = outlier.Config{}
	s.Fleets[0].Network.Pool = Pool{On: true}
	pooled := play(t, s, once()).Totals
	if pooled.AttemptsFailed > 100 || pooled.Ejections < 3 {
		t.Errorf("with connections: %d failed, %d ejections", pooled.AttemptsFailed, pooled.Ejections)
	}
}

// The less busy of two hosts is chosen: where one is slow, it gets less to do than by chance.
func TestLessBusyHostIsChosen(t *testing.T) {
	s := Scenario{
		Horizon: time.Minute,
		Services: []Service{{
			Name: "api", Hosts: 2, Workers: 10, Queue: Queue{Limit: 100}, Time: fixed(20 * millisecond),
			Faults: []Fault{{Kind: SlowDown, At: 10 * time.Second, For: 40 * time.Second, Hosts: 1}},
		}},
		Fleets: []Fleet{{Calls: "api", Arrivals: Arrivals{Rate: 200}}},
	}
	chance := play(t, s, once()).Latency.P90
	s.Fleets[0].Network.Endpoints.On = true
	chosen := play(t, s, once()).Latency.P90
	if chosen > chance/2 {
		t.Errorf("p90 is %v, by chance %v", chosen, chance)
	}
}

// Every attempt that a process has chosen a host for is reported back, or the host would be busy
// for ever. A retry goes elsewhere: with two hosts of which one fails, one retry is enough.
func TestRetryGoesToAnotherHost(t *testing.T) {
	s := Scenario{
		Horizon: time.Minute,
		Services: []Service{{
			Name: "api", Hosts: 2, Time: fixed(20 * millisecond),
			Faults: []Fault{{Kind: Errors, At: time.Second, For: time.Minute, Hosts: 1}},
		}},
		Fleets: []Fleet{{Calls: "api", Arrivals: Arrivals{Rate: 50}, Network: Network{Endpoints: Endpoints{On: true, Config: outlier.Config{Off: true}}}}},
	}
	w, r := playWorld(t, s, Contender{Name: "it", Policy: retrying(2, 0)}, Options{Seed: 1})
	want(t, "failed calls", r.Totals.Calls-r.Totals.Unfinished-r.Totals.Succeeded, 0)
	if r.Totals.Retries == 0 {
		t.Error("no retries")
	}
	inFlight := w.flights.inUse()
	want(t, "visits", len(w.hostChoices), inFlight)
}
