package estimate

import (
	"fmt"
	"testing"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
	"github.com/lullgo/lull/lab/sim"
)

// Callers that are cut off see no answer for long. What is refused before that, and that nothing is afterwards, shows what the service did.
func TestWorkedOff(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(m *made)
		kind   sim.FaultKind
		values map[string]float64
	}{
		"stall":     {func(m *made) { m.stall = [2]float64{60.3, 68.3} }, sim.Stall, map[string]float64{"services.0.faults.0.at": 60.1, "services.0.faults.0.for": 8}},
		"brown-out": {func(m *made) { m.brown, m.brownBy = [2]float64{60.3, 75.3}, 4./14 }, sim.BrownOut, map[string]float64{"services.0.faults.0.share": 4. / 14}},
	} {
		for seed := range uint64(5) {
			m := usual()
			m.seed, m.step, m.most, m.workers, m.timeout, m.limit, m.retries = seed, 0.2, 120, 14, 1, 600, 1
			c.change(&m)
			w := learned(t, m.fly())
			v := &w.Scenario.Services[0]
			if f := v.Faults; len(f) != 1 || f[0].Kind != c.kind || w.asked("services.0.workers") || v.CancelWork || w.asked("services.0.cancel_work") {
				t.Errorf("%s, seed %d: faults %v\n%s\n%v", name, seed, f, w.Happened, w.Learned.Unknown)
				continue
			}
			w.within(t, map[string]float64{"services.0.workers": 14, "services.0.queue.limit": 600})
			w.within(t, c.values)
			if end := v.Faults[0].At + v.Faults[0].For - seconds(max(m.stall[1], m.brown[1])-0.2, 9); end.Abs() > 300*time.Millisecond {
				t.Errorf("%s, seed %d: it ends %v late", name, seed, end)
			}
		}
	}
}

// A service that is down writes nothing. Its log shows when, its callers' counters show why, and the work that waited how long its cache was cold.
func TestColdCache(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		m := usual()
		m.seed, m.step, m.most, m.workers, m.timeout, m.limit, m.inside = seed, 0.2, 180, 14, 1, 600, true
		m.down, m.cold = [2]float64{60.3, 62.3}, 4
		d := m.fly()
		callers := newSteps(d.Series[:1], time.Second).Series
		callers.Side, callers.Source = observed.Attempts, "callers"
		for i := range callers.Points {
			callers.Points[i].Began = -1
		}
		d.Series = []*observed.Series{callers, d.Series[1]}
		w := learned(t, d)
		f := w.Scenario.Services[0].Faults
		if len(f) != 1 || f[0].Kind != sim.Crash || f[0].Cold < 3 || f[0].Cold > 5.5 || f[0].Warmup < 20*time.Second || f[0].Warmup > 40*time.Second {
			t.Errorf("seed %d: faults %v\n%s", seed, f, w.Happened)
			continue
		}
		w.within(t, map[string]float64{"services.0.faults.0.at": 60.1, "services.0.faults.0.for": 2, "services.0.faults.0.warmup": 30, "services.0.faults.0.cold": 4})
		if f[0].For < 1800*time.Millisecond || f[0].For > 2200*time.Millisecond {
			t.Errorf("seed %d: down for %v", seed, f[0].For)
		}
	}
}

// A host that stands still has a full line, and the others have not.
func TestSickHost(t *testing.T) {
	t.Parallel()
	for place := range 2 { // a proxy, and the service
		var all observed.Data
		for host := range 3 {
			m := usual()
			m.seed, m.step, m.workers, m.limit, m.timeout, m.inside = uint64(host), 0.2, 14, 600, 1, true
			if host == 1 {
				m.stall = [2]float64{60.3, 66.3}
			}
			s := m.fly().Series[place]
			s.Host, all.Series = fmt.Sprint(host), append(all.Series, s)
		}
		w := learned(t, &all)
		if v := w.Scenario.Services[0]; v.Hosts != 3 || len(v.Faults) != 1 || v.Faults[0].Hosts != 1 || v.Faults[0].Kind != sim.Stall {
			t.Errorf("place %d: %+v", place, v)
		}
		w.within(t, map[string]float64{"services.0.workers": 14, "services.0.queue.limit": 600, "services.0.faults.0.for": 6})
	}
}
