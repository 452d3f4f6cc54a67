package sim

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/sim/internal/draw"
	"github.com/lullgo/lull/server/admission"
	"github.com/lullgo/lull/throttle"
)

// dice gives a number below n.
type dice func(n int) int

func (d dice) one(of ...int) int { return of[d(len(of))] }

func (d dice) ms(of ...int) time.Duration { return time.Duration(d.one(of...)) * millisecond }

func (d dice) share() float64 { return float64(d.one(0, 0, 0, 1, 3, 10)) / 10 }

func (d dice) yes() bool { return d(2) == 1 }

// takes is how long something takes, with a mean of up to so many milliseconds.
func (d dice) takes(ms int) Distribution {
	if ms == 0 {
		return Distribution{}
	}
	m := time.Duration(ms) * millisecond
	return Distribution{
		Kind: DistributionKind(d(len(distributionKinds))), Mean: m / time.Duration(1+d(4)), Deviation: m / 10, Sigma: 0.5,
		Min: m / 10, Max: m, Slow: 0.1, SlowMean: m, Bars: []Bar{{m / 4, 1}, {m, 2}},
	}
}

// anyScenario is a scenario of two seconds with few events, and a policy for
// it.
func anyScenario(d dice) (Scenario, lull.Policy) {
	s := Scenario{Horizon: 2 * time.Second, Step: d.ms(0, 100, 300), Window: d.ms(0, 100, 700), Warmup: d.ms(0, 0, 500)}
	names := []string{"api", "b", "c"}[:1+d(3)]
	for i, name := range names {
		v := Service{
			Name: name, Hosts: d(4), Workers: d.one(0, 0, 1, 2, 5), Time: d.takes(50), CancelWork: d.yes(),
			Errors: d.share() / 3, ErrorTime: d.ms(0, 10), Deduplicates: d.yes(),
		}
		if v.Workers > 0 {
			v.Queue = Queue{Limit: d.one(0, 1, 3, 20), Order: Order(d(2)), DropExpired: d.yes(), RetryAfter: d.ms(0, 0, 100), DontRetry: d(4) == 0}
		}
		if d(3) == 0 {
			v.Admission = Admission{On: true, NoDeadlines: d.yes()}
			v.Admission.Config = admission.Config{
				Limit: d.one(0, 0, 1, 3), MaxWait: d.ms(0, 0, 5, 50) - time.Duration(d(2)), MaxQueue: d.one(0, 1, 3), RetryRatio: d.share() - 0.1,
			}
			if v.Admission.Config.MaxWait < 0 {
				v.Admission.Config.MaxQueue = 0
			}
		}
		if d(3) == 0 {
			v.Rate = Rate{PerSecond: float64(d.one(5, 50, 500)), Burst: d(4), RetryAfter: d.ms(0, 50)}
		}
		for k := i + 1; k < len(names); k++ {
			if d(3) > 0 {
				v.Calls = append(v.Calls, Hop{
					Service: names[k], Policy: []string{"", "none"}[d(2)], AttemptTimeout: d.ms(0, 20, 200), Deadline: d.yes(), OneLayer: d.yes(),
					Network: Network{Latency: d.takes(d.one(0, 1, 5)), Loss: d.share() / 4},
				})
			}
		}
		if v.Workers == 0 && len(v.Calls) == 0 {
			v.Contention = d(4) == 0
		}
		if !v.Contention {
			v.Congestion = d.ms(0, 0, 1, 10)
		}
		for range d(4) {
			v.Faults = append(v.Faults, Fault{
				Kind: FaultKind(d(len(faultKinds))), At: d.ms(0, 300, 777, 1000), For: d.ms(1, 50, 400), Every: d.ms(0, 0, 450),
				Share: d.share(), Hosts: min(d(3), max(v.Hosts, 1)), RetryAfter: d.ms(0, 0, 100), DontRetry: d(6) == 0, After: d.ms(0, 15),
				Warmup: d.ms(0, 200), Cold: float64(d.one(0, 3)),
			})
		}
		s.Services = append(s.Services, v)
	}
	for range 1 + d(2) {
		f := Fleet{
			Calls: names[d(len(names))], Processes: d(6), AttemptTimeout: d.ms(30, 100, 1000), Deadline: d.ms(0, 0, 300),
			NotIdempotent: d.yes(), Reload: Reload{Share: d.share(), After: d.takes(100), Times: d(4)},
			Network: Network{Latency: d.takes(d.one(0, 0, 5, 30)), Loss: d.share() / 4, LossBack: d.share() / 4},
		}
		f.Keyed = f.NotIdempotent && d.yes()
		a := &f.Arrivals
		switch *a = (Arrivals{Kind: ArrivalKind(d(len(arrivalKinds))), At: d.ms(0, 100)}); a.Kind {
		case Poisson, Constant:
			a.Rate = float64(d.one(10, 50, 200))
			if d.yes() {
				a.Ramp = []RampPoint{{500 * millisecond, d.share() * 2}, {700 * millisecond, 2 * d.share()}, {700 * millisecond, 1}}
			}
		case AtOnce:
			a.Within, a.Each = d.ms(0, 200), d(10)
		case Periodic:
			a.Every = d.ms(100, 333)
		case Closed:
			a.Each, a.Think = d(3), Distribution{Kind: Uniform, Min: millisecond, Max: d.ms(20, 500)}
		}
		if a.Kind != Closed && f.Reload.Times == 0 && d.yes() {
			f.Threads, f.Backlog = 1+d(3), d(4)
		}
		s.Fleets = append(s.Fleets, f)
	}
	p := lull.Policy{
		Attempts: 1 + d(4), AttemptTimeout: d.ms(20, 200, 2000), Deadline: 5 * time.Second, Timeouts: engine.TimeoutRetries(d(3)),
		Backoff: backoff.Schedule{Kind: backoff.Kind(d(3)), Base: d.ms(1, 10, 100), Jitter: backoff.Jitter(d(3)), FastFirst: d(3) == 0},
		Budget:  budget.Config{Unlimited: d.yes(), Earn: budget.Earn(d(2))}, Breaker: breaker.Config{Off: d.yes()}, RateLimitedBase: d.ms(0, 1, 50),
	}
	if d.yes() {
		p.Limit = bulkhead.Config{InFlight: 1 + d(3), MaxWait: d.ms(0, 10, 300)}
	}
	p.Throttle.Mode = throttle.Mode(max(0, d(5)-2))
	if d.yes() {
		withConnections(d, &s)
	}
	if d(3) == 0 {
		withLinks(d, &s)
	}
	if d(3) == 0 {
		p.Attempts = 0
		p.Hedge = hedge.Config{Attempts: 2 + d(4), Delay: d.ms(1, 5, 50), Share: -1, InFlight: d.one(0, 1)}
	}
	for i := range s.Services {
		if v := &s.Services[i]; v.Workers > 0 {
			v.ErrorCost = d.share()
		}
	}
	return s, p
}

