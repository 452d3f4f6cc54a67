package estimate

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

func logNormal(mean, sigma float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return mean * math.Exp(sigma*r.NormFloat64()-sigma*sigma/2) }
}

// usual is a world in which nothing happens: 200 requests a second of 50 ms, for three minutes.
func usual() made {
	return made{seed: 1, length: 180, most: 200, work: logNormal(0.05, 0.5)}
}

func learned(t *testing.T, data *observed.Data) World {
	t.Helper()
	w, err := Make(data)
	if err != nil {
		t.Fatal(err)
	}
	text, err := scenario.FormatLearned(w.Scenario, w.Learned)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := scenario.ParseLearned("world", text); err != nil {
		t.Errorf("the world is not valid: %v", err)
	}
	return w
}

// asked reports whether there is a question about the value.
func (w *World) asked(path string) bool {
	return slices.ContainsFunc(w.Learned.Unknown, func(q scenario.Question) bool { return q.Path == path })
}

func (w *World) within(t *testing.T, values map[string]float64) {
	t.Helper()
	for name, v := range values {
		if ok, _, text := w.lies(name, v); !ok {
			t.Error(text)
		}
	}
}

func TestIncidents(t *testing.T) {
	t.Parallel()
	during := [2]float64{60.3, 90.3}
	for name, c := range map[string]struct {
		change func(m *made)
		kind   sim.FaultKind
		values map[string]float64
	}{
		"stall, worked off": {func(m *made) { m.workers, m.stall = 14, [2]float64{60.3, 64.3} }, sim.Stall,
			map[string]float64{"services.0.faults.0.at": 59.3, "services.0.faults.0.for": 4, "services.0.workers": 14, "capacity": 280}},
		"stall, with retries": {func(m *made) { m.timeout, m.retries, m.stall = 1, 2, during }, sim.Stall,
			map[string]float64{"services.0.faults.0.at": 59.3, "services.0.faults.0.for": 30, "attempt timeout": 1}},
		"stall, and work for nobody": {func(m *made) { m.workers, m.timeout, m.stall = 14, 1, [2]float64{60.3, 70.3} }, sim.Stall,
			map[string]float64{"services.0.faults.0.at": 59.3, "services.0.faults.0.for": 10, "attempt timeout": 1}},
		"errors": {func(m *made) { m.erring, m.erringBy = during, 0.3 }, sim.Errors,
			map[string]float64{"services.0.faults.0.at": 59.3, "services.0.faults.0.for": 30, "services.0.faults.0.share": 0.3}},
		"slow-down": {func(m *made) { m.slowing, m.slowBy = during, 4 }, sim.SlowDown,
			map[string]float64{"services.0.faults.0.at": 59.3, "services.0.faults.0.for": 30, "services.0.faults.0.share": 0.25}},
		"brown-out": {func(m *made) { m.workers, m.brown, m.brownBy = 14, during, 0.5 }, sim.BrownOut,
			map[string]float64{"services.0.faults.0.at": 59.3, "services.0.faults.0.for": 30, "services.0.faults.0.share": 0.5}},
		"crash": {func(m *made) { m.down = during }, sim.Crash,
			map[string]float64{"services.0.faults.0.at": 59.3, "services.0.faults.0.for": 30}},
		"crash, cold": {func(m *made) { m.down, m.cold = during, 8 }, sim.Crash,
			map[string]float64{"services.0.faults.0.at": 59.3, "services.0.faults.0.for": 30}},
	} {
		m := usual()
		c.change(&m)
		w := learned(t, m.fly())
		f := w.Scenario.Services[0].Faults
		if len(f) != 1 || f[0].Kind != c.kind {
			t.Errorf("%s: faults %v\n%s", name, f, w.Happened)
			continue
		}
		w.within(t, c.values)
		if m.cold > 0 && (f[0].Cold < 5 || f[0].Cold > 9 || f[0].Warmup < 15*time.Second || f[0].Warmup > 35*time.Second) {
			t.Errorf("%s: cold %v for %v", name, f[0].Cold, f[0].Warmup)
		}
		if !strings.HasPrefix(w.Happened, "This happened: what looks like "+map[bool]string{false: "a "}[c.kind == sim.Errors]+c.kind.String()) {
			t.Errorf("%s: %s", name, w.Happened)
		}
	}
}

