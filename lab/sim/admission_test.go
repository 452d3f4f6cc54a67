package sim

import (
	"math"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/server/admission"
)

// long is set in the lab.
var long bool

// overloaded is the built-in scenario "admission": three times what the service can do.
func overloaded(on bool) Scenario {
	return Scenario{
		Horizon: 60 * time.Second, Warmup: 20 * time.Second,
		Services: []Service{{
			Name: "api", Workers: 100, Queue: Queue{Limit: 10000}, Admission: Admission{On: on},
			Time: Distribution{Kind: Exponential, Mean: 100 * millisecond},
		}},
		Fleets: []Fleet{{Calls: "api", Processes: 100, Arrivals: Arrivals{Rate: 3000}, AttemptTimeout: time.Second}},
	}
}

// naive is a client that reads nothing out of an answer but that it failed.
func naive(attempts int, wait time.Duration) Contender {
	return Contender{Name: "naive", Policy: retrying(attempts, wait), Verdict: func(v lull.Verdict) lull.Verdict {
		if v.Kind == lull.KindOverloaded || v.Kind == lull.KindRateLimited {
			v.Kind = lull.KindTransient
		}
		v.After = 0
		return v
	}}
}

// Goodput stays at what the service can do, whatever its clients do; without admission
// control the same clients bring it down. Those that obey make no more attempts than calls.
func TestAdmissionHoldsTheGoodput(t *testing.T) {
	if testing.Short() {
		t.Skip("not short: statistics on one goroutine")
	}
	for _, c := range []struct {
		name          string
		c             Contender
		with, without float64 // goodput as a share of the capacity: at least, at most
		attempts      float64 // per call, with admission: at most
	}{
		{"at once", naive(4, 0), 0.9, 0.01, 4},
		{"after 100 ms", naive(4, 100*millisecond), 0.9, 0.01, 4},
		{"no retry", naive(1, 0), 0.9, 0.01, 1},
		{"zero policy", Contender{}, 0.9, 0.5, 1.1},
	} {
		var share, attempts [2]float64
		for i, on := range []bool{false, true} {
			s := overloaded(on)
			if !long {
				s.Horizon, s.Warmup = s.Horizon/2, s.Warmup/2
			}
			_, r := playWorld(t, s, c.c, Options{Seed: 1})
			share[i] = float64(r.Totals.Succeeded) / (s.Horizon - s.Warmup).Seconds() / 1000
			attempts[i] = r.Totals.Amplification
			conserved(t, &s, r)
			check.Equal(t, r.Totals.Shed > 0, on, "%s: %d attempts shed, admission", c.name, r.Totals.Shed)
		}
		t.Logf("%s: without %.3f of the capacity with %.2f attempts a call, with admission %.3f with %.2f", c.name, share[0], attempts[0], share[1], attempts[1])
		if share[0] > c.without || share[1] < c.with {
			t.Errorf("%s: goodput is %.3f of the capacity without admission, want at most %.2f; with it %.3f, want at least %.2f", c.name, share[0], c.without, share[1], c.with)
		}
		if attempts[1] > c.attempts || c.attempts < 2 && attempts[1] < 0.9 {
			t.Errorf("%s: %.2f attempts a call, want at most %.2f", c.name, attempts[1], c.attempts)
		}
	}
}

// gated1 is one behind a gate that lets in one at a time.
func gated1(c admission.Config, at ...int) Scenario {
	c.Limit = 1
	s := one(Queue{}, at...)
	s.Services[0].Admission = Admission{On: true, Config: c}
	return s
}

// gateOf is how the gate of the first service stands.
func gateOf(w *world) admission.Snapshot { return w.services[0].hosts[0].gate.Snapshot(w.now) }