// withConnections gives connections to what calls in s.
func withConnections(d dice, s *Scenario) {
	pool := func() Pool {
		if d(3) == 0 {
			return Pool{}
		}
		return Pool{
			On: true, Kind: PoolKind(d(2)), Size: d.one(0, 1, 2, 10), Open: d.one(0, 1), Idle: d.one(0, 0, 1, -1), IdleFor: d.ms(0, 10, 300), RoundTrips: d(4),
			Handshake: d.takes(d.one(0, 1, 20)), DialTimeout: d.ms(0, 50, 1000), Ports: d.one(0, 0, 3, 20), TimeWait: d.ms(0, 20, 500),
		}
	}
	for i := range s.Services {
		v := &s.Services[i]
		v.Connections = Connections{
			Limit: d.one(0, 1, 3, 10), Backlog: d.one(0, 1, 3), Drop: d.yes(), IdleFor: d.ms(0, 0, 100), Handshake: d.takes(d.one(0, 0, 5, 30)),
		}
		if !v.Contention && d.yes() {
			v.Heap = Heap{Size: 1e6, Live: 200_000, PerAttempt: d.one(0, 1e4, 1e5), PerConnection: d.one(0, 1e4), Garbage: d.one(0, 1e5), Pause: d.ms(0, 1, 20), Restart: d.ms(50, 200)}
		}
		v.Connections.Refuse = v.Connections.Limit > 0 && d.yes()
		if v.Workers > 0 {
			v.RefusalTime = d.ms(0, 0, 1, 20)
		}
		for k := range v.Calls {
			v.Calls[k].Network.Pool = pool()
			v.Calls[k].Network.Endpoints.On = d.yes()
			if d.yes() {
				v.Calls[k].Cache = Cache{Keys: d.one(1, 10, 100), Skew: float64(d.one(0, 1, 2)) / 2, Size: d.one(0, 1), For: d.ms(0, 50), Cold: d.yes()}
			}
		}
		for k := range v.Faults {
			v.Faults[k].Silent = v.Faults[k].Kind == Crash && d.yes()
		}
	}
	for i := range s.Fleets {
		s.Fleets[i].Network.Pool = pool()
		s.Fleets[i].Network.Endpoints.On = d.yes()
	}
}

