package lullredis

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
)

// A world is a fleet and a Redis in virtual time. Requests and answers take time, get lost, and
// arrive late, twice or out of order, by the settings in weather.
type world struct {
	t        *testing.T
	rnd      *rand.Rand
	now      time.Duration
	settings ledgerSettings
	redis    *model
	clock    time.Duration // of Redis, ahead of now by
	people   []*person
	frozen   bool // Redis stands still; what is sent to it waits
	down     bool // Redis is not there; what is sent to it is refused
	flight   []packet
	waiting  []packet // for Redis to thaw
	weather  weather
	amnesia  bool // Redis forgets: instances may hold what it does not know of
	zero     bool // shares begin with nothing instead of a part drawn by chance
	ids      int

	used  int64   // tokens spent by all
	least float64 // of used - floor × time, while nobody was on its own
	peak  float64 // of used - floor × time - least: spent at once, beyond the floor
}

type weather struct {
	latency time.Duration // at most, each way
	lose    float64       // of requests, and of answers
	late    float64       // of requests, which arrive up to 20 s late
	twice   float64       // of requests: sent again by the client, with the same content
}

type packet struct {
	at   time.Duration
	to   *person // an answer, else a request
	from *person
	id   string
	r    request
	a    answer
	sent int // the answer is for this attempt
}

type person struct {
	*ledger
	cut     bool // cannot reach Redis
	dead    bool
	round   time.Duration
	timeout time.Duration // of the attempt under way; 0: none
	attempt int
	rate    float64 // retries wanted per second
	funds   float64
	used    int64
}

const tick = 20 * time.Millisecond

func newWorld(t *testing.T, seed uint64, n int, c BudgetConfig) *world {
	w := &world{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), settings: c.ledgerSettings(time.Second), redis: newModel(), clock: 1e6 * time.Second}
	for range n {
		w.join()
	}
	return w
}

func (w *world) id() string { w.ids++; return fmt.Sprint("i", w.ids) }

func (w *world) join() *person {
	p := &person{ledger: newLedger(w.settings, w.id(), w.now), funds: 5}
	w.people = append(w.people, p)
	return p
}

func (w *world) chance() uint64 {
	if w.zero {
		return 0
	}
	return w.rnd.Uint64()
}

// run lets time pass.
func (w *world) run(d time.Duration) {
	for end := w.now + d; w.now < end; w.now += tick {
		w.deliver()
		for _, p := range w.people {
			if !p.dead {
				w.live(p)
			}
		}
		w.judge()
	}
}

func (w *world) live(p *person) {
	if p.timeout > 0 && w.now >= p.timeout {
		p.timeout = 0
		p.lost(errors.New("timeout"))
	}
	everybody := w.now >= p.round
	if everybody {
		e := w.settings.every
		p.round = w.now + e - e/4 + time.Duration(w.rnd.Int64N(int64(e/2)))
		p.accrue(w.now, w.chance)
	}
	at, urgent := p.needsSync()
	if p.timeout == 0 && (everybody || urgent && at <= w.now) {
		if r, ok := p.nextRequest(w.now, p.funds); ok {
			p.attempt++
			p.timeout = w.now + w.settings.every/2
			w.send(p, r)
		}
	}
	for n := w.poisson(p.rate * tick.Seconds()); n > 0; n-- {
		if paid, _ := p.withdraw(); paid {
			p.used++
			w.used++
		}
	}
}

func (w *world) poisson(mean float64) (n int) {
	for l := w.rnd.ExpFloat64(); l < mean; l += w.rnd.ExpFloat64() {
		n++
	}
	return n
}

func (w *world) send(p *person, r request) {
	pk := packet{from: p, id: p.id, r: r, sent: p.attempt}
	if p.cut || w.rnd.Float64() < w.weather.lose {
		return
	}
	copies := 1
	if w.rnd.Float64() < w.weather.twice {
		copies = 3
	}
	for range copies {
		pk.at = w.now + w.hop()
		if w.rnd.Float64() < w.weather.late {
			pk.at += time.Duration(w.rnd.Int64N(int64(20 * time.Second)))
		}
		w.flight = append(w.flight, pk)
	}
}

func (w *world) hop() time.Duration {
	if w.weather.latency == 0 {
		return 0
	}
	return time.Duration(w.rnd.Int64N(int64(w.weather.latency)))
}

