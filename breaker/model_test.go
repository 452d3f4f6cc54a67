package breaker

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
)

// The reference: a breaker written down from its rules, with lists of calls in
// place of rings, fractions in place of integers, and no thought for speed. It
// does not draw open times; it checks that they lie where they may.
type model struct {
	c     Config // every field given
	share *big.Rat
	slow  *big.Rat

	state    CircuitState
	gen      int
	until    time.Duration
	forced   bool
	closedAt time.Duration
	closedBy time.Duration // the probe's duration
	openings int
	streak   int
	from     time.Duration // end of the first failure of the streak
	down     time.Duration // beginning of the outage
	took     time.Duration // what opened it
	wins     int
	calls    []*modelCall // of this closed generation, or of the shadow states of MetricsOnly
	probes   []*modelCall
	outage   int           // how often it opened after it was closed
	callGap  float32       // between two calls before it opened; 0: no samples
	sampleAt time.Duration // when the next sample may pass
	changes  []Change
}

type modelCall struct {
	tok                    Ticket
	gen                    int
	probe                  bool
	sampleOf               int // the outage that it is a sample of; 0: none
	start                  time.Duration
	slot, failedIn, slowIn int // slots where it is counted; none: -1
}

const none = -1

func (m *model) slotOf(t time.Duration) int { return int(t / (m.c.Window / 8)) }

func (m *model) change(to CircuitState, why ChangeReason, at time.Duration, calls, failures int) {
	m.changes = append(m.changes, Change{From: m.state, To: to, Reason: why, At: at,
		Calls: int64(calls), Failures: int64(failures), MetricsOnly: m.c.MetricsOnly})
	if m.state == Closed {
		m.outage++
		m.sampleAt = at + 16*time.Duration(m.callGap)
	}
	m.state = to
	m.gen++
	m.probes = nil
	m.wins = 0
}

// openSpan is where an open time may lie that begins at the given moment with a
// call that took so long.
func (m *model) openSpan(at, took time.Duration) (least, most time.Duration) {
	j := max(0, m.c.OpenJitter)
	d := float64(m.c.OpenFor) * math.Pow(2, float64(m.openings))
	if m.c.OpenFor == 0 {
		d = max(1, min(0.1*float64(max(0, at-m.down)), 10*float64(took)))
	}
	d = min(d, float64(m.c.OpenMax)/(1+j))
	return time.Duration(d) - 2, min(time.Duration(d*(1+j))+2, m.c.OpenMax)
}

func (m *model) lost(now time.Duration) (at time.Duration, lost bool) {
	at = math.MaxInt64
	for _, p := range m.probes {
		at = min(at, p.start+m.c.ProbeTimeout)
	}
	return at, m.state == HalfOpen && len(m.probes) > 0 && now >= at
}

// settle needs the until that the breaker chose for an opening, if any.
func (m *model) settle(now time.Duration, chosen func() time.Duration) {
	if at, lost := m.lost(now); lost {
		m.change(Open, ProbeTimedOut, at, m.wins+1, 1)
		m.took = m.c.ProbeTimeout
		m.until = chosen()
		m.openings++
	}
	if m.state == Open && !m.forced && now >= m.until {
		m.change(HalfOpen, OpenTimePassed, now, 0, 0)
	}
}

func (m *model) start(now time.Duration, chosen func() time.Duration) (*modelCall, bool) {
	if m.state != Closed {
		m.settle(now, chosen)
	}
	c := &modelCall{gen: m.gen, start: now, slot: m.slotOf(now), failedIn: none, slowIn: none}
	switch {
	case m.state == HalfOpen && len(m.probes) < m.c.Probes:
		c.probe = true
		c.slot = none
		m.probes = append(m.probes, c)
	case m.state == Closed || m.c.MetricsOnly:
		m.calls = append(m.calls, c)
	case m.callGap > 0 && !m.forced && now >= m.sampleAt:
		c.sampleOf = m.outage
		c.slot = none
		m.sampleAt = now + 16*time.Duration(m.callGap)
	default:
		return nil, false
	}
	return c, true
}

// count gives the figures of the window of slots that ends with slot.
func (m *model) count(slot int, in func(*modelCall) int) (n int) {
	for _, c := range m.calls {
		if s := in(c); s != none && s <= slot && s > slot-8 {
			n++
		}
	}
	return n
}

func started(c *modelCall) int  { return c.slot }
func failedIn(c *modelCall) int { return c.failedIn }
func slowIn(c *modelCall) int   { return c.slowIn }