// Of two kinds of requests the slow one hides that all take longer, if only the slowest are looked at: the median shows it.
func TestSlowDownOfMixedTimes(t *testing.T) {
	t.Parallel()
	m := usual()
	m.work = func(r *rand.Rand) float64 {
		if r.Float64() < 0.1 {
			return 0.05 * r.ExpFloat64()
		}
		return 0.004 * r.ExpFloat64()
	}
	m.slowing, m.slowBy = [2]float64{60.3, 90.3}, 2.5
	w := learned(t, m.fly())
	if f := w.Scenario.Services[0].Faults; len(f) != 1 || f[0].Kind != sim.SlowDown {
		t.Errorf("%v, %s", f, w.Happened)
	}
	w.within(t, map[string]float64{"services.0.faults.0.at": 59.3, "services.0.faults.0.for": 30, "service time p50": 0.0032})
}

// What was a little slow some seconds before is no part of the incident.
func TestSlowMomentBeforeAStall(t *testing.T) {
	t.Parallel()
	m := usual()
	m.workers, m.slowing, m.slowBy, m.stall = 24, [2]float64{56.3, 62.3}, 1.2, [2]float64{66.3, 70.3}
	s := coarse(m.fly().Series)
	s.findCalm()
	if len(s.incidents) != 1 || s.incidents[0].from < 65 || s.incidents[0].from > 67 {
		t.Errorf("incidents %v", s.incidents)
	}
}

// Where much is to do, requests wait now and then, and the line is full now and then. That is normal, and what is refused then is no error of its own.
func TestWaitsInPeace(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		m := made{seed: seed, length: 400, most: 60, workers: 2, limit: 6, work: func(r *rand.Rand) float64 { return 0.025 * r.ExpFloat64() }}
		w := learned(t, m.fly())
		check.Equal(t, w.Happened, "Nothing happened that is not normal.", "what happened")
		w.within(t, map[string]float64{"services.0.errors": 0, "service time p50": 0.0364})
	}
}

func TestPeace(t *testing.T) {
	t.Parallel()
	m := usual()
	w := learned(t, m.fly())
	check.Equal(t, w.Happened, "Nothing happened that is not normal.", "what happened")
	check.Equal(t, w.Unknown, "Not known: how many requests the service works on at a time; how many processes call the service.", "what is not known")
	s := w.Scenario.Services[0]
	if s.Workers != 0 || s.Queue.Limit != 0 || len(w.Scenario.Fleets[0].Arrivals.Ramp) > 0 || w.Learned.Zero != "2026-11-29T12:00:01Z" {
		t.Errorf("%+v, %s", s, w.Learned.Zero)
	}
	o := w.Learned.Observed
	if len(o.Attempts) != 177 || o.Calls[0] != -1 || math.Abs(o.Attempts[9]-200) > 60 || o.Failed[9] != 0 || math.Abs(o.P50[9]-0.044) > 0.01 {
		t.Errorf("observed %d steps: %v %v %v %v", len(o.Attempts), o.Calls[0], o.Attempts[9], o.Failed[9], o.P50[9])
	}
}

func TestArrivals(t *testing.T) {
	t.Parallel()
	m := usual()
	m.even = true
	w := learned(t, m.fly())
	check.Equal(t, w.Scenario.Fleets[0].Arrivals.Kind, sim.Constant, "as by a clock")
	m = usual()
	m.most, m.rate = 400, func(at float64) float64 { return 100 + 250*float64(int(at*1.7)%3/2) }
	w = learned(t, m.fly())
	if ok, known, _ := w.lies("dispersion of arrivals", 1); ok || !known {
		t.Errorf("they come in bursts: %v", w.Learned.Seen)
	}
	w.within(t, map[string]float64{"fleets.0.arrivals.rate": 100 + 250.0/3})
	// More of them come, and wait.
	m = usual()
	m.seed, m.most, m.workers, m.rate = 9, 600, 20, func(at float64) float64 {
		if at > 60 && at < 80 {
			return 600
		}
		return 200
	}
	w = learned(t, m.fly())
	w.within(t, map[string]float64{"fleets.0.arrivals.ramp.2.factor": 3, "services.0.workers": 20, "capacity": 400})
	if a := w.Scenario.Fleets[0].Arrivals; len(a.Ramp) != 5 || a.Ramp[2].At.Round(time.Second) != 59*time.Second || a.Ramp[4].At.Round(time.Second) != 79*time.Second {
		t.Errorf("ramp %v", a.Ramp)
	}
	if !strings.HasPrefix(w.Happened, "This happened: more calls came, up to 3") || len(w.Scenario.Services[0].Faults) > 0 {
		t.Error(w.Happened)
	}
}