func (w *world) deliver() {
	var rest []packet
	flight := w.flight
	w.flight = nil
	if !w.frozen {
		flight = append(flight, w.waiting...)
		w.waiting = nil
	}
	w.rnd.Shuffle(len(flight), func(i, j int) { flight[i], flight[j] = flight[j], flight[i] })
	for _, pk := range flight {
		switch {
		case pk.at > w.now:
			rest = append(rest, pk)
		case pk.to == nil && w.down:
			// Refused: the sender notices at its timeout.
		case pk.to == nil && w.frozen:
			w.waiting = append(w.waiting, pk)
		case pk.to == nil:
			a := w.redis.sync(w.now+w.clock, pk.id, pk.r, w.settings)
			w.check()
			if w.rnd.Float64() >= w.weather.lose && !pk.from.cut {
				rest = append(rest, packet{at: w.now + w.hop(), to: pk.from, a: a, sent: pk.sent})
			}
		case pk.to.timeout > 0 && pk.sent == pk.to.attempt && !pk.to.dead:
			// The client still waits for this one.
			pk.to.timeout = 0
			pk.to.apply(w.now, pk.a, w.id)
		}
	}
	w.flight = append(w.flight, rest...)
}

// check checks the invariants of the script and the ledgers.
func (w *world) check() {
	m := w.redis
	if sum := m.pool + float64(m.out()); m.pool < 0 || sum > w.settings.pool*(1+1e-12) {
		w.t.Fatalf("%v: pool %v and held %v: more than %v", w.now, m.pool, m.out(), w.settings.pool)
	}
	for _, p := range w.people {
		if r, known := m.records[p.id]; known && !p.dead && !w.amnesia {
			if h := p.leased.Load(); h > r.holds {
				w.t.Fatalf("%v: %s holds %d, its record says %d", w.now, p.id, h, r.holds)
			}
		}
	}
}

func (w *world) judge() {
	level := float64(w.used) - w.settings.floor*w.now.Seconds()
	w.peak = max(w.peak, level-w.least)
	for _, p := range w.people {
		if p.alone && !p.dead {
			return
		}
	}
	w.least = min(w.least, level)
}

func (w *world) storm(rate float64) {
	for _, p := range w.people {
		p.rate, p.funds = rate, 0
	}
}

// want stops the test unless what was spent in any stretch of time is within
// floor × time + most.
func (w *world) want(most float64) {
	w.t.Helper()
	if w.peak > most+1e-6 {
		w.t.Errorf("%v: spent %.2f more than floor × time in some stretch, want at most %v", w.now, w.peak, most)
	}
}

var fleetOf50 = BudgetConfig{Floor: 5, Pool: 50}

// The bound itself: in any stretch of time, floor × time + pool, however many instances
// there are, in bad weather and worse.
func TestAFleetSpendsNoMoreThanFloorAndPool(t *testing.T) {
	t.Parallel()
	for name, air := range map[string]weather{
		"clear":   {latency: 2 * time.Millisecond},
		"slow":    {latency: 400 * time.Millisecond},
		"lossy":   {latency: 50 * time.Millisecond, lose: 0.4},
		"echoing": {latency: 50 * time.Millisecond, lose: 0.1, twice: 0.5, late: 0.3},
	} {
		sizes := []int{1, 7, 50}
		if name == "slow" {
			sizes = append(sizes, 100)
		}
		for _, n := range sizes {
			t.Run(fmt.Sprint(name, n), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, uint64(n), n, fleetOf50)
				w.weather, w.zero = air, true
				if name == "lossy" || name == "echoing" {
					w.settings.alone = 0 // shares of instances that are alone among others come on top, see below
					for _, p := range w.people {
						p.ledger.settings.alone = 0
					}
				}
				w.run(15 * time.Second) // the pool fills
				w.storm(2)
				w.run(20 * time.Second)
				w.storm(0)
				w.run(20 * time.Second)
				w.people[0].rate = 100 // one hot instance
				w.run(20 * time.Second)
				w.want(w.settings.pool)
			})
		}
	}
}

// In a storm the fleet really spends its floor, and the pool that it had before.
func TestAStormGetsTheFloorAndThePool(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 50, 150} {
		w := newWorld(t, 7, n, fleetOf50)
		w.weather.latency = 5 * time.Millisecond
		w.run(30 * time.Second)
		if w.used != 0 {
			t.Fatal("spent without a need")
		}
		w.storm(300 / float64(n))
		w.run(30 * time.Second)
		if have, want := float64(w.used), 5*30+50.0; have < 0.8*want || have > want+5 {
			t.Errorf("%d instances spent %v of %v", n, have, want)
		}
	}
}