func (m *model) reached(share *big.Rat, part, whole int) bool {
	return share != nil && whole >= m.c.MinCalls && part > 0 &&
		big.NewRat(int64(part), int64(whole)).Cmp(share) >= 0
}

func (m *model) done(now time.Duration, c *modelCall, o Evidence, chosen func() time.Duration) {
	took := max(0, now-c.start)
	tooSlow := m.slow != nil && now-c.start > m.c.SlowCall
	if c.sampleOf != 0 {
		if o != Success {
			return
		}
		m.settle(now, chosen)
		if m.state == Closed || m.forced || c.sampleOf != m.outage || tooSlow {
			return
		}
		if m.state == Open {
			m.change(HalfOpen, OpenTimePassed, now, 0, 0)
		}
		if m.wins++; m.wins == m.c.Probes {
			m.change(Closed, ProbesSucceeded, now, m.c.Probes, 0)
			m.closed(now, took)
		}
		return
	}
	if c.gen != m.gen {
		return
	}
	if c.probe {
		m.settle(now, chosen)
		i := slices.Index(m.probes, c)
		if c.gen != m.gen || i < 0 {
			return
		}
		m.probes = slices.Delete(m.probes, i, i+1)
		switch {
		case o == Failure || o == Success && tooSlow:
			m.change(Open, ProbeFailed, now, m.wins+1, 1)
			m.took = took
			m.until = chosen()
			m.openings++
		case o == Success && m.wins+1 == m.c.Probes:
			m.change(Closed, ProbesSucceeded, now, m.c.Probes, 0)
			m.closed(now, took)
		case o == Success:
			m.wins++
		}
		return
	}
	slot, old := c.slot, false
	if s := m.slotOf(now); s-slot > 55 {
		slot, old = s-55, true
	}
	if o == Neutral {
		if !old {
			c.slot = none
		}
		return
	}
	trip := func(why ChangeReason, part, whole int) {
		if m.state != Closed || m.forced {
			return
		}
		if now-m.closedAt >= m.c.Window {
			m.openings = 0
			m.down = now - m.c.Window
			m.callGap = 0
			if m.c.OpenFor == 0 && why == Consecutive && whole > 1 {
				m.callGap = float32(max(0, now-m.from)) / float32(whole-1)
			}
		}
		if why == Consecutive {
			m.down = m.from
		}
		m.change(Open, why, now, whole, part)
		m.took = took
		m.until = chosen()
		m.openings++
	}
	slowTrip, slowPart, slowWhole := false, 0, 0
	if tooSlow {
		c.slowIn = slot
		slowPart = m.count(slot, slowIn)
		slowWhole = max(slowPart, m.count(slot, started))
		slowTrip = m.reached(m.slow, slowPart, slowWhole)
	}
	rateTrip, part, whole := false, 0, 0
	if o == Failure {
		if m.streak++; m.streak == 1 {
			m.from = now
		}
		c.failedIn = slot
		part = m.count(slot, failedIn)
		whole = max(part, m.count(slot, started))
		rateTrip = m.reached(m.share, part, whole)
	} else {
		m.streak = 0
	}
	needed := m.c.ConsecutiveFor
	if needed > 0 && now-m.closedAt < max(m.c.Window, 2*m.closedBy) {
		if m.streak >= 3*m.c.Consecutive {
			needed /= 10
		}
		needed = max(needed, m.closedBy)
	}
	switch {
	case rateTrip:
		trip(FailureRate, part, whole)
	case slowTrip:
		trip(SlowRate, slowPart, slowWhole)
	case o == Failure && m.c.Consecutive > 0 && m.streak >= m.c.Consecutive && max(0, now-m.from) >= needed:
		trip(Consecutive, m.streak, m.streak)
	}
}

func (m *model) closed(now, took time.Duration) {
	m.closedAt, m.closedBy, m.calls, m.streak = now, took, nil, 0
}

func TestModel(t *testing.T) {
	t.Parallel()
	const steps = 4000
	runs := seed.Runs(30)
	seen := map[ChangeReason]int{}
	for seed := range uint64(runs) {
		runModel(t, seed, steps, seen)
		if t.Failed() {
			return
		}
	}
	t.Logf("changes: %v", seen)
	for why := FailureRate; why <= OpenTimePassed; why++ {
		if seen[why] < runs/3 {
			t.Errorf("only %d changes by %v in %d steps: the test does not reach them", seen[why], why, runs*steps)
		}
	}
}

