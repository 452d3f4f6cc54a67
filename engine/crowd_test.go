package engine_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/engine/consumers"
	"github.com/lullgo/lull/internal/seed"
)

// A crowdWorld has messages, of which the first few kill the process that handles them, and the
// processes. Time goes in steps.
type crowdWorld struct {
	told              bool // the broker reports losses
	workers, messages int
	most              int // Config.Concurrency
	poisons           int
	killsAfter        time.Duration // a poison, after its handler has begun
	kills             float64       // how probable that is
	work              time.Duration // of a handler, at most
	deployed          time.Duration // the time between two deployments, which kill all; zero: never
	broken            time.Duration // so often a connection is, on average
}

type crowdMessage struct {
	poison                 bool
	attempt, lost, crashes int // as a broker reports them at the next delivery
	ready                  time.Duration
	out, gone, letter      bool
}

type crowdHand struct {
	m       *crowdMessage
	crashes int
	begun   bool
	ends    time.Duration
	kills   bool
}

type crowdWorker struct {
	crowd consumers.Crowd
	hands []*crowdHand
	line  []*crowdHand
	seen  map[*crowdMessage]int
	row   map[*crowdMessage]int
	up    time.Duration // it runs from then on
}

func (w *crowdWorker) begin(h *crowdHand, now time.Duration, x crowdWorld, r *rand.Rand) {
	h.begun = true
	h.ends = now + x.work/10 + time.Duration(r.Int64N(int64(x.work)))
	if h.m.poison && r.Float64() < x.kills {
		h.kills, h.ends = true, now+x.killsAfter
	}
}

func (w *crowdWorker) drop(h *crowdHand) {
	w.hands = slices.DeleteFunc(w.hands, func(o *crowdHand) bool { return o == h })
	if h.begun {
		w.crowd.End(h.crashes)
	}
}

// lose gives back all that a worker has in hand, without a word.
func (w *crowdWorker) lose(now time.Duration, x crowdWorld) {
	for _, h := range w.hands {
		h.m.out = false
		h.m.attempt++
		h.m.lost++
		h.m.ready = now
		if !x.told {
			h.m.ready += 30 * time.Second // its lease
		}
	}
}

const crowdStep = 100 * time.Millisecond

// run returns how often a poison has killed a process, and what became of the messages.
func (x crowdWorld) run(t *testing.T, p *engine.Plan, r *rand.Rand) (deaths int, innocent, handled int, took time.Duration) {
	all := make([]*crowdMessage, x.messages)
	for i := range all {
		all[i] = &crowdMessage{poison: i < x.poisons, attempt: 1}
	}
	fresh := func(up time.Duration) *crowdWorker {
		return &crowdWorker{crowd: consumers.Crowd{Most: x.most, FreeDefer: x.told}, seen: map[*crowdMessage]int{}, row: map[*crowdMessage]int{}, up: up}
	}
	workers := make([]*crowdWorker, x.workers)
	for i := range workers {
		workers[i] = fresh(0)
	}
	left := x.messages
	step := crowdStep
	for now := time.Duration(0); left > 0; now += step {
		if now > 200*time.Hour {
			t.Fatalf("%+v: %d messages are left", x, left)
		}
		took = now
		if x.deployed > 0 && now/x.deployed > (now-step)/x.deployed {
			for i, w := range workers {
				w.lose(now, x)
				workers[i] = fresh(now + time.Second)
			}
		}
		for i, w := range workers {
			if now < w.up {
				continue
			}
			if x.broken > 0 && r.Float64() < float64(step)/float64(x.broken) {
				w.lose(now, x)
				for _, h := range w.hands {
					w.seen[h.m]++
					w.row[h.m]++
				}
				seen, row := w.seen, w.row
				*w = *fresh(now + crowdStep)
				w.seen, w.row = seen, row
				continue
			}
			if slices.ContainsFunc(w.hands, func(h *crowdHand) bool { return h.kills && h.ends <= now }) {
				deaths++
				w.lose(now, x)
				workers[i] = fresh(now + time.Second)
				continue
			}
			for _, h := range slices.Clone(w.hands) {
				if h.begun && h.ends <= now {
					h.m.gone, h.m.out = true, false
					w.drop(h)
					left--
					handled++
				}
			}
			left -= w.fetch(now, x, all, p, r, &innocent)
		}
		step = x.next(now, all, workers) - now
	}
	return deaths, innocent, handled, took
}