// After a storm, instances that have earned enough hand everything back. The others do not keep
// all of the pool.
func TestAfterAStormTheFleetCanLendAgain(t *testing.T) {
	t.Parallel()
	for _, funds := range []float64{5, 0} {
		w := newWorld(t, 9, 50, fleetOf50)
		w.weather.latency = 5 * time.Millisecond
		w.run(15 * time.Second)
		w.storm(3)
		w.run(20 * time.Second)
		for _, p := range w.people {
			p.rate, p.funds = 0, funds
		}
		w.run(30 * time.Second)
		out := w.redis.out()
		if funds > 1 && out != 0 || out > 26 || w.redis.pool < 24 {
			t.Errorf("funds %v: later %d are held and %.1f are left", funds, out, w.redis.pool)
		}
		for _, p := range w.people {
			if h := p.leased.Load(); h > 1 || funds > 1 && h > 0 {
				t.Errorf("funds %v: an idle instance holds %d", funds, h)
			}
		}
		w.people[0].rate = 50
		w.run(5 * time.Second)
		if used := w.people[0].used; used < 20+20 {
			t.Errorf("funds %v: the next in need got %d", funds, used)
		}
	}
}

// No token is lost, however often the network breaks: when all is quiet again the pool is full,
// and Redis' records match the instances' tokens.
func TestTokensAreNotLostOnTheWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4, 30, BudgetConfig{Floor: 1e-6, Pool: 50, AloneShare: -1})
	w.redis.exists, w.redis.filled, w.redis.pool = true, (w.clock + w.now).Microseconds(), 50
	w.weather = weather{latency: 100 * time.Millisecond, lose: 0.3, twice: 0.3}
	for range 10 {
		w.storm(0)
		w.run(3 * time.Second)
		w.storm(0.01)
		w.people[w.rnd.IntN(30)].rate = 0.5
		w.frozen = !w.frozen
		w.run(5 * time.Second)
	}
	w.frozen, w.weather = false, weather{}
	w.storm(0)
	for _, p := range w.people {
		p.funds = 5
	}
	w.run(20 * time.Second)
	if left := 50 - float64(w.used); w.used < 10 || w.redis.out() != 0 || math.Abs(w.redis.pool-left) > 0.01 {
		t.Errorf("spent %d of 50; there should be %v in the pool, and there are %v; held %d", w.used, left, w.redis.pool, w.redis.out())
	}
}

// A new instance may need a token before it has earned one, and so may an old one that
// has nothing. But never more than half of the pool goes to instances that only might need it.
func TestIdleInstancesHoldATokenIfTheyHaveNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, 20, fleetOf50)
	w.run(30 * time.Second)
	for _, p := range w.people {
		check.Equal(t, p.leased.Load(), 0, "one that has earned enough: holds")
	}
	for _, p := range w.people {
		p.funds = 0.9
	}
	w.run(10 * time.Second)
	for _, p := range w.people {
		check.Equal(t, p.leased.Load(), 1, "one that has not earned a token: holds")
	}
	for range 60 {
		w.join().funds = 0
	}
	w.run(30 * time.Second)
	if out, pool := w.redis.out(), w.redis.pool; out > 26 || pool < 24 {
		t.Errorf("%d of the 50 are held by the idle, %.1f are left", out, pool)
	}
	w.want(50)
}

// Frozen and back: the tokens that instances allow themselves meanwhile are taken from the floor
// that Redis would have counted, so the bound is the same.
func TestAFrozenRedisChangesNothingInTheBound(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not short: long in virtual time, and the same every time on one goroutine")
	}
	for _, alone := range []float64{-1, 0.5, 1} {
		long := 30 * time.Second
		if alone == 0.5 {
			long = 11 * time.Minute
		}
		for _, frozen := range []time.Duration{time.Second, 5 * time.Second, 13 * time.Second, long} {
			c := fleetOf50
			c.AloneShare = alone
			w := newWorld(t, 11, 50, c)
			w.weather.latency, w.zero = 20*time.Millisecond, true
			w.run(15 * time.Second)
			w.storm(0.5)
			w.run(10 * time.Second)
			before := w.used
			w.frozen = true
			w.run(frozen)
			during := w.used - before
			w.frozen = false
			w.run(30 * time.Second)
			after := w.used - before - during
			w.want(50)
			t.Logf("alone %v, frozen %v: spent %d before, %d during (floor %v), %d in the 30 s after", alone, frozen, before, during, 5*frozen.Seconds(), after)
			// On its own the fleet spends that part of the floor; less what is spent on
			// noticing, and what each instance has not completed.
			if share := max(alone, 0) * 5 * (frozen.Seconds() - 6); float64(during) < share-50 {
				t.Errorf("alone %v, frozen %v: the fleet spent only %d", alone, frozen, during)
			}
			if float64(after) < 0.8*5*30 {
				t.Errorf("alone %v, frozen %v: back in step the fleet spent only %d", alone, frozen, after)
			}
			for _, p := range w.people {
				if m := p.mode(w.now); m != ModeInStep {
					t.Fatalf("an instance is %v after Redis came back", m)
				}
			}
		}
	}
}