func runModel(t *testing.T, seed uint64, steps int, seen map[ChangeReason]int) {
	r := rand.New(rand.NewPCG(seed, 7))
	rates := []struct {
		f float64
		r *big.Rat
	}{{0.1, big.NewRat(1, 10)}, {0.3, big.NewRat(3, 10)}, {0.5, big.NewRat(1, 2)}, {0.75, big.NewRat(3, 4)}, {1, big.NewRat(1, 1)}}
	fail, slow := rates[r.IntN(len(rates))], rates[r.IntN(len(rates))]
	c := Config{
		Window: time.Second, FailureRate: fail.f, MinCalls: 1 + r.IntN(30),
		OpenFor: time.Duration(r.IntN(2)*(1+r.IntN(500))) * time.Millisecond, OpenMax: time.Duration(500+r.IntN(3000)) * time.Millisecond,
		OpenJitter: []float64{-1, 0.01, 0.5, 1, 3}[r.IntN(5)],
		Probes:     1 + r.IntN(4), ProbeTimeout: time.Duration(10+r.IntN(500)) * time.Millisecond,
		MetricsOnly: r.IntN(5) == 0,
	}
	m := &model{c: c, share: fail.r, closedAt: math.MinInt64 / 2}
	if r.IntN(2) == 0 {
		c.FailureRate, m.share = 0, nil
	}
	if r.IntN(2) == 0 {
		c.SlowRate, c.SlowCall, m.slow = slow.f, 20*time.Millisecond, slow.r
	}
	c.Consecutive = -1
	if r.IntN(3) > 0 {
		c.Consecutive, c.ConsecutiveFor = 1+r.IntN(10), []time.Duration{-1, 1, 20 * time.Millisecond, 200 * time.Millisecond}[r.IntN(4)]
	}
	m.c = c

	var heard []Change
	b := must.Have(New(c, func(c Change) { heard = append(heard, c) }))
	badness := 0.3
	var flying, reported []*modelCall
	now := time.Duration(r.Int64N(int64(time.Hour)))
	lastGen := b.word.Load() >> stateBits
	// chosen is the open time of the change that the breaker has just made and the
	// model makes now, checked.
	chosen := func() time.Duration {
		i := len(m.changes) - 1
		if i >= len(heard) || heard[i].To != Open {
			t.Errorf("seed %d: the breaker did not open: %+v", seed, m.changes[i])
			return now
		}
		least, most := m.openSpan(heard[i].At, m.took)
		if d := heard[i].Until - heard[i].At; d < least || d > most || d < 1 {
			t.Errorf("seed %d: open for %v, want %v to %v: %+v", seed, d, least, most, m)
		}
		m.changes[i].Until = heard[i].Until
		return heard[i].Until
	}

	for step := 0; step < steps && !t.Failed(); step++ {
		switch n := r.IntN(1000); {
		case n < 2:
			now += time.Duration(r.Int64N(int64(12 * time.Second)))
		case n < 10:
			now += time.Duration(r.Int64N(int64(time.Second)))
		case n < 100:
			now = max(0, now-time.Duration(r.Int64N(int64(10*time.Millisecond))))
		default:
			now += time.Duration(r.Int64N(int64(10 * time.Millisecond)))
		}
		if step%500 == 0 {
			badness = []float64{0, 0.1, 0.3, 0.6, 1}[r.IntN(5)]
		}
		before := b.word.Load()
		switch n := r.IntN(1000); {
		case n < 500:
			tok, ok := b.Start(now)
			call, want := m.start(now, chosen)
			if ok != want {
				t.Errorf("seed %d step %d: Start says %t, want %t", seed, step, ok, want)
				break
			}
			if !ok {
				break
			}
			if tok.Probe() != (call.probe || call.sampleOf != 0) {
				t.Errorf("seed %d step %d: probe %t, want %t", seed, step, tok.Probe(), call.probe)
			}
			call.tok = tok
			if m.gen == 0 && c.CanStartLate() && tok != LateTicket(now) {
				t.Errorf("seed %d step %d: a token of the first generation is not fresh", seed, step)
			}
			if r.IntN(20) > 0 { // the others are never reported
				flying = append(flying, call)
			}
		case n < 950 && len(flying) > 0:
			i := r.IntN(len(flying))
			if r.IntN(4) > 0 {
				i = max(0, len(flying)-1-r.IntN(5)) // mostly a young one
			}
			call := flying[i]
			flying = slices.Delete(flying, i, i+1)
			o := Success
			if r.Float64() < badness {
				o = Failure
			} else if r.IntN(10) == 0 {
				o = Neutral
			}
			b.Done(now, call.tok, o, r.Uint64)
			m.done(now, call, o, chosen)
			if call.probe {
				reported = append(reported, call)
			}
		case n < 960 && len(reported) > 0: // a probe reported twice
			call := reported[len(reported)-1-r.IntN(min(3, len(reported)))]
			o := Evidence(r.IntN(3))
			b.Done(now, call.tok, o, r.Uint64)
			m.done(now, call, o, chosen)
		case n == 960:
			b.ForceOpen(now)
			m.forced, m.openings, m.until, m.down = true, 0, math.MaxInt64, now
			m.probes = nil
			if m.state != Open {
				m.change(Open, Forced, now, 0, 0)
			}
		case n == 961:
			b.ForceClosed(now)
			m.forced = true
			if m.state != Closed {
				m.change(Closed, Forced, now, 0, 0)
				m.closed(now, 0)
			}
		case n < 970:
			b.Auto(now)
			if m.forced && m.state == Open {
				m.until, m.down = now, now
			}
			m.forced = false
		default:
			compareReadings(t, seed, step, now, b, m)
		}
		if !slices.Equal(heard, m.changes) {
			k := 0
			for k < len(heard) && k < len(m.changes) && heard[k] == m.changes[k] {
				k++
			}
			t.Errorf("seed %d step %d: change %d differs:\nbreaker %+v\nmodel   %+v", seed, step, k, heard[k:], m.changes[k:])
		}
		check.Equal(t, b.state(), m.state, "seed %d step %d: state", seed, step)
		if gen := b.word.Load() >> stateBits; gen < lastGen || gen == lastGen && before != b.word.Load() {
			t.Errorf("seed %d step %d: generation %d after %d", seed, step, gen, lastGen)
		} else {
			lastGen = gen
		}
		if out := b.probesOut.placesTaken(true); out > c.Probes {
			t.Errorf("seed %d step %d: %d probes out, at most %d may be", seed, step, out, c.Probes)
		}
		for _, h := range heard {
			seen[h.Reason]++
		}
		heard, m.changes = heard[:0], m.changes[:0]
		// Forget what no window reaches any more, to stay fast.
		if step%100 == 0 {
			oldest := m.slotOf(now) - 80
			m.calls = slices.DeleteFunc(m.calls, func(c *modelCall) bool {
				return max(c.slot, c.failedIn, c.slowIn) < oldest && !slices.Contains(flying, c)
			})
		}
	}
}