// withLinks has fleets of s keep connections. Nobody has Redial: who dials for ever may never end.
func withLinks(d dice, s *Scenario) {
	for i := range s.Fleets {
		f := &s.Fleets[i]
		if f.Arrivals.Kind == Closed {
			continue
		}
		f.NotIdempotent, f.Keyed, f.Arrivals.Each = false, false, 0
		f.Network.Pool, f.Network.Endpoints, f.Link, f.Threads, f.Backlog = Pool{}, Endpoints{}, Link{On: true}, 0, 0
		if from := &s.Services[d(len(s.Services))]; from.Name != f.Calls && d.yes() {
			f.Link.From = from.Name
			if from.Heap.Size > 0 {
				f.Link.PerSecond, f.Link.Buffer = d.one(1000, 1e6), d.one(0, 1000)
			}
		}
		if d.yes() {
			f.Arrivals = Arrivals{}
		}
	}
	for i := range s.Services {
		for k := range s.Services[i].Faults {
			s.Services[i].Faults[k].Silent = false
		}
	}
}

// linksAgree counts the connections that are kept, and the buffers.
func linksAgree(t testing.TB, w *world) {
	for _, s := range w.services {
		for h := range s.hosts {
			kept, buffers := 0, 0
			for _, o := range s.links {
				for p, k := range o.links.links {
					if o.target == s && k.host == uint32(h)+1 {
						kept++
					}
					if o.links.from == s && o.links.stateIndex(uint32(p)) == uint32(h) && k.buffering {
						buffers++
					}
					if k.host != 0 && (k.dialling || k.buffering) || k.bufferFull && !k.buffering {
						t.Fatalf("at %v process %d: %+v", w.now, p, k)
					}
				}
			}
			if host := &s.hosts[h]; host.links != kept || host.outbox.buffers != buffers || host.outbox.bytes < 0 || host.outbox.perSecond < 0 || host.outbox.dropping < 0 {
				t.Fatalf("at %v %s keeps %d connections and has %d buffers: %d, %+v", w.now, s.def.Name, kept, buffers, host.links, host.outbox)
			}
		}
	}
}

// random returns dice whose throws depend on the seed.
func random(seed uint64) dice {
	src := draw.From(seed)
	return func(n int) int { return int(src.Below(uint64(n))) }
}

