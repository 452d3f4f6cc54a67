package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
)

// layers are services that call one another in a row; the last one fails always.
func layers(policies ...string) Scenario {
	s := Scenario{Horizon: 10 * time.Second, Step: millisecond}
	names := []string{"api", "b", "c", "d"}
	for i, p := range policies {
		s.Services = append(s.Services, Service{Name: names[i], Workers: 10, Calls: []Hop{{Service: names[i+1], Policy: p}}})
	}
	s.Services = append(s.Services, Service{Name: names[len(policies)], Errors: 1})
	s.Fleets = callsAt(time.Second)
	return s
}

func TestRetriesInLayersMultiply(t *testing.T) {
	for _, c := range []struct {
		policies []string
		want     int64
	}{
		{[]string{}, 4},
		{[]string{""}, 16},
		{[]string{"", ""}, 64},
		{[]string{"", "", ""}, 256},
		{[]string{"none", "none"}, 4},
		{[]string{"two", "none"}, 8},
		{[]string{"two", "two"}, 16},
	} {
		named := []Contender{{Name: "two", Policy: retrying(2, 0)}}
		w, r := playWorld(t, layers(c.policies...), Contender{Policy: retrying(4, 0)}, Options{Named: named})
		want(t, strings.Join(c.policies, ", ")+": attempts at the leaf", r.Totals.Attempts, c.want)
		want(t, "calls", r.Totals.Calls, 1)
		want(t, "failed", r.reason(engine.AttemptsExhausted), 1)
		want(t, "jobs left", w.jobs.inUse(), 0)
		want(t, "flights left", w.flights.inUse(), 0)
		want(t, "busy", w.services[0].hosts[0].busy, 0)
	}
}

// With OneLayer the layer next to the failure retries, and no other. Where callers do
// not obey, what they repeat is not repeated once more.
func TestOneLayerRetries(t *testing.T) {
	deaf := func(v lull.Verdict) lull.Verdict {
		if v.Kind == lull.KindOverloaded {
			v.Kind = lull.KindTransient
		}
		return v
	}
	always := retrying(4, 0)
	always.Nested = lull.NestedAlways
	for _, c := range []struct {
		name   string
		hops   int
		c      Contender
		want   int64
		reason lull.Reason
	}{
		{"no hop", 0, Contender{Policy: retrying(4, 0)}, 4, engine.AttemptsExhausted},
		{"one", 1, Contender{Policy: retrying(4, 0)}, 4, engine.Overloaded},
		{"three", 3, Contender{Policy: retrying(4, 0)}, 4, engine.Overloaded},
		{"three, and nobody looks at the number", 3, Contender{Policy: always}, 4, engine.Overloaded},
		// The first attempt of each layer has 4 × the next one's, three others one each.
		{"one, deaf", 1, Contender{Policy: retrying(4, 0), Verdict: deaf}, 4 + 3, engine.AttemptsExhausted},
		{"two, deaf", 2, Contender{Policy: retrying(4, 0), Verdict: deaf}, 4 + 3 + 3, engine.AttemptsExhausted},
		{"two, deaf, and nobody looks", 2, Contender{Policy: always, Verdict: deaf}, 64, engine.AttemptsExhausted},
	} {
		s := layers(make([]string, c.hops)...)
		for i := range c.hops {
			s.Services[i].Calls[0].OneLayer = true
		}
		_, r := playWorld(t, s, c.c, Options{})
		want(t, c.name+": attempts at the leaf", r.Totals.Attempts, c.want)
		want(t, c.name+": calls", r.reason(c.reason), 1)
	}
}

// What a service answers when its own call has failed is a 503 without a hint,
// whatever became of that call.
func TestFailureOfAHopIsA503(t *testing.T) {
	s := layers("none")
	s.Services[1].Errors = 0
	s.Services[1].Faults = []Fault{{Kind: Crash, At: 0, For: 2 * time.Second}}
	c := Contender{Policy: retrying(3, 0), Verdict: func(v lull.Verdict) lull.Verdict {
		if v.Code == "503" && v.After == 0 && !v.NeverSent {
			v.Kind = lull.KindPermanent
		}
		return v
	}}
	_, r := playWorld(t, s, c, Options{})
	want(t, "permanent", r.reason(engine.Permanent), 1)
}

func TestCallsOfAServiceAreMadeInTurn(t *testing.T) {
	s := Scenario{
		Horizon: 3 * time.Second,
		Services: []Service{
			{Name: "api", Time: fixed(10 * millisecond), Calls: []Hop{
				{Service: "b", Network: Network{Latency: fixed(millisecond)}}, {Service: "c"}, {Service: "b"},
			}},
			{Name: "b", Time: fixed(100 * millisecond)},
			{Name: "c", Workers: 1, Time: fixed(30 * millisecond)},
		},
		Fleets: callsAt(time.Second),
	}
	r := play(t, s, once())
	want(t, "102 + 30 + 100 + 10 ms", r.Latency.Max, 242*millisecond)
}