// Who measures calls knows that what came in the incident was retries; a server asks.
func TestRetries(t *testing.T) {
	t.Parallel()
	m := usual()
	m.retries, m.erring, m.erringBy = 2, [2]float64{60.3, 120}, 0.8
	server := learned(t, m.fly())
	m.calls = true
	both := learned(t, m.fly())
	m.counted, m.edges = true, []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5}
	for name, w := range map[string]World{"the server": server, "both": both, "counters of calls, which end up to 2 s after they began": learned(t, m.fly())} {
		// Of 100 calls 80 fail once, 64 twice and 51 three times: 144 retries for 195.
		w.within(t, map[string]float64{"fleets.0.arrivals.rate": 200, "retries for a failed attempt, by the load in incidents": 144.0 / 195, "services.0.faults.0.share": 0.8})
		if w.asked("fleets.0.arrivals.ramp") != (name == "the server") || len(w.Scenario.Fleets[0].Arrivals.Ramp) > 0 {
			t.Errorf("%s: %v %v", name, w.Learned.Unknown, w.Scenario.Fleets[0].Arrivals.Ramp)
		}
	}
	check.Equal(t, both.Scenario.Fleets[0].Processes, 1, "processes")
}

// Who counts retries knows them, also if a moment is missing.
func TestCountedRetries(t *testing.T) {
	t.Parallel()
	m := usual()
	m.errors, m.retries = 0.1, 1
	d := m.fly()
	s := d.Series[0]
	s.Side = observed.Attempts
	for i := range s.Points {
		p := &s.Points[i]
		p.Retries = p.Ended["500"].N / 2 // nearly
		p.Missing = i == 70
	}
	w := learned(t, d)
	w.within(t, map[string]float64{"fleets.0.arrivals.rate": 209, "retries for a failed attempt": 0.5}) // of 220 attempts 22 fail, and 11 are said to be retries
	if w.asked("fleets.0.arrivals.ramp") {
		t.Error("asked for what is known")
	}
}

// A proxy sees callers go, and the service behind it does the work for them all the same: together they show how long it really stood still.
func TestPlaces(t *testing.T) {
	t.Parallel()
	m := usual()
	m.workers, m.timeout, m.stall, m.inside = 14, 1, [2]float64{60.3, 70.3}, true
	w := learned(t, m.fly())
	w.within(t, map[string]float64{"services.0.faults.0.at": 59.3, "services.0.faults.0.for": 10, "services.0.workers": 14, "attempt timeout": 1, "fleets.0.arrivals.rate": 200})
	if f := w.Scenario.Services[0].Faults; len(f) != 1 || f[0].For < 9*time.Second || f[0].For > 11*time.Second || len(w.Problems) > 0 {
		t.Errorf("%v %v", f, w.Problems)
	}
	if o := w.Learned.Observed; o.Failed[70] != 1 {
		t.Errorf("%v failed for the callers while it worked off what waited", o.Failed[70])
	}
}