// watch flies a policy through a scenario, event by event, and looks after each
// that no law is broken. Then it lets everything that is under way end.
func watch(t testing.TB, s Scenario, p lull.Policy, seed uint64) {
	t.Helper()
	must.Succeed(s.Validate())
	if err := p.Validate(); err != nil {
		t.Skip(err)
	}
	w, err := newWorld(&s, Contender{Name: "it", Policy: p}, Options{Seed: seed})
	if err != nil {
		t.Skip(err) // for example a timeout beyond the deadline
	}
	// A Snapshot finds out whether there is pressure, and so when it began: a run that is
	// looked at may go another way.
	look := seed%2 == 0
	var events int
	advance := func(horizon time.Duration) {
		for {
			if events++; events > 5_000_000 {
				t.Fatal("no end")
			}
			at, any := w.events.Next()
			if n := w.nextStream; n != nil && (!any || int64(n.at) <= at) && n.at < horizon {
				if n.at < w.now {
					t.Fatalf("a call at %v, and it is %v", n.at, w.now)
				}
				w.now = n.at
				n.arrive(w)
			} else if any && at <= int64(horizon) {
				e, _ := w.events.Pop()
				if time.Duration(e.At) < w.now {
					t.Fatalf("an event at %v, and it is %v", e.At, w.now)
				}
				w.now = time.Duration(e.At)
				w.handle(e.Data)
			} else {
				return
			}
			within(t, w)
			if events%64 == 0 {
				linksAgree(t, w)
				connectionsAgree(t, w)
			}
			if look {
				agree(t, w)
			}
		}
	}
	advance(s.Horizon)
	w.now = s.Horizon
	r := w.rec.result(w.now)
	conserved(t, &s, r)

	// The run itself comes to the same.
	same, err := Run(t.Context(), s, Contender{Name: "it", Policy: p}, Options{Seed: seed})
	if a, b := fmt.Sprintf("%+v %+v", r.Totals, r.Series), fmt.Sprintf("%+v %+v", same.Totals, same.Series); err != nil {
		t.Fatal(err)
	} else if r.Totals.Events = same.Totals.Events; (!look || !guarded(&s)) && fmt.Sprintf("%+v %+v", r.Totals, r.Series) != b {
		t.Fatalf("not the same:\n%s\n%s", a, b)
	}

	for i := range s.Services {
		for k := range s.Services[i].Faults {
			f, open := &s.Services[i].Faults[k], false
			f.occurrences(s.Horizon, func(_, to time.Duration) { open = open || to > s.Horizon })
			if open {
				return // what stands still then never moves again
			}
		}
	}

	for i := range s.Fleets {
		if l := &s.Fleets[i].Link; l.PerSecond > 0 && l.Buffer == 0 {
			return // hosts may crash for want of memory for ever
		}
	}

	// Nobody calls any more, and what is under way ends.
	w.nextStream, w.streams = nil, nil
	for _, o := range w.origins {
		if o.fleet != nil {
			f := *o.fleet
			f.Arrivals.Kind, f.Reload.Times = Poisson, 0
			o.fleet = &f
		}
	}
	advance(never - 1)
	want := func(what string, got int) {
		check.Equal(t, got, 0, "%s when all has ended", what)
	}
	want("flights", w.flights.inUse())
	want("jobs", w.jobs.inUse())
	want("visitors", w.visitors.inUse())
	want("calls in line", len(w.waitingForRoom))
	connectionsAgree(t, w)
	for _, p := range w.pools {
		want("dials that are to begin", p.toDial)
		_, waits := w.nextWaiter(p)
		if waits || p.dialling {
			t.Errorf("attempts wait for a connection when all has ended, or one is being dialled: %+v", p)
		}
		want("connections with work", p.open-p.idle.n)
	}
	want("hedged calls", len(w.races))
	for _, o := range w.origins {
		for _, x := range o.threads {
			want("threads", x.busy+x.waiting.n)
		}
	}
	want("attempts at hosts that were chosen", len(w.hostChoices))
	want("calls that know where they were", len(w.hostsTried))
	for _, v := range w.services {
		for h := range v.hosts {
			want("busy", v.hosts[h].busy)
			want("queued", v.hosts[h].queue.n)
			want("cancelled", v.hosts[h].queue.cancelled)
			want("standing", v.hosts[h].atGate)
			if g := v.hosts[h].gate; g != nil {
				want("let in", g.Snapshot(w.now).InFlight)
			}
		}
	}
	for _, o := range w.origins {
		for i := range o.states {
			if l := o.states[i].Limiter(); l != nil {
				want("places under the limit", l.InFlight()+l.Waiting())
			}
		}
	}
	// Each attempt has ended in one of four ways. (Attempts at services that call
	// others are not distinguished.)
	tot := w.rec.result(s.Horizon).Totals
	if hops := len(w.origins) > len(s.Fleets); !hops && s.Warmup == 0 {
		var attempts int64
		for i := range w.rec.loads {
			attempts += w.rec.loads[i].counted
		}
		if sum := tot.Succeeded + tot.AttemptsTimedOut + tot.AttemptsFailed + tot.Lost; sum != attempts {
			t.Errorf("%d attempts: %d succeeded, %d timed out, %d failed, %d lost", attempts, tot.Succeeded, tot.AttemptsTimedOut, tot.AttemptsFailed, tot.Lost)
		}
	}
	check.Equal(t, tot.Unfinished, 0, "calls unfinished when all has ended")
}

// within holds the services to their sizes, and the breakers to their number.
func within(t testing.TB, w *world) {
	processes := 0
	for _, o := range w.origins {
		processes += o.processes
	}
	if w.openBreakers < 0 || w.openBreakers > processes {
		t.Fatalf("at %v %d of %d processes have an open breaker", w.now, w.openBreakers, processes)
	}
	for _, s := range w.services {
		for i := range s.hosts {
			h := &s.hosts[i]
			if h.busy < 0 || s.def.Workers > 0 && h.busy > s.def.Workers {
				t.Fatalf("at %v %d of %d workers of %s are busy", w.now, h.busy, s.def.Workers, s.def.Name)
			}
			if h.acceptor.refusalWork < 0 {
				t.Fatalf("at %v %s owes %v", w.now, s.def.Name, h.acceptor.refusalWork)
			}
			if n := h.queue.len(); n < 0 || n > s.def.Queue.Limit {
				t.Fatalf("at %v %d wait at %s, where there is room for %d", w.now, n, s.def.Name, s.def.Queue.Limit)
			}
		}
	}
}