// The first caller goes after 50 ms, while the service waits for a leaf that takes
// 200 ms. Its one worker is held until the service goes as well, which it does at
// once only if it knows the deadline. A second call comes at 60 ms.
func TestDeadlinesAreCarriedAlong(t *testing.T) {
	s := Scenario{
		Horizon: 3 * time.Second, Step: millisecond,
		Services: []Service{
			{Name: "api", Workers: 1, Calls: []Hop{{Service: "leaf"}}},
			{Name: "leaf", Time: fixed(200 * millisecond)},
		},
		Fleets: callsAt(1000*millisecond, 1060*millisecond),
	}
	s.Fleets[0].AttemptTimeout = 50 * millisecond
	r := play(t, s, once())
	want(t, "not told: refused", r.Totals.QueueFull, 1)
	want(t, "not told: wasted", r.Totals.Wasted, 1)
	s.Services[0].Calls[0].Deadline = true
	r = play(t, s, once())
	wantTimes(t, "told: done", moments(r.Series, r.Series.Goodput), 1260*millisecond)
	want(t, "told: wasted at the leaf", r.Totals.Wasted, 1)
	// A hop's own timeout frees the worker, too, if it is near enough.
	s.Services[0].Calls[0] = Hop{Service: "leaf", AttemptTimeout: 55 * millisecond}
	want(t, "own timeout: refused", play(t, s, once()).Totals.QueueFull, 0)
	want(t, "own timeout: too near", play(t, s, once()).Totals.Succeeded, 0)
}

// A caller that is cancelled, or a crash, ends the work that a service does, even
// in the middle of a call of its own, whose end then means nothing.
func TestWorkThatEndsDuringAHop(t *testing.T) {
	s := Scenario{
		Horizon: 3 * time.Second,
		Services: []Service{
			{Name: "api", Workers: 1, CancelWork: true, Calls: []Hop{{Service: "leaf"}}},
			{Name: "leaf", Time: fixed(200 * millisecond)},
		},
		Fleets: callsAt(1000*millisecond, 1060*millisecond),
	}
	s.Fleets[0].AttemptTimeout = 50 * millisecond
	w, r := playWorld(t, s, Contender{Policy: once()}, Options{})
	want(t, "cancelled: succeeded", r.Totals.Succeeded, 1)
	want(t, "busy", w.services[0].hosts[0].busy, 0)
	s.Fleets[0].AttemptTimeout = 0
	s.Services[0].Faults = []Fault{{Kind: Crash, At: 1050 * millisecond, For: millisecond}}
	w, r = playWorld(t, s, Contender{Policy: once()}, Options{})
	want(t, "crashed: succeeded", r.Totals.Succeeded, 1)
	want(t, "crashed: lost", r.Totals.AttemptsFailed, 1)
	want(t, "busy", w.services[0].hosts[0].busy, 0)
	want(t, "jobs left", w.jobs.inUse(), 0)
	want(t, "flights left", w.flights.inUse(), 0)
}

// A service that calls on behalf of somebody who has gone does not try again: the
// caller goes at 1.05 s, and the leaf fails at 1.01 and 1.04 s.
func TestOrphansMakeNoMoreAttempts(t *testing.T) {
	s := Scenario{
		Horizon: 3 * time.Second, Step: millisecond,
		Services: []Service{
			{Name: "api", Workers: 1, Calls: []Hop{{Service: "leaf", Policy: "stubborn"}}},
			{Name: "leaf", Errors: 1, ErrorTime: 10 * millisecond},
		},
		Fleets: callsAt(time.Second),
	}
	s.Fleets[0].AttemptTimeout = 50 * millisecond
	stubborn := []Contender{{Name: "stubborn", Policy: retrying(20, 20*millisecond)}}
	attempts := func() int64 {
		w, r := playWorld(t, s, Contender{Policy: once()}, Options{Named: stubborn})
		want(t, "flights left", w.flights.inUse(), 0)
		return r.Totals.Attempts
	}
	want(t, "to the end", attempts(), 20)
	s.Services[0].CancelWork = true
	want(t, "cancelled", attempts(), 2)
	s.Services[0].CancelWork = false
	s.Services[0].Faults = []Fault{{Kind: Crash, At: 1050 * millisecond, For: 1}}
	want(t, "crashed", attempts(), 2)
}

func TestPoliciesByName(t *testing.T) {
	s := layers("nobody's")
	s.Fleets[0].Policy = "somebody's"
	_, err := newWorld(&s, Contender{Name: "it"}, Options{})
	for _, field := range []string{"Services[0].Calls[0].Policy", "Fleets[0].Policy"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%v: does not name %s", err, field)
		}
	}
	s = layers()
	s.Fleets[0].Policy = "none"
	want(t, "none", play(t, s, retrying(4, 0)).Totals.Attempts, 1)
	s.Fleets[0].Policy = "it"
	want(t, "the contender's own name", play(t, s, retrying(4, 0)).Totals.Attempts, 4)
	// A wrong policy is an error with the place of the mistake.
	s.Fleets[0].Policy = ""
	_, err = newWorld(&s, Contender{Name: "bad", Policy: lull.Policy{Attempts: -1}}, Options{})
	if err == nil || !strings.Contains(err.Error(), "Fleets[0].Policy") || !strings.Contains(err.Error(), "Attempts") {
		t.Errorf("a bad policy: %v", err)
	}
	// Patience beyond the policy's deadline is as much as that.
	s.Fleets[0].AttemptTimeout = time.Minute
	if _, err := newWorld(&s, Contender{Policy: lull.Policy{Deadline: time.Second}}, Options{}); err != nil {
		t.Error(err)
	}
}