// With shares begun by chance the fleet spends the same on average, not more, and
// from the start and not all at once.
func TestSharesComeToTheirPartOnAverage(t *testing.T) {
	t.Parallel()
	var sum, early float64
	const runs = 20
	for seed := range uint64(runs) {
		w := newWorld(t, seed, 50, fleetOf50)
		w.run(5 * time.Second)
		w.storm(5)
		w.run(5 * time.Second)
		w.down = true
		w.run(5*time.Second + 300*time.Millisecond) // all have noticed
		before := w.used
		w.run(4 * time.Second)
		early += float64(w.used - before)
		w.run(8 * time.Second)
		sum += float64(w.used - before)
	}
	if sum /= runs; math.Abs(sum-0.5*5*12) > 3 {
		t.Errorf("12 s alone: spent %v on average, want %v", sum, 0.5*5*12)
	}
	if early /= runs; math.Abs(early-0.5*5*4) > 3 {
		t.Errorf("4 s alone: spent %v on average, want %v", early, 0.5*5*4)
	}
}

// Split: part of the fleet cannot reach Redis, and spends its share of a part of the floor. The
// others can, and spend the floor.
func TestASplitFleetSpendsItsShareOnTop(t *testing.T) {
	t.Parallel()
	for _, cut := range []int{1, 25, 49} {
		w := newWorld(t, 5, 50, fleetOf50)
		w.zero = true
		w.run(15 * time.Second)
		w.storm(2)
		w.run(20 * time.Second)
		before := w.used
		for _, p := range w.people[:cut] {
			p.cut = true
		}
		w.run(60 * time.Second)
		bound := 5*60*(1+0.5*float64(cut)/50) + 50
		if got := float64(w.used - before); got > bound {
			t.Errorf("%d of 50 cut off: spent %v, want at most %v", cut, got, bound)
		}
		for _, p := range w.people[:cut] {
			if p.mode(w.now) != ModeAlone {
				t.Fatalf("an instance that is cut off says it is %v", p.mode(w.now))
			}
			p.rate = 0
		}
		var shares int64
		for i := 0; i < 100 && shares < int64(min(cut, 10)); i++ {
			w.run(200 * time.Millisecond)
			shares = 0
			for _, p := range w.people[:cut] {
				shares += p.share.Load()
			}
		}
		if cut > 1 && shares == 0 {
			t.Fatal("no instance has any of its share left: the test shows nothing")
		}
		for _, p := range w.people[:cut] {
			p.cut = false
		}
		w.run(2 * time.Second)
		for _, p := range w.people {
			if p.share.Load() != 0 || p.mode(w.now) != ModeInStep {
				t.Fatalf("back, an instance is %v and keeps %d of its share", p.mode(w.now), p.share.Load())
			}
		}
	}
}

// Instances that have not been in step for long do not know how many there are, and
// instances that never were know nothing: neither allows itself anything.
func TestWhoDoesNotKnowTheFleetAllowsItselfNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5, 1, fleetOf50)
	w.zero = true
	w.people[0].rate = 5
	w.run(10 * time.Second)
	for range 99 {
		w.join().rate = 5
	}
	w.run(500 * time.Millisecond) // each has synced once: 2, 3, 4, ... members
	w.down = true
	for range 100 {
		w.join().rate = 5 // these never
	}
	w.run(5 * time.Second)
	before := w.used
	w.run(100 * time.Second)
	if got := float64(w.used - before); got > 0.5*5*100 {
		t.Errorf("spent %v, want at most half of the floor, %v", got, 0.5*5*100)
	}
}