func TestAdmissionLetsOthersWait(t *testing.T) {
	w, r := playWorld(t, gated1(admission.Config{}, 1000, 1010), Contender{Policy: once()}, Options{})
	wantDone(t, "one after the other", r, [2]int{1100, 100}, [2]int{1200, 190})
	want(t, "shed", r.Totals.Shed, 0)
	want(t, "admitted", gateOf(w).Departed(admission.Done), 2)
	want(t, "waited", gateOf(w).WaitSum, 90*millisecond)
	want(t, "visitors left", w.visitors.inUse(), 0)

	// The second has waited long enough at 1.06 s, and is refused then.
	s := gated1(admission.Config{MaxWait: 50 * millisecond}, 1000, 1010)
	w, r = playWorld(t, s, Contender{Policy: once()}, Options{})
	wantTimes(t, "shed", moments(r.Series, r.Series.Failed), 1060*millisecond)
	want(t, "shed", r.Totals.Shed, 1)
	want(t, "refused", gateOf(w).Refused(admission.Waited), 1)
	want(t, "queue full", r.Totals.QueueFull, 0)

	// Behind the gate is the service's own queue, and its workers.
	s = one(Queue{}, 1000, 1010)
	s.Services[0].Admission = Admission{On: true}
	w, r = playWorld(t, s, Contender{Policy: once()}, Options{})
	want(t, "queue full", r.Totals.QueueFull, 1)
	want(t, "failed", gateOf(w).Departed(admission.Failed), 1)

	// What waits is seen in the series.
	s = gated1(admission.Config{}, 1000, 1010, 1020)
	r = play(t, s, once())
	want(t, "queue at 1.05 s", r.Series.Queue[1050], 2)
}

// A refusal has advice: to come back after so many whole seconds, or not to.
func TestAdmissionReportsWhatToDo(t *testing.T) {
	nobody := admission.Config{MaxWait: -1}
	r := play(t, gated1(nobody, 1000, 1010), retrying(2, millisecond))
	at := moments(r.Series, r.Series.Retries)
	if len(at) != 1 || at[0] < 2010*millisecond || at[0] > 2510*millisecond {
		t.Errorf("retry at %v, want one 1 to 1.5 s after 1.01 s", at)
	}
	want(t, "both succeed", r.Totals.Succeeded, 2)

	// A retry is refused while first attempts are, with the advice not to come back. Two
	// naive clients, which ignore that, come again and again.
	s := gated1(nobody, 1000, 1010)
	_, r = playWorld(t, s, naive(3, 10*millisecond), Options{})
	want(t, "attempts", r.Totals.Attempts, 1+3)
	want(t, "shed", r.Totals.Shed, 3)
	hasty := func(v lull.Verdict) lull.Verdict { v.After = 0; return v }
	w, r := playWorld(t, s, Contender{Policy: retrying(3, 10*millisecond), Verdict: hasty}, Options{})
	want(t, "told not to retry", r.reason(engine.Overloaded), 1)
	want(t, "attempts", r.Totals.Attempts, 1+2)
	want(t, "refused as a retry", gateOf(w).Refused(admission.ShedRetry), 1)
}

// A refusal means to a simulated client what lullhttp reads out of that of the
// middleware.
func TestRefusalsAreReadAsByLullHTTP(t *testing.T) {
	w := build(t, gated1(admission.Config{}, 1), Contender{Policy: once()}, Options{})
	for _, after := range []time.Duration{1, millisecond, time.Second - 1, time.Second, time.Second + 1, 1500 * millisecond, 29 * time.Second, 29*time.Second + 1, 30 * time.Second} {
		for _, dont := range []bool{false, true} {
			d := admission.Decision{Outcome: admission.Refused, RetryAfter: after, DontRetry: dont}
			h := http.Header{}
			d.SetHeader(h)
			hint, ok := lullhttp.ParseHint(h, 503, time.Time{})
			v := w.origins[0].verdicts[w.refusal(d)]
			kind := lull.KindRateLimited
			if dont {
				kind = lull.KindOverloaded
			}
			if !ok || v.After != hint.After || hint.Stop != dont || v.Kind != kind || v.Code != "503" || v.NeverSent {
				t.Errorf("%+v is %+v to a client, and %+v, %t in HTTP", d, v, hint, ok)
			}
		}
	}
}