func compareReadings(t *testing.T, seed uint64, step int, now time.Duration, b *Breaker, m *model) {
	t.Helper()
	got, at := b.State(now), b.RetryAt(now)
	check.Equal(t, b.Forced(), m.forced, "seed %d step %d: forced", seed, step)
	switch {
	case m.c.MetricsOnly || m.state == Closed:
		if got != Closed || at != 0 {
			t.Errorf("seed %d step %d: State %v, RetryAt %v, want closed", seed, step, got, at)
		}
	case m.state == Open:
		want, wantAt := Open, m.until
		if m.forced {
			wantAt = 0
		} else if now >= m.until {
			want, wantAt = HalfOpen, 0
		}
		if got != want || at != wantAt {
			t.Errorf("seed %d step %d: State %v, RetryAt %v, want %v, %v", seed, step, got, at, want, wantAt)
		}
	default:
		lostAt, lost := m.lost(now)
		least, most := m.openSpan(lostAt, m.c.ProbeTimeout)
		switch {
		case !lost && (got != HalfOpen || at != 0),
			lost && got == Open && (at < lostAt+least || at > lostAt+most || at <= now),
			lost && got == HalfOpen && (at != 0 || now < lostAt+least),
			got == Closed:
			t.Errorf("seed %d step %d: State %v, RetryAt %v at %v; half-open, probe lost %t at %v", seed, step, got, at, now, lost, lostAt)
		}
	}
	calls, failures, slow := b.Counts(now)
	if m.c.CanStartLate() {
		if calls != 0 || failures != 0 || slow != 0 {
			t.Errorf("seed %d step %d: Counts %d, %d, %d without a rule that counts", seed, step, calls, failures, slow)
		}
		return
	}
	s := m.slotOf(now)
	if w, f, l := m.count(s, started), m.count(s, failedIn), m.count(s, slowIn); int(calls) != w || int(failures) != f || int(slow) != l {
		t.Errorf("seed %d step %d: Counts %d, %d, %d, want %d, %d, %d", seed, step, calls, failures, slow, w, f, l)
	}
}
