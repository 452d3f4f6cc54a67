package lullredis

import (
	"maps"
	"math"
	"slices"
	"time"
)

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
