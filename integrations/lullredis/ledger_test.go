package lullredis

import (
	"errors"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
)

func never() string { panic("nobody should start over") }

// inStep returns a ledger that has been in step for a while, with that many members.
func inStep(t *testing.T, c BudgetConfig, members int64) (*ledger, time.Duration) {
	t.Helper()
	l := newLedger(c.ledgerSettings(time.Second), "a", 0)
	now := time.Duration(0)
	for range 4 {
		r, ok := l.nextRequest(now, 5)
		if !ok {
			t.Fatal("no plan")
		}
		l.apply(now, answer{seq: r.seq, members: members, recent: members, at: time.Hour + now}, never)
		now += time.Second
	}
	return l, now - time.Second
}

// A sync without an answer is sent again unchanged, until it is answered.
func TestASyncIsRepeatedAsItWas(t *testing.T) {
	l, now := inStep(t, BudgetConfig{Pool: 50}, 1)
	l.withdraw()
	first, ok := l.nextRequest(now, 0)
	if !ok || first.want == 0 {
		t.Fatalf("%+v, %v", first, ok)
	}
	if _, ok := l.nextRequest(now, 0); ok {
		t.Error("a second one while the first is under way")
	}
	for range 3 {
		l.lost(errors.New("timeout"))
		l.withdraw()
		now += time.Second
		if again, ok := l.nextRequest(now, 5); !ok || again != first {
			t.Errorf("%+v, then %+v", first, again)
		}
	}
	l.apply(now, answer{seq: first.seq - 1, grant: 40}, never) // of another one
	check.Equal(t, l.leased.Load(), 0, "leased after an answer to something else")
	l.lost(nil)
	if again, ok := l.nextRequest(now, 5); !ok || again != first {
		t.Errorf("%+v, then %+v", first, again)
	}
	l.apply(now, answer{seq: first.seq, grant: first.want}, never)
	l.apply(now, answer{seq: first.seq, grant: first.want}, never)
	check.Equal(t, l.leased.Load(), first.want, "granted %d: holds", first.want)
	if next, _ := l.nextRequest(now, 5); next.seq != first.seq+1 {
		t.Errorf("after number %d comes %d", first.seq, next.seq)
	}
}

// Tokens that Redis does not know are void.
func TestWhatRedisHasForgottenIsVoid(t *testing.T) {
	l, now := inStep(t, BudgetConfig{Pool: 50}, 1)
	l.leased.Store(7)
	l.target = 14
	r, _ := l.nextRequest(now, 0)
	if r.held != 7 {
		t.Fatalf("it holds nothing: %+v", r)
	}
	l.apply(now, answer{kind: unknown, seq: r.seq, grant: 2, members: 1, at: time.Hour + now}, never)
	check.Equal(t, l.leased.Load(), 2, "holds")
	if l.settled() {
		t.Error("it has just begun anew and knows the fleet")
	}
	l.leased.Store(7)
	r, _ = l.nextRequest(now, 0)
	l.apply(now, answer{kind: overtaken, seq: r.seq, grant: 2}, func() string { return "b" })
	if l.leased.Load() != 0 || l.id != "b" {
		t.Errorf("somebody else has its name: holds %d, is %s", l.leased.Load(), l.id)
	}
	if r, _ := l.nextRequest(now, 0); r.seq != 1 || r.held != 0 {
		t.Errorf("starts over with %+v", r)
	}
}

// The exact share: the part of the floor, divided among the members, from four rounds without
// an answer on. Unused tokens lapse, and are gone when the instance is back in step.
func TestAShare(t *testing.T) {
	l, now := inStep(t, BudgetConfig{Floor: 10, Pool: 20, AloneShare: 0.5}, 10) // 0.5 a second; lapses after 2 s
	zero := func() uint64 { return 0 }
	at := func(d time.Duration) int64 {
		l.accrue(now+d, zero)
		return l.share.Load()
	}
	for _, step := range []struct {
		after time.Duration
		want  int64
	}{
		{4 * time.Second, 0}, {5900 * time.Millisecond, 0}, {6 * time.Second, 1}, {7 * time.Second, 1},
		{7900 * time.Millisecond, 1}, // one at a time: no more than its part of the pool, 1
		{8 * time.Second, 1},
		{8500 * time.Millisecond, 1}, {9 * time.Second, 1},
	} {
		check.Equal(t, at(step.after), step.want, "after %v", step.after)
	}
	if paid, _ := l.withdraw(); !paid {
		t.Error("its share does not pay")
	}
	check.Equal(t, at(9500*time.Millisecond), 0, "spent: holds")
	check.Equal(t, at(10*time.Second), 1, "earned again: holds")
	// Shares are slower now, so the next one would take long. This one lapses.
	l.latest.members = 1000
	check.Equal(t, at(11900*time.Millisecond), 1, "just before it lapses: holds")
	check.Equal(t, at(12100*time.Millisecond), 0, "after the time in which a pool is full: holds")
	l.share.Store(3)
	r, _ := l.nextRequest(now+13*time.Second, 0)
	l.apply(now+13*time.Second, answer{seq: r.seq, members: 10, at: time.Hour + now + 13*time.Second}, never)
	if l.share.Load() != 0 || l.mode(now+13*time.Second) != ModeInStep {
		t.Errorf("back, it is %v and holds %d of its share", l.mode(now+13*time.Second), l.share.Load())
	}
}