// next is when something may happen again, a step from now at the earliest.
func (x crowdWorld) next(now time.Duration, all []*crowdMessage, workers []*crowdWorker) time.Duration {
	at := now + time.Hour
	if x.broken > 0 {
		at = now + time.Second
	}
	if x.deployed > 0 {
		at = min(at, (now/x.deployed+1)*x.deployed)
	}
	soon := func(t time.Duration) {
		if t > now {
			at = min(at, t)
		}
	}
	for _, m := range all {
		if !m.gone && !m.out {
			soon(max(m.ready, now+crowdStep))
		}
	}
	for _, w := range workers {
		soon(w.up)
		for _, h := range w.hands {
			if h.begun {
				soon(h.ends)
			}
		}
	}
	return max(at, now+crowdStep)
}

// fetch is what a consumer does between two messages. It returns how many became letters.
func (w *crowdWorker) fetch(now time.Duration, x crowdWorld, all []*crowdMessage, p *engine.Plan, r *rand.Rand, innocent *int) (letters int) {
	turns := func() {
		for w.crowd.BeginNext() {
			w.begin(w.line[0], now, x, r)
			if w.line = w.line[1:]; len(w.line) > 0 {
				w.crowd.SetNext(w.line[0].crashes)
			}
		}
	}
	turns()
	n := min(w.crowd.Fetch(min(10, x.most)), x.most-len(w.hands))
	var come []*crowdHand
	for _, i := range r.Perm(len(all)) {
		m := all[i]
		if len(come) >= n || m.out || m.gone || m.ready > now {
			continue
		}
		d := engine.Delivery{BrokerCapabilities: engine.BrokerCapabilities{MaxDelay: time.Hour, FreeDefer: x.told, Losses: x.told}, Attempt: m.attempt, SeenLost: w.row[m]}
		if x.told {
			d.Lost, d.Crashes = m.lost, m.crashes
		}
		d = p.Counted(d, w.seen[m])
		rd, ok := p.Deliver(d, r.Uint64)
		switch {
		case ok:
			m.out = true
			come = append(come, &crowdHand{m: m, crashes: d.Crashes})
		case rd.Outcome == engine.DeadLetter:
			m.gone, m.letter = true, true
			letters++
			if !m.poison {
				*innocent++
			}
		default:
			m.attempt, m.lost, m.crashes, m.ready = d.Attempt, 0, d.Crashes, now+rd.After
			w.seen[m] = 0
		}
	}
	slices.SortStableFunc(come, func(a, b *crowdHand) int { return a.crashes - b.crashes })
	for _, h := range come {
		begin, wait := w.crowd.Arrive(h.crashes)
		switch {
		case begin:
			w.begin(h, now, x, r)
		case !wait && w.crowd.FreeDefer:
			h.m.out, h.m.ready = false, now+time.Duration(r.Int64N(int64(time.Second)))
			continue
		default:
			w.line = append(w.line, h)
		}
		w.hands = append(w.hands, h)
	}
	turns()
	return letters
}

// Messages that kill their process become dead letters after a bounded number of crashes, and no
// other message does, however many are in flight.
func TestACrashIsEvidenceAgainstWhatRanAlone(t *testing.T) {
	r := seed.Rand(t)
	policy := messages()
	policy.Attempts = 10
	policy.Backoff = backoff.Schedule{Base: time.Second, Cap: 10 * time.Minute}
	p := newDependency(t, policy).Plan()
	pick := func(d ...time.Duration) time.Duration { return d[r.IntN(len(d))] }
	rounds := seed.Runs(100)
	for _, told := range []bool{true, false} {
		bound := 13 // Attempts in company, three alone
		if told {
			bound = 10
		}
		most, worlds, innocents, messages := 0, 0, 0, 0
		for range rounds {
			x := crowdWorld{
				told: told, workers: 1 + r.IntN(5), most: 1 + r.IntN(60), messages: 60, poisons: r.IntN(3),
				killsAfter: pick(0, 300*time.Millisecond, 5*time.Second, 40*time.Second), kills: 1,
				work: pick(200*time.Millisecond, time.Second, 20*time.Second),
			}
			if r.IntN(4) == 0 {
				x.kills = 0.2 + 0.6*r.Float64()
			}
			if r.IntN(3) == 0 {
				x.deployed = pick(2*time.Minute, 5*time.Minute, 20*time.Minute)
			}
			if r.IntN(3) == 0 {
				if x.broken = pick(20*time.Second, 2*time.Minute); !told {
					x.broken *= 10 // a lease outlives most of it
				}
			}
			deaths, innocent, _, _ := x.run(t, p, r)
			if x.poisons > 0 {
				most = max(most, (deaths+x.poisons-1)/x.poisons)
				worlds++
			}
			messages += x.messages
			innocents += innocent
			if innocent > 0 {
				t.Errorf("%+v: %d messages that did nothing are letters", x, innocent)
			}
			if deaths > bound*x.poisons {
				t.Errorf("%+v: %d deaths, want %d for each poison at most", x, deaths, bound)
			}
		}
		t.Logf("losses told %v: a poison among 60 messages killed its process %d times at most, in %d worlds; of %d messages %d that did nothing became letters", told, most, worlds, messages, innocents)
	}
}