// When more come than it can do, what is cut off and refused shows whom it works for, and how many can wait.
func TestQueue(t *testing.T) {
	t.Parallel()
	m := usual()
	m.step, m.most, m.workers, m.timeout, m.limit, m.rate = 0.2, 500, 14, 1, 600, func(at float64) float64 {
		if at > 60 && at < 90 {
			return 500
		}
		return 200
	}
	w := learned(t, m.fly())
	w.within(t, map[string]float64{"services.0.queue.limit": 600, "services.0.workers": 14, "capacity": 280})
	if w.Scenario.Services[0].CancelWork || w.asked("services.0.cancel_work") || w.asked("services.0.queue.limit") {
		t.Errorf("%+v\n%v", w.Scenario.Services[0].Queue, w.Learned.Unknown)
	}
}

// How many can wait is not stated more exactly than the steps show it, and not at all if nobody knows when requests began.
func TestQueueOfCoarseMeasurements(t *testing.T) {
	t.Parallel()
	m := usual()
	m.most, m.workers, m.limit, m.rate = 500, 14, 25, func(at float64) float64 {
		if at > 60 && at < 90 {
			return 500
		}
		return 200
	}
	w := learned(t, m.fly())
	w.within(t, map[string]float64{"services.0.queue.limit": 25})
	m.counted, m.edges, m.step = true, buckets, 5
	if w = learned(t, m.fly()); !w.asked("services.0.queue.limit") {
		t.Errorf("%+v", w.Scenario.Services[0])
	}
}

// What it answers while requests wait is its capacity, also if single steps differ much because a few requests take long, and if counters alone were measured.
func TestCapacityOfMixedTimes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		m := made{seed: seed, length: 300, most: 400, workers: 4, limit: 60, rate: func(at float64) float64 {
			if at > 141.7 && at < 183.2 {
				return 400
			}
			return 80
		}, work: func(r *rand.Rand) float64 { // 25 ms in the mean: 160 requests a second
			if r.Float64() < 0.04 {
				return 0.4 * r.ExpFloat64()
			}
			return 0.009375 * r.ExpFloat64()
		}}
		if seed%2 == 1 {
			m.edges, m.step, m.counted = buckets, 5, true
		}
		w := learned(t, m.fly())
		i := slices.IndexFunc(w.Learned.Seen, func(f scenario.Fact) bool { return f.What == "capacity" })
		if i < 0 {
			t.Errorf("%d: not known", seed)
		} else if f := w.Learned.Seen[i]; math.Abs((parsed(f.Low)+parsed(f.High))/2-160) > 16 {
			t.Errorf("%d: %v", seed, f)
		}
	}
}

func TestHosts(t *testing.T) {
	t.Parallel()
	well, sick := usual(), usual()
	sick.seed, sick.erring, sick.erringBy = 2, [2]float64{60.3, 90.3}, 0.5
	a, b := well.fly(), sick.fly()
	a.Series[0].Host, b.Series[0].Host = "host-1", "host-2"
	w := learned(t, &observed.Data{Series: append(a.Series, b.Series...)})
	s := w.Scenario.Services[0]
	if s.Hosts != 2 || len(s.Faults) != 1 || s.Faults[0].Hosts != 1 || s.Faults[0].Kind != sim.Errors {
		t.Errorf("%+v", s)
	}
	w.within(t, map[string]float64{"fleets.0.arrivals.rate": 400, "services.0.faults.0.share": 0.5})
	if !strings.Contains(w.Happened, "of 1 of 2 hosts") {
		t.Error(w.Happened)
	}
}

// What was measured twice is compared, and what two services did stands side by side.
func TestSeveral(t *testing.T) {
	t.Parallel()
	m := usual()
	d, other := m.fly(), m.fly()
	other.Series[0].Side, other.Series[0].Source = observed.Attempts, "callers"
	for i := range other.Series[0].Points {
		for _, b := range other.Series[0].Points[i].Ended {
			b.N *= 2
		}
		other.Series[0].Points[i].Began *= 2
	}
	w := learned(t, &observed.Data{Series: append(d.Series, other.Series...)})
	if len(w.Problems) != 1 || !strings.Contains(w.Problems[0].Text, "does not see all") {
		t.Errorf("problems %v", w.Problems)
	}
	a, b := m.fly(), m.fly()
	a.Series[0].Service, b.Series[0].Service = "db", "cache"
	w = learned(t, &observed.Data{Series: append(a.Series, b.Series...)})
	if s := w.Scenario; len(s.Services) != 2 || s.Services[1].Name != "cache" || s.Fleets[1].Calls != "cache" || !strings.Contains(w.Normal, "; cache got ") {
		t.Errorf("%+v\n%s", s.Services, w.Normal)
	}
	w.within(t, map[string]float64{"fleets.1.arrivals.rate": 200, "service time p50 of cache": 0.05 * math.Exp(-0.125)})
}