// connectionsAgree counts the connections of both sides.
func connectionsAgree(t testing.TB, w *world) {
	if len(w.pools) == 0 {
		return
	}
	type place struct {
		s    *service
		host uint32
	}
	open, shakes := map[place]int{}, map[place]int{}
	held := map[uint32]int{}
	for ci := range w.conns.used {
		c := w.conns.at(ci)
		if c.state == connNone {
			continue
		}
		p := w.pools[c.pool]
		if c.state != connLeft {
			held[c.pool]++
		}
		if c.accepted {
			open[place{p.o.target, p.host}]++
		}
	}
	for i, p := range w.pools {
		if held[uint32(i)] != p.open-p.toDial || p.open > p.def.Size && p.def.Size > 0 || p.idle.n > p.open || p.toDial > 0 && !p.dialling {
			t.Fatalf("at %v a pool of %d has %d connections: %+v", w.now, p.def.Size, held[uint32(i)], p)
		}
	}
	for k := range w.jobs.used {
		if j := w.jobs.at(k); j.state == jobQueued && j.hop == handshake {
			shakes[place{w.services[j.service], j.host}]++
		}
	}
	for _, s := range w.services {
		for i := range s.hosts {
			a, at := &s.hosts[i].acceptor, place{s, uint32(i)}
			if d := &s.def.Connections; a.open != open[at] || d.Limit > 0 && a.open > d.Limit || a.waiting < 0 || a.waiting+a.handshakes > d.backlog() || a.handshakes != shakes[at] {
				t.Fatalf("at %v %s has %d connections, %d handshakes, limit %d: %+v", w.now, s.def.Name, open[at], shakes[at], d.Limit, a)
			}
		}
	}
	for i, ci := range w.connOfFlight {
		if ci != 0 && w.conns.at(ci-1).state != connCarrying {
			t.Fatalf("at %v flight %d has a connection that is not its own", w.now, i)
		}
	}
}

// conserved holds a result against the laws of conservation.
func conserved(t testing.TB, s *Scenario, r Result) {
	t.Helper()
	tot := r.Totals
	ended := int64(0)
	for _, n := range tot.Reasons {
		ended += n
	}
	if tot.Calls != ended+tot.Unfinished || tot.Unfinished < 0 {
		t.Errorf("%d calls: %d ended, %d unfinished", tot.Calls, ended, tot.Unfinished)
	}
	if tot.Succeeded != tot.Reasons[engine.Success.String()] || r.Latency.Count != tot.Succeeded {
		t.Errorf("%d succeeded, %d by reason, %d with a latency", tot.Succeeded, tot.Reasons[engine.Success.String()], r.Latency.Count)
	}
	if tot.Retries < 0 || tot.Retries > tot.Attempts || tot.Duplicates > tot.Effects || tot.Refused > tot.Calls {
		t.Errorf("%+v", tot)
	}
	for _, x := range []float64{tot.Amplification, tot.PeakRate, tot.NormalRate, tot.PeakOverNormal, tot.WorstMinute, r.Recovery.Normal, r.Recovery.Final} {
		if !(x >= 0) || math.IsInf(x, 1) {
			t.Errorf("not finite: %+v", tot)
		}
	}
	if s.Warmup > 0 {
		return // series begin before it
	}
	per := r.Series.Step.Seconds()
	sum := func(rates []float64) (n int64) {
		for _, x := range rates {
			n += int64(math.Round(x * per))
		}
		return n
	}
	same := func(what string, rates []float64, n int64) {
		check.Equal(t, sum(rates), n, "the series of %s", what)
	}
	same("calls", r.Series.Calls, tot.Calls)
	same("goodput", r.Series.Goodput, tot.Succeeded)
	same("failures", r.Series.Failed, ended-tot.Succeeded)
	same("first attempts", r.Series.First, tot.Attempts-tot.Retries)
	same("retries", r.Series.Retries, tot.Retries)
	same("wasted work", r.Series.Wasted, tot.Wasted)
	for why, n := range tot.Reasons {
		if why != engine.Success.String() {
			same(why, r.Series.Refused[why], n)
		}
	}
}

func TestNothingIsLost(t *testing.T) {
	n := uint64(200)
	if long {
		n = 700
	}
	for seed := range n {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s, p := anyScenario(random(seed))
			watch(t, s, p, seed)
			if t.Failed() {
				t.Logf("seed %d\n%+v\n%+v", seed, s, p)
			}
		})
		if t.Failed() {
			return
		}
	}
}
