package outlier

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/chance"
	"github.com/lullgo/lull/internal/must"
)

// A reference does what Set does, slowly: it keeps every result and counts them
// anew each time. With EnvoyDefaults it is Envoy's DetectorImpl
// (source/common/upstream/outlier_detection_impl.cc), whose names it uses where it
// has them.
type reference struct {
	c       Config // with all its zeros filled in
	width   time.Duration
	tick    int64
	hosts   []*refHost
	results []refResult // of all time
	old     int         // how many of them are older than any that is looked at
	events  []Change
}

type refHost struct {
	key           string
	ejected, gone bool
	until, calmed time.Duration
	backoff       int64
	times         int64
	overflows     int64
	generation    int
	load          int64
	consecutive   map[ChangeReason]int
	rowBegan      map[ChangeReason]int   // how many results there were
	rowLoad       map[ChangeReason]int64 // how many calls were under way
	knownFrom     int                    // results before this one are forgotten
	loads         map[int64]int64        // at the start of each slot
	startOver     bool
}

type refResult struct {
	h    *refHost
	slot int64
	o    Evidence
}

func newReference(c Config) *reference {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
		*v = max(0, *v)
	}
	c.Interval, c.Sweeps = cmp.Or(c.Interval, 10*time.Second), cmp.Or(c.Sweeps, 10)
	def(&c.Consecutive, 5)
	def(&c.ConsecutiveGateway, 0)
	def(&c.ConsecutiveLocal, 5)
	if !c.Split {
		c.ConsecutiveLocal = 0
	}
	if c.Statistic == MeanDeviation {
		c.Factor = cmp.Or(c.Factor, 1.9)
		def(&c.MinHosts, 5)
		def(&c.MinCalls, 100)
	}
	c.Factor = cmp.Or(c.Factor, 3.5)
	def(&c.MinHosts, 2)
	def(&c.MinCalls, 5)
	if c.Floor == 0 {
		c.Floor = 0.2
	}
	c.Floor = max(0, c.Floor)
	def(&c.FailureMinHosts, 5)
	def(&c.FailureMinCalls, 50)
	for _, p := range []*int{&c.Enforce.Consecutive, &c.Enforce.ConsecutiveGateway, &c.Enforce.ConsecutiveLocal, &c.Enforce.SuccessRate,
		&c.Enforce.LocalSuccessRate, &c.Enforce.FailurePercent, &c.Enforce.LocalFailurePercent} {
		def(p, 100)
	}
	c.BaseEjection = cmp.Or(c.BaseEjection, 30*time.Second)
	c.MaxEjection = cmp.Or(c.MaxEjection, max(300*time.Second, c.BaseEjection))
	c.Jitter = max(0, cmp.Or(c.Jitter, c.BaseEjection/10))
	def(&c.MaxEjected, 50)
	return &reference{c: c, width: c.Interval / time.Duration(c.Sweeps)}
}

func (m *reference) find(key string) *refHost {
	for _, h := range m.hosts {
		if h.key == key {
			return h
		}
	}
	return nil
}