// How many messages run beside one that has crashed, and how many are fetched.
func TestCrowd(t *testing.T) {
	for _, c := range []struct {
		most  int
		rooms [5]int // after no crash, one, two, ...
	}{
		{1, [5]int{1, 1, 1, 1, 1}}, {3, [5]int{3, 1, 1, 1, 1}}, {16, [5]int{16, 4, 1, 1, 1}}, {60, [5]int{60, 15, 3, 1, 1}}, {1000, [5]int{1000, 250, 62, 1, 1}},
	} {
		for crashes, room := range c.rooms {
			crowd := consumers.Crowd{Most: c.most, FreeDefer: true}
			n := 0
			for range c.most {
				if begin, wait := crowd.Arrive(crashes); begin || wait && crowd.BeginNext() {
					n++
				}
			}
			if n != room || crowd.Fetch(c.most) != map[bool]int{true: 0, false: c.most}[crashes > 0] {
				t.Errorf("%d at a time, %d crashes: %d are handled, and %d fetched then, want %d", c.most, crashes, n, crowd.Fetch(c.most), room)
			}
			if begin, wait := crowd.Arrive(0); crashes > 0 && (begin || wait) {
				t.Errorf("%d at a time, %d crashes: one more begins (%v), or waits", c.most, crashes, begin)
			}
			for range n {
				crowd.DropNext()
				crowd.End(crashes)
			}
			if begin, _ := crowd.Arrive(0); !begin || crowd.Fetch(7) != 7 {
				t.Errorf("%d at a time, %d crashes: nothing begins afterwards", c.most, crashes)
			}
		}
	}
	// One that must be alone waits for the others, and nothing is fetched until it has ended.
	free, dear := consumers.Crowd{Most: 8, FreeDefer: true}, consumers.Crowd{Most: 8}
	for _, crowd := range []*consumers.Crowd{&free, &dear} {
		crowd.Arrive(0)
		crowd.Arrive(0)
		if begin, wait := crowd.Arrive(5); begin || !wait || crowd.BeginNext() || crowd.Fetch(8) != 0 {
			t.Errorf("it does not wait for two others: %+v", crowd)
		}
		crowd.End(0)
		if crowd.BeginNext() {
			t.Errorf("it does not wait for another: %+v", crowd)
		}
		crowd.End(0)
		if !crowd.BeginNext() || crowd.BeginNext() || crowd.Fetch(8) != 0 {
			t.Errorf("it is not alone: %+v", crowd)
		}
		_, wait := crowd.Arrive(0)
		if wait == crowd.FreeDefer {
			t.Errorf("what comes meanwhile waits: %v, free %v", wait, crowd.FreeDefer)
		}
		crowd.End(5)
	}
	// Where nothing is free, few are fetched as long as some may have crashed.
	if got := (&consumers.Crowd{Most: 8}).Fetch(8); got != 1 {
		t.Errorf("%d are fetched at first", got)
	}
	dear = consumers.Crowd{Most: 8}
	var fetched []int
	for range 5 {
		n := dear.Fetch(8)
		fetched = append(fetched, n)
		for range n {
			dear.Arrive(0)
			dear.End(0)
		}
	}
	dear.Arrive(1)
	dear.DropNext()
	if got := dear.Fetch(8); !slices.Equal(fetched, []int{1, 2, 4, 8, 8}) || got != 1 {
		t.Errorf("fetched %v, and after a crash %d", fetched, got)
	}
}