// The attempts of a proxy, which are in its log, are not those of its callers. Metrics of all have one source.
func TestCallersOfAProxy(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"proxy", "metrics"} {
		m := usual()
		d, own, callers := m.fly(), m.fly(), m.fly()
		own.Series[0].Side, own.Series[0].Source = observed.Attempts, "proxy"
		callers.Series[0].Side, callers.Series[0].Source, callers.Series[0].Processes = observed.Attempts, "metrics", 8
		if d.Series[0].Source = source; source == "metrics" {
			d.Series[0].Exact, callers.Series[0].Exact = false, false
			own.Series = nil
		}
		w := learned(t, &observed.Data{Series: slices.Concat(d.Series, own.Series, callers.Series)})
		if n := w.Scenario.Fleets[0].Processes; n != 8 || w.asked("fleets.0.processes") {
			t.Errorf("%s: %d processes", source, n)
		}
	}
}

// Some are cut off in peace, and some take longer than the last bucket: how long is a question.
func TestTails(t *testing.T) {
	t.Parallel()
	m := usual()
	m.timeout, m.edges = 0.2, buckets
	w := learned(t, m.fly())
	if !w.asked("services.0.time") {
		t.Error("nobody asks how long those would have taken that were cut off")
	}
	w.within(t, map[string]float64{"attempt timeout": 0.2})
	m.timeout, m.edges = 0, buckets[:4]
	if w = learned(t, m.fly()); !w.asked("services.0.time") || w.Scenario.Services[0].Time.Bars[4].UpTo != 100*time.Millisecond {
		t.Errorf("%v", w.Scenario.Services[0].Time.Bars)
	}
}

// A world of a long time is the part with the incident.
func TestFrame(t *testing.T) {
	t.Parallel()
	m := usual()
	m.length, m.most, m.work = 5*3600, 10, logNormal(0.005, 0.5)
	m.erring, m.erringBy = [2]float64{4 * 3600, 4*3600 + 120}, 1
	m.step = 5
	w := learned(t, m.fly())
	s := w.Scenario
	if s.Horizon > longest || s.Horizon < longest-time.Minute || len(s.Services[0].Faults) != 1 || len(w.Learned.Observed.Calls) > mostShown {
		t.Errorf("%v %v, %d steps", s.Horizon, s.Services[0].Faults, len(w.Learned.Observed.Calls))
	}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	m := usual()
	w := learned(t, m.fly())
	of := func(path string) scenario.Question {
		return w.Learned.Unknown[slices.IndexFunc(w.Learned.Unknown, func(q scenario.Question) bool { return q.Path == path })]
	}
	if err := w.Learned.Answer(&w.Scenario, of("services.0.workers"), "many"); err == nil {
		t.Error("many is a number")
	}
	if err := w.Learned.Answer(&w.Scenario, of("services.0.workers"), "20"); err != nil || w.asked("services.0.workers") || !w.asked("services.0.queue.limit") || w.Scenario.Services[0].Workers != 20 {
		t.Errorf("%v, %+v", err, w.Scenario.Services[0])
	}
	w.within(t, map[string]float64{"services.0.workers": 20})
}

func TestTooLittle(t *testing.T) {
	t.Parallel()
	m := usual()
	m.length = 5
	for want, d := range map[string]*observed.Data{
		"nothing was measured":                 {},
		"5 steps of 1s were measured: want at": m.fly(),
	} {
		if _, err := Make(d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestRate(t *testing.T) {
	for a, want := range map[float64]string{12.34: "12.34 requests a second", 0.05: "3 requests a minute", 0.005: "18 requests an hour"} {
		check.Equal(t, rate(a), want, "a rate")
	}
}