// The chance with which a share begins is the whole of [0, 1).
func TestAShareBeginsByChance(t *testing.T) {
	for draw, want := range map[uint64]int64{0: 0, 1 << 63: 0, 1<<64 - 1: 1} {
		l, now := inStep(t, BudgetConfig{Floor: 1, Pool: 10}, 10)
		l.accrue(now+4*time.Second+time.Millisecond, func() uint64 { return draw })
		check.Equal(t, l.share.Load(), want, "drawn %x: share at once", draw)
	}
}

// It asks for the tokens that it uses, up to the pool, and hands the others back.
func TestWhatItAsksFor(t *testing.T) {
	l, now := inStep(t, BudgetConfig{Pool: 50}, 1)
	sync := func(use int64, grant int64) request {
		t.Helper()
		for range use {
			l.withdraw()
		}
		now += time.Second
		r, ok := l.nextRequest(now, 5)
		if !ok {
			t.Fatal("no plan")
		}
		l.apply(now, answer{seq: r.seq, grant: min(grant, r.want), members: 1, at: time.Hour + now}, never)
		return r
	}
	for i, c := range []struct{ use, grant, held, give, want int64 }{
		{0, 9, 0, 0, 0},    // no need
		{1, 9, 0, 0, 1},    // refused: one
		{1, 9, 0, 0, 2},    // used one
		{2, 9, 0, 0, 4},    //
		{5, 99, 0, 0, 8},   // used 4
		{8, 99, 0, 0, 16},  //
		{16, 99, 0, 0, 32}, //
		{32, 99, 0, 0, 50}, // the whole pool
		{0, 99, 25, 25, 0}, // half of it back
		{0, 99, 12, 13, 0}, //
		{6, 99, 6, 0, 6},   // used 6: 12
		{0, 99, 6, 6, 0}, {0, 99, 3, 3, 0}, {0, 99, 1, 2, 0}, {0, 99, 0, 1, 0}, {0, 9, 0, 0, 0},
	} {
		if r := sync(c.use, c.grant); r.held != c.held || r.give != c.give || r.want != c.want || r.reserve != 0 {
			t.Errorf("%d: used %d: %+v, want held %d, give %d, want %d", i, c.use, r, c.held, c.give, c.want)
		}
	}
	// Without a need and without funds: one, of the upper half of the pool.
	now += time.Second
	if r, _ := l.nextRequest(now, 0.99); r.want != 1 || r.reserve != 25 {
		t.Errorf("idle and without funds: %+v", r)
	}
	// It keeps that one while the pool has more than its half left.
	for _, c := range []struct {
		pool float64
		give int64
	}{{25, 0}, {24.9, 1}} {
		l, now := inStep(t, BudgetConfig{Pool: 50}, 1)
		l.leased.Store(1)
		l.held = 1
		l.latest.pool = c.pool
		if r, _ := l.nextRequest(now, 0); r.give != c.give || r.want != 0 {
			t.Errorf("idle and without funds, with %v in the pool: %+v, want to give %d", c.pool, r, c.give)
		}
	}
}

func TestParting(t *testing.T) {
	l, now := inStep(t, BudgetConfig{Pool: 50}, 1)
	last, _ := l.nextRequest(now, 0)
	l.leased.Store(9)
	l.share.Store(2)
	r := l.lastRequest()
	if r != (request{seq: last.seq + 1, give: 9, leave: true}) || l.leased.Load() != 0 || l.share.Load() != 0 {
		t.Errorf("%+v, and keeps %d and %d", r, l.leased.Load(), l.share.Load())
	}
	if r, more := l.nextRequest(now, 0); more {
		t.Errorf("then it sends %+v, which would enter it again", r)
	}
	l.apply(now, answer{seq: last.seq, grant: 7, members: 1}, never) // late
	if n, mode := l.leased.Load(), l.mode(now); n != 0 || mode != ModeStarting {
		t.Errorf("it has left, and holds %d, %v", n, mode)
	}
}