// What Redis loses (its data, what a replica has not got yet, or, by a clock that is set forward, what it remembers) costs one pool
// at most: instances spend what they hold before they hear that it is void, once. A clock that is set back costs nothing.
func TestLostDataCostsOnePoolAtMost(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(w *world, replica *model){
		"all":             func(w *world, _ *model) { w.redis = newModel() },
		"a replica":       func(w *world, replica *model) { w.redis = replica },
		"a clock forward": func(w *world, _ *model) { w.clock += time.Hour },
		"a clock back":    func(w *world, _ *model) { w.clock -= time.Hour }, // the pool does not fill for an hour
	} {
		for seed := range uint64(3) {
			w := newWorld(t, seed, 50, fleetOf50)
			w.zero = true
			w.weather.latency = 10 * time.Millisecond
			w.run(15 * time.Second)
			replica := w.redis.clone()
			w.storm(2)
			w.run(2 * time.Second)
			lose(w, replica)
			w.amnesia = name != "a clock back"
			w.run(30 * time.Second)
			if !w.amnesia {
				w.want(50)
				continue
			}
			w.want(2 * 50)
			if w.redis.pool > 5 || float64(w.used) < 0.7*5*30 {
				t.Errorf("%s: in a storm the pool holds %v, and the fleet has spent only %d", name, w.redis.pool, w.used)
			}
		}
	}
	// And without any need it mints nothing at all: a fleet whose Redis forgets every
	// 8 s never has more than 8 s of floor.
	w := newWorld(t, 1, 50, fleetOf50)
	for range 20 {
		w.run(8 * time.Second)
		w.redis = newModel()
	}
	w.storm(5)
	w.run(8 * time.Second)
	if w.used > 8*5 {
		t.Errorf("spent %d, want at most %d", w.used, 8*5)
	}
}

// Instances that die take what they hold with them for a while; it comes back when they
// are forgotten, and not before they would have given it up themselves.
func TestTheTokensOfTheDeadComeBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, 50, fleetOf50)
	w.run(15 * time.Second)
	for _, p := range w.people[:40] {
		p.rate = 3
	}
	w.run(3 * time.Second)
	for _, p := range w.people[:40] {
		p.dead = true
	}
	w.run(time.Minute)
	held := w.redis.out()
	if held == 0 {
		t.Fatal("the dead held nothing: the test shows nothing")
	}
	if got := w.redis.pool; got > 50-float64(held)+1e-9 {
		t.Errorf("pool %v though %d are held", got, held)
	}
	w.run(10 * time.Minute)
	if w.redis.pool < 49.9 || w.redis.out() != 0 || len(w.redis.seen) != 10 {
		t.Errorf("later: pool %v, held %d, %d members", w.redis.pool, w.redis.out(), len(w.redis.seen))
	}
	// One that was only cut off for as long does not bring its old tokens back.
	p := w.people[45]
	p.rate = 3
	w.run(3 * time.Second)
	p.rate, p.cut = 0, true
	if p.leased.Load() == 0 {
		t.Fatal("it holds nothing: the test shows nothing")
	}
	w.run(dropTokensAfter + 2*time.Second)
	check.Equal(t, p.leased.Load(), 0, "cut off for %v: holds", dropTokensAfter)
}

// Random lives: instances come and go, are cut off and come back, Redis freezes and
// thaws, and messages do as they like. Without shares the bound holds throughout.
func TestRandomLives(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		c := BudgetConfig{Floor: 3, Pool: 20, AloneShare: -1}
		w := newWorld(t, seed, 20, c)
		w.weather = weather{latency: 100 * time.Millisecond, lose: 0.05, late: 0.05, twice: 0.1}
		for range 75 {
			p := w.people[w.rnd.IntN(len(w.people))]
			switch w.rnd.IntN(12) {
			case 0:
				p.dead = true
			case 1, 2:
				w.join().rate = w.rnd.Float64() * 4
			case 3, 4:
				p.cut = !p.cut
			case 5:
				w.frozen = !w.frozen
			case 6, 7, 8:
				p.rate = w.rnd.Float64() * 10
			case 9:
				p.rate = 0
			case 10:
				p.funds = w.rnd.Float64() * 2
			case 11:
				if !p.dead && !p.cut { // it leaves
					w.send(p, p.lastRequest())
					p.dead = true
				}
			}
			if w.frozen && w.rnd.IntN(3) == 0 {
				w.frozen = false
			}
			w.run(time.Duration(w.rnd.Int64N(int64(4 * time.Second))))
		}
		w.want(20)
		if w.t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