// No wait is longer than the table of them: not with the longest times, and the worst luck.
func TestMostTold(t *testing.T) {
	g := must.Have(admission.New(admission.Config{Limit: 1, MaxWait: -1}, admission.WithRand(func() uint64 { return math.MaxUint64 })))
	var in, out admission.Ticket
	g.Arrive(0, admission.Request{}, &in)
	g.Depart(time.Hour, &in, admission.Done)
	g.Arrive(time.Hour, admission.Request{}, &in)
	var most time.Duration
	for i := range 1000 {
		most = max(most, g.Arrive(time.Hour+time.Duration(i)*time.Second, admission.Request{}, &out).RetryAfter)
	}
	if most > mostRetryAfter*time.Second || most <= (mostRetryAfter-1)*time.Second {
		t.Errorf("the longest wait is %v, and the table ends at %d s", most, mostRetryAfter)
	}
}

// After one call of 100 ms another is in work from 1.2 s on; a third comes at 1.21 s, for
// 150 ms: too late if it has to wait beyond 1.26 s.
func TestAdmissionKnowsDeadlines(t *testing.T) {
	s := patient(gated1(admission.Config{}, 1000, 1200, 1210), 1000, 1000, 150)
	w, r := playWorld(t, s, Contender{Policy: once()}, Options{})
	wantTimes(t, "refused", moments(r.Series, r.Series.Failed), 1260*millisecond)
	want(t, "too late", gateOf(w).Refused(admission.TooLate), 1)
	want(t, "wasted", r.Totals.Wasted, 0)

	s.Services[0].Admission.NoDeadlines = true
	w, r = playWorld(t, s, Contender{Policy: once()}, Options{})
	wantTimes(t, "timed out", moments(r.Series, r.Series.Failed), 1360*millisecond)
	want(t, "wasted", r.Totals.Wasted, 1)
	want(t, "of no use", gateOf(w).Departed(admission.Failed), 1)

	// Told when the caller goes, the service gives up what was done for it.
	s.Services[0].CancelWork = true
	w, r = playWorld(t, s, Contender{Policy: once()}, Options{})
	want(t, "wasted", r.Totals.Wasted, 0)
	want(t, "of no use", gateOf(w).Departed(admission.Failed), 1)
	want(t, "busy", w.services[0].hosts[0].busy, 0)

	// And who goes while it stands at the gate leaves it.
	s = patient(gated1(admission.Config{}, 1000, 1010, 1050), 1000, 20, 1000)
	s.Services[0].CancelWork, s.Services[0].Admission.NoDeadlines = true, true
	w, r = playWorld(t, s, Contender{Policy: once()}, Options{})
	wantDone(t, "the others", r, [2]int{1100, 100}, [2]int{1200, 150})
	want(t, "gone", gateOf(w).Refused(admission.Gone), 1)
	want(t, "shed", r.Totals.Shed, 0)
	want(t, "visitors left", w.visitors.inUse(), 0)
	want(t, "standing", w.services[0].hosts[0].atGate, 0)

	// The one that goes in the moment in which it is let in has not come in.
	s = patient(gated1(admission.Config{}, 1000, 1010, 1150), 1000, 90, 1000)
	s.Services[0].CancelWork, s.Services[0].Admission.NoDeadlines = true, true
	w, r = playWorld(t, s, Contender{Policy: once()}, Options{})
	wantDone(t, "the others", r, [2]int{1100, 100}, [2]int{1250, 100})
	want(t, "let in for nothing", gateOf(w).Departed(admission.Unmeasured), 1)
	want(t, "visitors left", w.visitors.inUse(), 0)
}

// What a gate draws for an attempt does not depend on what it has drawn for others.
func TestChanceAtTheGateIsTheAttempts(t *testing.T) {
	w := build(t, gated1(admission.Config{}, 1), Contender{Policy: once()}, Options{})
	w.visitors.take()
	drawn := func(key uint64, o gateQuestion) uint64 {
		w.gate(&job{key: key, visitor: 1}, o)
		return w.gateRandom()
	}
	first := drawn(1, gateArrive)
	for _, other := range []uint64{w.gateRandom(), drawn(2, gateArrive), drawn(1, gateLeave), drawn(1, gateDepart)} {
		if other == first {
			t.Errorf("%#x is drawn twice", first)
		}
	}
	want(t, "drawn again", drawn(1, gateArrive), first)
}