// Its tokens are void when Redis may have forgotten them: a fixed time after the sending of the
// last sync that was answered.
func TestALeaseEnds(t *testing.T) {
	l, now := inStep(t, BudgetConfig{Pool: 50, AloneShare: -1}, 1)
	l.withdraw()
	r, _ := l.nextRequest(now, 0)
	l.lost(nil)
	now += time.Hour
	again, _ := l.nextRequest(now, 0)
	l.apply(now+time.Minute, answer{seq: again.seq, grant: r.want, members: 1}, never)
	if again != r || r.want == 0 {
		t.Fatalf("%+v, then %+v", r, again)
	}
	l.accrue(now+dropTokensAfter, nil)
	check.Equal(t, l.leased.Load(), r.want, "holds")
	l.accrue(now+dropTokensAfter+1, nil)
	check.Equal(t, l.leased.Load(), 0, "%v after a sync: holds", dropTokensAfter)
	if dropTokensAfter >= rememberFor {
		t.Error("Redis forgets first")
	}
}

// model is Redis' half of an account, written a second time, as simply as possible. The script is
// compared with it (TestTheScriptDoesWhatTheModelDoes), and fleets are simulated on it.
type model struct {
	exists  bool
	pool    float64
	filled  int64 // µs
	records map[string]record
	seen    map[string]int64 // µs
}

type record struct{ seq, granted, holds int64 }

func newModel() *model {
	return &model{records: map[string]record{}, seen: map[string]int64{}}
}

func (m *model) clone() *model {
	c := *m
	c.records, c.seen = maps.Clone(m.records), maps.Clone(m.seen)
	return &c
}

// out returns how many tokens all instances hold, by Redis' records.
func (m *model) out() (n int64) {
	for _, r := range m.records {
		n += r.holds
	}
	return n
}

func (m *model) sync(now time.Duration, id string, r request, t ledgerSettings) (a answer) {
	µs := now.Microseconds()
	gone := slices.Collect(maps.Keys(m.seen))
	slices.SortFunc(gone, func(a, b string) int { // as a sorted set is
		if d := m.seen[a] - m.seen[b]; d != 0 {
			return int(max(-1, min(d, 1)))
		}
		if a < b {
			return -1
		}
		return 1
	})
	for i, other := range gone {
		if i < 100 && m.seen[other] <= µs-rememberFor.Microseconds() {
			delete(m.records, other)
			delete(m.seen, other)
		}
	}
	if !m.exists {
		m.filled = µs
	}
	a = answer{seq: r.seq, at: time.Duration(µs) * time.Microsecond}
	defer func() {
		a.pool = math.Floor(m.pool*1000) / 1000
		a.members = int64(len(m.seen))
		for _, at := range m.seen {
			if at >= µs-recentAfter*t.every.Microseconds() {
				a.recent++
			}
		}
	}()
	have, known := m.records[id]
	switch {
	case known && r.seq < have.seq:
		a.kind = overtaken
	case known && r.seq == have.seq:
		a.grant = have.granted
		m.seen[id] = µs
	default:
		m.carryOut(&a, µs, id, r, t)
	}
	return a
}

func (m *model) carryOut(a *answer, µs int64, id string, r request, t ledgerSettings) {
	have, known := m.records[id]
	away := max(0, µs-m.filled)
	rate := t.floor
	if away > gapAfter*t.every.Microseconds() {
		rate *= 1 - t.alone
	}
	m.pool = max(0, min(m.pool+rate*float64(away)/1e6, t.pool-float64(m.out())))
	m.filled, m.exists = µs, true
	if !known {
		if r.seq > 1 {
			a.kind = unknown
		}
		r.held, r.give = 0, 0
	}
	r.held = min(r.held, have.holds)
	m.pool += float64(min(r.give, have.holds-r.held))
	if r.leave {
		delete(m.records, id)
		delete(m.seen, id)
		return
	}
	half := max(1, math.Floor(m.pool/2))
	a.grant = max(0, min(r.want, int64(math.Floor(m.pool-r.reserve)), int64(half)))
	m.pool -= float64(a.grant)
	m.records[id] = record{r.seq, a.grant, r.held + a.grant}
	m.seen[id] = µs
}