func (m *reference) update(now time.Duration, keys []string) {
	var hosts []*refHost
	for _, key := range keys {
		h := m.find(key)
		if h == nil {
			h = &refHost{key: key, consecutive: map[ChangeReason]int{}, rowBegan: map[ChangeReason]int{}, rowLoad: map[ChangeReason]int64{}, loads: map[int64]int64{}}
		}
		if !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	for _, h := range m.hosts {
		if !slices.Contains(hosts, h) {
			h.gone = true
			h.generation++
		}
	}
	m.hosts = hosts
	for m.c.Limit == AtLeastOne && m.ejected() > m.permitted() {
		var soonest *refHost
		for _, h := range m.hosts {
			if h.ejected && (soonest == nil || h.until < soonest.until) {
				soonest = h
			}
		}
		m.uneject(soonest, now, Shrunk)
	}
}

func (m *reference) ejected() int {
	n := 0
	for _, h := range m.hosts {
		if h.ejected {
			n++
		}
	}
	return n
}

func (m *reference) permitted() int {
	share := float64(len(m.hosts)) * float64(m.c.MaxEjected) / 100
	n := int(math.Floor(share + 1e-9))
	switch {
	case m.c.Limit == RoundUp:
		n = int(math.Ceil(share - 1e-9))
	case m.c.Limit == AtLeastOne && m.c.MaxEjected > 0:
		n = max(1, n)
	}
	if !m.c.Unconditional {
		n = min(n, len(m.hosts)-1)
	}
	return max(0, n)
}

// choosable are those that Pick may return.
func (m *reference) choosable() []string {
	var healthy, all []string
	for _, h := range m.hosts {
		all = append(all, h.key)
		if !h.ejected {
			healthy = append(healthy, h.key)
		}
	}
	if len(healthy) == 0 || 100*float64(len(healthy))/float64(len(all)) < float64(m.c.Panic) {
		return all
	}
	return healthy
}

func (m *reference) advance(now time.Duration, random uint64) {
	for time.Duration(m.tick+1)*m.width <= now {
		m.tick++
		at := time.Duration(m.tick) * m.width
		for _, h := range m.hosts {
			h.loads[m.tick] = h.load
			if h.ejected && h.until <= at {
				m.uneject(h, at, TimePassed)
			}
		}
		m.judge(at, random)
		for _, h := range m.hosts {
			if !h.ejected && h.backoff > 0 && at-h.calmed >= m.width*time.Duration(m.c.Sweeps) {
				h.backoff--
				h.calmed += m.width * time.Duration(m.c.Sweeps)
			}
		}
	}
}

func (m *reference) uneject(h *refHost, at time.Duration, why ChangeReason) {
	h.ejected = false
	h.calmed = max(0, at)
	clear(h.consecutive)
	if !m.c.Unconditional {
		h.generation++
		m.forget(h)
	}
	m.events = append(m.events, Change{Key: h.key, Kind: Returned, Reason: why, At: at, Ejections: h.times})
}

func (m *reference) forget(h *refHost) {
	clear(h.consecutive)
	h.knownFrom = len(m.results)
	for t := m.tick - int64(m.c.Sweeps); t <= m.tick; t++ {
		h.loads[t] = h.load
	}
	h.startOver = false
}

// count counts the results that pass the filter: calls, and failures, by one measure.
func (m *reference) count(local bool, from int, filter func(refResult) bool) counts {
	var o counts
	for _, r := range m.results[from:] {
		if !filter(r) || !local && m.c.Split && r.o == LocalOrigin {
			continue
		}
		o.calls++
		if local && r.o == LocalOrigin || !local && r.o != Success {
			o.failures++
		}
	}
	return o
}

// lately are the results of the last whole interval.
func (m *reference) lately(h *refHost, local bool) counts {
	return m.count(local, m.known(h), func(r refResult) bool {
		return r.h == h && r.slot >= m.tick-int64(m.c.Sweeps) && r.slot < m.tick
	})
}

// known is the first result that may still count for h. Slots never go down.
func (m *reference) known(h *refHost) int {
	for m.old < len(m.results) && m.results[m.old].slot < m.tick-int64(m.c.Sweeps) {
		m.old++
	}
	return max(h.knownFrom, m.old)
}

func (m *reference) judge(at time.Duration, random uint64) {
	if !m.c.Unconditional {
		for _, h := range m.hosts {
			for _, why := range []ChangeReason{Consecutive, ConsecutiveGateway, ConsecutiveLocal} {
				m.judgeRow(at, h, why, random)
			}
		}
	}
	m.judgeRates(at, false, SuccessRate, FailurePercent, random)
	if m.c.Split {
		m.judgeRates(at, true, LocalSuccessRate, LocalFailurePercent, random)
	}
	for _, h := range m.hosts {
		if h.startOver {
			m.forget(h)
		}
	}
}

func (m *reference) judgeRates(at time.Duration, local bool, rate, percent ChangeReason, random uint64) {
	type entry struct {
		h *refHost
		o counts
	}
	var all []entry
	for _, h := range m.hosts {
		if o := m.lately(h, local); !h.ejected && o.calls > 0 {
			all = append(all, entry{h, o})
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(a.o.rate(), b.o.rate()) })
	atLeast := func(n int) (list []entry) {
		for _, e := range all {
			if e.o.calls >= int64(n) {
				list = append(list, e)
			}
		}
		return list
	}
	valid := atLeast(m.c.MinCalls)
	if len(valid) >= m.c.MinHosts && len(valid) > 0 {
		switch m.c.Statistic {
		case MeanDeviation:
			// Which of two equal numbers is the lower one is a matter of rounding: as Envoy.
			percent := func(o counts) float64 { return float64(o.calls-o.failures) * 100 / float64(o.calls) }
			n, mean, variance := float64(len(valid)), 0.0, 0.0
			for _, e := range valid {
				mean += percent(e.o)
			}
			mean /= n
			for _, e := range valid {
				variance += (percent(e.o) - mean) * (percent(e.o) - mean)
			}
			threshold := mean - m.c.Factor*math.Sqrt(variance/n)
			for _, e := range valid {
				if percent(e.o) < threshold {
					m.eject(e.h, at, Change{Reason: rate, Calls: e.o.calls, Failures: e.o.failures}, random)
				}
			}
		case MedianMAD:
			for i, e := range valid {
				others := slices.Delete(slices.Clone(valid), i, i+1)
				if len(others) == 0 {
					continue
				}
				var rates, deviations []float64
				for _, o := range others {
					rates = append(rates, o.o.rate())
				}
				median := medianOf(rates)
				for _, r := range rates {
					deviations = append(deviations, math.Abs(r-median))
				}
				threshold := median - max(m.c.Factor*1.4826*medianOf(deviations), m.c.Floor)
				began := e.h.loads[m.tick-int64(m.c.Sweeps)]
				own := counts{e.o.calls + max(0, e.h.load-began), e.o.failures}
				var peers counts
				for _, o := range others {
					if o.o.rate() >= threshold {
						peers.calls += o.o.calls
						peers.failures += o.o.failures
					}
				}
				n := float64(len(valid))
				if own.rate() < threshold && logRatio(own, peers) >= math.Log(1000*n*n) {
					m.eject(e.h, at, Change{Reason: rate, Calls: e.o.calls, Failures: e.o.failures}, random)
				}
			}
		}
	}
	if valid := atLeast(m.c.FailureMinCalls); m.c.FailurePercent > 0 && len(valid) >= m.c.FailureMinHosts {
		for _, e := range valid {
			if 100*e.o.failures >= int64(m.c.FailurePercent)*e.o.calls {
				m.eject(e.h, at, Change{Reason: percent, Calls: e.o.calls, Failures: e.o.failures}, random)
			}
		}
	}
}

func medianOf(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// logRatio is the logarithm of the likelihood ratio of two shares against one.
func logRatio(own, peers counts) float64 {
	if peers.calls == 0 || own.calls == 0 || own.rate() >= peers.rate() {
		return 0
	}
	sum := 0.0
	p := float64(own.failures+peers.failures) / float64(own.calls+peers.calls)
	for _, o := range []counts{own, peers} {
		q := 1 - o.rate()
		if o.failures > 0 {
			sum += float64(o.failures) * math.Log(q/p)
		}
		if o.failures < o.calls {
			sum += float64(o.calls-o.failures) * math.Log((1-q)/(1-p))
		}
	}
	return sum
}

func (m *reference) limit(why ChangeReason) int {
	return map[ChangeReason]int{Consecutive: m.c.Consecutive, ConsecutiveGateway: m.c.ConsecutiveGateway, ConsecutiveLocal: m.c.ConsecutiveLocal}[why]
}

func (m *reference) judgeRow(at time.Duration, h *refHost, why ChangeReason, random uint64) {
	n := h.consecutive[why]
	if h.ejected || m.limit(why) == 0 || n < m.limit(why) {
		return
	}
	others := m.count(why == ConsecutiveLocal, h.rowBegan[why], func(r refResult) bool { return r.h != h })
	own := counts{int64(n) + max(0, h.load-h.rowLoad[why]), int64(n)}
	calls := int64(0)
	for _, g := range m.hosts {
		calls += m.count(true, m.known(g), func(r refResult) bool { return r.h == g && r.slot >= m.tick-int64(m.c.Sweeps) }).calls
	}
	if others.calls > 0 && own.rate() < others.rate()-m.c.Floor &&
		logRatio(own, others) >= math.Log(1000*float64(max(1, calls))*float64(len(m.hosts))) {
		m.eject(h, at, Change{Reason: why, Calls: int64(n), Failures: int64(n)}, random)
		if h.startOver {
			m.forget(h)
		}
	}
}

func (m *reference) eject(h *refHost, at time.Duration, c Change, random uint64) {
	if h.ejected {
		return
	}
	if m.ejected()+1 > m.permitted() {
		h.overflows++
		return
	}
	enforce := m.c.Enforce
	percent := map[ChangeReason]int{Consecutive: enforce.Consecutive, ConsecutiveGateway: enforce.ConsecutiveGateway,
		ConsecutiveLocal: enforce.ConsecutiveLocal, SuccessRate: enforce.SuccessRate, LocalSuccessRate: enforce.LocalSuccessRate,
		FailurePercent: enforce.FailurePercent, LocalFailurePercent: enforce.LocalFailurePercent}[c.Reason]
	c.Key, c.At = h.key, at
	draw := func() uint64 { return random }
	if int(chance.UpTo(99, draw)) >= percent {
		h.startOver = !m.c.Unconditional
		c.Kind, c.Ejections = Spared, h.times
		m.events = append(m.events, c)
		return
	}
	h.ejected = true
	h.times++
	if time.Duration(h.backoff)*m.c.BaseEjection < m.c.MaxEjection+m.c.BaseEjection {
		h.backoff++
	}
	h.until = at + min(m.c.BaseEjection*time.Duration(h.backoff), m.c.MaxEjection) + time.Duration(chance.UpTo(uint64(m.c.Jitter), draw))
	if !m.c.Unconditional {
		h.generation++
	}
	c.Kind, c.Until, c.Ejections = Ejected, h.until, h.times
	m.events = append(m.events, c)
}

// done is the end of a call that had started in a generation of h.
func (m *reference) done(now time.Duration, h *refHost, generation int, o Evidence, random uint64) {
	m.advance(now, random)
	h.load--
	if o == Neutral || generation != h.generation && !m.c.Unconditional {
		return
	}
	m.results = append(m.results, refResult{h, m.tick, o})
	longer := []ChangeReason{}
	switch {
	case o == Success:
		clear(h.consecutive)
	case o == LocalOrigin && m.c.Split:
		longer = []ChangeReason{ConsecutiveLocal}
	case o == FiveXX:
		h.consecutive[ConsecutiveGateway], h.consecutive[ConsecutiveLocal] = 0, 0
		longer = []ChangeReason{Consecutive}
	default:
		h.consecutive[ConsecutiveLocal] = 0
		longer = []ChangeReason{ConsecutiveGateway, Consecutive}
	}
	for _, why := range longer {
		h.consecutive[why]++
	}
	for _, why := range longer {
		n, limit := h.consecutive[why], m.limit(why)
		switch {
		case limit == 0 || h.gone || h.ejected:
		case m.c.Unconditional && n == limit:
			m.eject(h, now, Change{Reason: why, Calls: int64(n), Failures: int64(n)}, random)
			h.consecutive[why] = 0
		case m.c.Unconditional:
		default:
			if n == min(2, limit) {
				h.rowBegan[why], h.rowLoad[why] = len(m.results), h.load
			}
			looks := n >= limit && n <= 4*limit
			for twice := 8 * limit; twice <= n; twice *= 2 {
				looks = looks || twice == n
			}
			if looks {
				m.judgeRow(now, h, why, random)
			}
		}
	}
}

func anyOf[T any](r *rand.Rand, v ...T) T { return v[r.IntN(len(v))] }

// randomConfig is one under which things happen.
func randomConfig(r *rand.Rand) Config {
	percent := func() int { return anyOf(r, 0, 0, 0, -1, 50, 90) }
	return Config{
		Choice:             Choice(r.IntN(int(choices))),
		Interval:           time.Second,
		Sweeps:             anyOf(r, 1, 2, 5, 10),
		Consecutive:        anyOf(r, 0, -1, 1, 2, 3, 8),
		ConsecutiveGateway: anyOf(r, 0, 3),
		ConsecutiveLocal:   anyOf(r, 0, -1, 2, 4),
		Unconditional:      r.IntN(2) == 0,
		Split:              r.IntN(2) == 0,
		Statistic:          Statistic(r.IntN(int(statistics))),
		Factor:             anyOf(r, 0, 0.5, 1, 2),
		Floor:              anyOf(r, 0, -1, 0.05, 0.4),
		MinHosts:           anyOf(r, 0, 1, 2, 3),
		MinCalls:           anyOf(r, 0, 1, 3, 10),
		FailurePercent:     anyOf(r, 0, 40, 85),
		FailureMinHosts:    anyOf(r, 0, 1, 2),
		FailureMinCalls:    anyOf(r, 1, 5, 10),
		Enforce:            Enforce{percent(), percent(), percent(), percent(), percent(), percent(), percent()},
		BaseEjection:       anyOf(r, 300*time.Millisecond, time.Second, 2500*time.Millisecond),
		MaxEjection:        anyOf(r, 0, 3*time.Second, 10*time.Second),
		Jitter:             anyOf(r, 0, -1, 700*time.Millisecond),
		MaxEjected:         anyOf(r, 0, 10, 34, 50, 70, 100),
		Limit:              Limit(r.IntN(int(limits))),
		Panic:              anyOf(r, 0, 0, 50, 80),
	}
}

func TestModel(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for seed := range uint64(400 / slower) {
		r := rand.New(rand.NewPCG(seed, 5))
		modelRun(t, seed, randomConfig(r), r, seen)
	}
	for seed := range uint64(40 / slower) {
		r := rand.New(rand.NewPCG(seed, 6))
		c := EnvoyDefaults()
		c.Split = seed%3 == 0
		c.MaxEjected, c.MinCalls = anyOf(r, 10, 30, 100), anyOf(r, 100, 10)
		if seed%2 == 0 {
			c.Enforce, c.FailureMinCalls = Enforce{}, 10
		}
		modelRun(t, seed+1000, c, r, seen)
	}
	for seed := range uint64(30 / slower) {
		r := rand.New(rand.NewPCG(seed, 7))
		modelRun(t, seed+2000, Config{Split: seed%3 == 0}, r, seen)
	}
	for k := Ejected; k < kinds; k++ {
		for why := Consecutive; why < reasons; why++ {
			event := fmt.Sprintf("%v: %v", k, why)
			if (k == Returned) == (why >= findings) && slower == 1 && seen[event] < 10 {
				t.Errorf("%s happened %d times: the test does not stir", event, seen[event])
			}
		}
	}
	t.Log(seen)
}

func modelRun(t *testing.T, seed uint64, c Config, r *rand.Rand, seen map[string]int) {
	var events []Change
	s := must.Have(New(c, func(c Change) { events = append(events, c); seen[fmt.Sprintf("%v: %v", c.Kind, c.Reason)]++ }))
	m := newReference(c)
	type flying struct {
		e          Endpoint
		h          *refHost
		generation int
	}
	var air []flying
	var now time.Duration
	var names []string
	sick := map[string]float64{}
	interval := cmp.Or(c.Interval, 10*time.Second)
	for step := range 1500 {
		random := r.Uint64()
		draw := func() uint64 { return random }
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("seed %d, step %d at %v, %+v: %s", seed, step, now, c, fmt.Sprintf(format, args...))
		}
		switch x := r.IntN(1000); {
		case x < 8 || step == 0:
			names = nil
			for _, i := range r.Perm(8)[:1+r.IntN(8)] {
				names = append(names, string(rune('a'+i)))
			}
			s.Update(now, names)
			m.update(now, names)
		case x < 16:
			clear(sick)
			for range r.IntN(4) {
				sick[anyOf(r, names...)] = anyOf(r, 0.2, 0.5, 1, 1)
			}
		case x < 18:
			now += time.Duration(r.Int64N(int64(30 * interval)))
		case x < 30:
			now += time.Duration(r.Int64N(int64(interval / 4)))
		case x < 40 && len(air) < 40:
			// A call that takes its time.
			if e, ok := s.Pick(now, draw, nil); ok {
				m.advance(now, random)
				h := m.find(e.Key())
				h.load++
				air = append(air, flying{e, h, h.generation})
			}
		case x < 60 && len(air) > 0:
			i := r.IntN(len(air))
			f := air[i]
			air = slices.Delete(air, i, i+1)
			o := Evidence(r.IntN(int(evidences)))
			s.Done(now, f.e, o, draw)
			m.done(now, f.h, f.generation, o, random)
		default:
			now += time.Duration(r.Int64N(int64(interval / 100)))
			e, ok := s.Pick(now, draw, nil)
			m.advance(now, random)
			if can := m.choosable(); ok != (len(can) > 0) || !slices.Contains(can, e.Key()) {
				fail("picked %q of %q", e.Key(), can)
			}
			h := m.find(e.Key())
			h.load++
			o := Success
			if p := max(sick[h.key], 0.02); r.Float64() < p {
				o = anyOf(r, FiveXX, GatewayFailure, LocalOrigin, LocalOrigin, Neutral)
			}
			generation := h.generation
			s.Done(now, e, o, draw)
			m.done(now, h, generation, o, random)
		}
		var status []EndpointState
		if step%5 == 0 {
			status = s.States(now)
		}
		for i, got := range status {
			h := m.hosts[i]
			until := h.until
			// The reference sweeps with the next call, as the set does; States looks ahead.
			due := (h.until + m.width - 1) / m.width * m.width
			ejected := h.ejected && (due > now || time.Duration(m.tick+1)*m.width > now)
			if !ejected {
				until = 0
			}
			overflows := got.Overflows
			if !c.Unconditional && overflows > 0 && h.overflows > 0 {
				overflows = h.overflows // sweeps that nobody came to make are not counted
			}
			if got.Key != h.key || got.Ejected != ejected || got.Until != until || got.Ejections != h.times || overflows != h.overflows || got.Load != h.load {
				fail("status %+v, want %+v", got, *h)
			}
			from := int64(now/m.width) - int64(m.c.Sweeps) + 1
			lately := func(r refResult) bool { return r.h == h && r.slot >= from }
			all, ext := m.count(true, m.known(h), lately), m.count(false, m.known(h), lately)
			if got.Calls != all.calls || got.Failures != ext.failures || m.c.Split && got.Unanswered != all.failures {
				fail("status %+v, want %+v and %+v", got, all, ext)
			}
		}
		if len(events) != len(m.events) {
			fail("events %+v\nwant   %+v", tail(events), tail(m.events))
		}
		for i := range events {
			got := events[i]
			got.Usual, got.Threshold = 0, 0
			if got != m.events[i] {
				fail("event %d: %+v, want %+v", i, got, m.events[i])
			}
		}
		events, m.events = nil, nil
	}
}

func tail(c []Change) []Change { return c[max(0, len(c)-3):] }