// In a crash a host loses the work in hand and the requests at its gate. The gate has room
// again.
func TestAdmissionForgetsInACrash(t *testing.T) {
	s := gated1(admission.Config{}, 1000, 1010, 1055, 1070)
	s.Services[0].Faults = []Fault{{Kind: Crash, At: 1050 * millisecond, For: 10 * millisecond}}
	w, r := playWorld(t, s, Contender{Policy: once()}, Options{})
	wantTimes(t, "lost and refused", moments(r.Series, r.Series.Failed), 1050*millisecond, 1050*millisecond, 1055*millisecond)
	wantDone(t, "after", r, [2]int{1170, 100})
	want(t, "seen since", gateOf(w).Arrived(admission.First), 1)
	want(t, "shed", r.Totals.Shed, 0)
	want(t, "visitors left", w.visitors.inUse(), 0)
}

// A request that fails after a while keeps its place at the gate until then, for no use. A
// request beyond the rate limit does not reach the gate.
func TestAdmissionStandsBeforeFailuresAndBehindTheRate(t *testing.T) {
	s := gated1(admission.Config{}, 1000, 1010)
	s.Services[0].Errors, s.Services[0].ErrorTime = 1, 50*millisecond
	w, r := playWorld(t, s, Contender{Policy: once()}, Options{})
	wantTimes(t, "failed", moments(r.Series, r.Series.Failed), 1050*millisecond, 1100*millisecond)
	want(t, "errors", r.Totals.Errors, 2)
	want(t, "of no use", gateOf(w).Departed(admission.Failed), 2)

	s.Services[0].CancelWork = true // the first goes at 1.02 s, and makes room
	w, r = playWorld(t, patient(s, 20, 1000), Contender{Policy: once()}, Options{})
	wantTimes(t, "failed", moments(r.Series, r.Series.Failed), 1020*millisecond, 1070*millisecond)
	want(t, "visitors left", w.visitors.inUse(), 0)

	s = gated1(admission.Config{}, 1000, 1010)
	s.Services[0].Rate = Rate{PerSecond: 1, Burst: 1}
	w, r = playWorld(t, s, Contender{Policy: once()}, Options{})
	want(t, "rate-limited", r.Totals.RateLimited, 1)
	want(t, "arrived", gateOf(w).Arrived(admission.First), 1)
}

// The gate knows which attempts are retries, also of the request that a call is made
// for, and which are hedges.
func TestAdmissionLearnsWhatComes(t *testing.T) {
	arrived := func(w *world, s int) [3]uint64 {
		g := w.services[s].hosts[0].gate.Snapshot(w.now)
		return [3]uint64{g.Arrived(admission.First), g.Arrived(admission.Retry), g.Arrived(admission.Hedge)}
	}
	deaf := naive(3, 0)
	s := layers("none", "none")
	s.Services[2].Admission = Admission{On: true}
	w, _ := playWorld(t, s, deaf, Options{})
	want(t, "attempts, retries not told", arrived(w, 2), [3]uint64{3, 0, 0})
	for i := range 2 {
		s.Services[i].Calls[0].OneLayer = true
	}
	w, _ = playWorld(t, s, deaf, Options{})
	want(t, "attempts, retries told", arrived(w, 2), [3]uint64{1, 2, 0})
	s.Services[1].Calls[0].OneLayer = false
	w, _ = playWorld(t, s, deaf, Options{})
	want(t, "attempts, told to half the way", arrived(w, 2), [3]uint64{3, 0, 0})

	s = layers()
	s.Services[0].Admission = Admission{On: true}
	w, _ = playWorld(t, s, deaf, Options{})
	want(t, "attempts of a fleet", arrived(w, 0), [3]uint64{1, 2, 0})

	// The second begins beside the first, the third when both have failed.
	s.Services[0].ErrorTime = 25 * millisecond
	p := retrying(0, 40*millisecond)
	p.Hedge = hedge.Config{Attempts: 3, Delay: 20 * millisecond, Share: -1, InFlight: 1}
	w, r := playWorld(t, s, Contender{Policy: p}, Options{})
	want(t, "hedges", r.Totals.Hedges, 1)
	want(t, "attempts of a hedged call", arrived(w, 0), [3]uint64{1, 1, 1})
}

// Each host has a gate of its own.
func TestEachHostHasItsGate(t *testing.T) {
	s := gated1(admission.Config{MaxWait: -1})
	s.Services[0].Hosts = 4
	s.Fleets = []Fleet{{Calls: "api", Arrivals: Arrivals{Kind: AtOnce, At: time.Second, Each: 100}}}
	w, r := playWorld(t, s, Contender{Policy: once()}, Options{})
	want(t, "succeeded", r.Totals.Succeeded, 4)
	want(t, "shed", r.Totals.Shed, 96)
	for h := range w.services[0].hosts {
		want(t, "admitted at a host", w.services[0].hosts[h].gate.Snapshot(w.now).Admitted(admission.First), 1)
	}
}

func guarded(s *Scenario) bool {
	return slices.ContainsFunc(s.Services, func(v Service) bool { return v.Admission.On })
}

// agree holds the gates to what the world knows.
func agree(t testing.TB, w *world) {
	gates := map[*admission.Controller]*gated{}
	for _, s := range w.services {
		for h := range s.hosts {
			if g := s.hosts[h].gate; g != nil {
				gates[g] = &gated{}
			}
		}
	}
	if len(gates) == 0 {
		return
	}
	for k := range w.jobs.used {
		if j := w.jobs.at(k); j.visitor != 0 {
			gates[w.services[j.service].hosts[j.host].gate].count(w, j)
		}
	}
	for _, s := range w.services {
		for i := range s.hosts {
			if h := &s.hosts[i]; h.gate != nil {
				gates[h.gate].agrees(t, w, h)
			}
		}
	}
}

// gated counts the attempts at one gate, as the world has them.
type gated struct{ standing, waiting, admitted int }

func (g *gated) count(w *world, j *job) {
	d := w.visitors.at(j.visitor - 1).decision
	switch {
	case j.state != jobAtGate:
		g.admitted++
		return
	case !w.settling(j):
		g.waiting++
	case d.Outcome == admission.Admitted:
		g.admitted++
	}
	g.standing++
}

// settling reports whether the gate has decided on an attempt that stands there, and the
// world is about to hear of it: then it is no longer the gate's to refuse.
func (w *world) settling(j *job) bool {
	return w.visitors.at(j.visitor-1).decision != (admission.Decision{Outcome: admission.Queued})
}

// agrees holds the gate to what the world knows: of the attempts that came, each is
// admitted, refused, or waits, and of those admitted each departs once.
func (g *gated) agrees(t testing.TB, w *world, h *host) {
	s := h.gate.Snapshot(w.now)
	var arrived, admitted, refused, departed uint64
	for _, c := range []admission.AttemptKind{admission.First, admission.Retry, admission.Hedge} {
		arrived += s.Arrived(c)
		admitted += s.Admitted(c)
	}
	for r := admission.Full; r <= admission.Gone; r++ {
		refused += s.Refused(r)
	}
	for _, r := range []admission.WorkResult{admission.Done, admission.Failed, admission.Unmeasured} {
		departed += s.Departed(r)
	}
	if s.InFlight != g.admitted || s.Waiting != g.waiting || h.atGate != g.standing {
		t.Fatalf("at %v the gate has %d in flight and %d waiting, %d of the world's stand there: want %+v", w.now, s.InFlight, s.Waiting, h.atGate, *g)
	}
	if arrived != admitted+refused+uint64(s.Waiting) || admitted != departed+uint64(s.InFlight) {
		t.Fatalf("at %v %d arrived, %d were admitted, %d refused, %d departed; %d in flight, %d waiting", w.now, arrived, admitted, refused, departed, s.InFlight, s.Waiting)
	}
}
