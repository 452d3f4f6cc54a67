package lullredis

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/internal/chance"
	"github.com/lullgo/lull/internal/saturating"
)

// In units of FleetConfig.Every.
const (
	// staleAfter is how long an instance is without an answer when it counts as on
	// its own.
	staleAfter = 4
	// gapAfter is how long nobody has synced when the script takes it that everybody
	// was on its own. It is more than the longest time between two syncs of one
	// instance, 1.25, and so much less than staleAfter that who begins its share at
	// staleAfter has not had it for longer than the gap.
	gapAfter = 2
	// settledAfter is for how long an instance must have been in step before it allows
	// itself a share: so long that all that were, knew of one another.
	settledAfter = 2
	// recentAfter is for how long an instance is shown as in step.
	recentAfter = 4
)

const (
	// memory is how long Redis remembers an instance that has gone without a word, and
	// keeps aside what it held.
	memory = 10 * time.Minute
	// voidAfter is when such an instance gives up what it holds: before Redis does.
	voidAfter = memory / 2
)

// A ledger is what one instance keeps of the floor of one dependency: the tokens that
// it holds, and how they are synced with those of the fleet. It reads no clock, does no
// I/O and draws only from a source handed in. Decisions (withdraw) may be taken
// concurrently with everything; the rest is the driver's, and takes the lock.
type ledger struct {
	// What decisions look at: whole tokens, each of which pays for one retry.
	hand    atomic.Int64 // leased from the pool
	share   atomic.Int64 // allowed to itself, on its own
	starved atomic.Bool  // refused since the last plan

	mu    sync.Mutex // guards what follows
	terms terms
	id    string

	seq      int64
	pending  request       // planned and not yet answered, if waiting
	waiting  bool          // for an answer, however often it was sent
	underway bool          // it is being sent
	sent     time.Duration // when it was last, or will be taken to have been

	held    int64 // in hand after the last plan or answer
	target  int64 // tokens that it would like to hold
	dry     bool  // the last answer was less than what was asked for
	answers int64 // so far
	failed  int64 // syncs
	failure error // of the last sync, nil if it was answered

	acked   time.Duration // when the last answer came
	sure    time.Duration // when the request was sent that it answered: Redis heard of us no earlier
	first   time.Duration // of the first answer since Redis last knew nothing, on its clock
	latest  answer
	alone   bool          // accruing its share
	dripped time.Duration // up to when it has accrued
	part    float64       // of a token accrued
	added   time.Duration // when share was last added to
}

func newLedger(t terms, id string, now time.Duration) *ledger {
	return &ledger{terms: t, id: id, sent: now}
}

// withdraw takes a token for one retry if there is one. If there is none, the first
// to be refused since the last plan is told to wake the driver. It takes no lock.
func (l *ledger) withdraw() (paid, wake bool) {
	if take(&l.hand) || take(&l.share) {
		return true, false
	}
	return false, !l.starved.Load() && !l.starved.Swap(true)
}

func take(n *atomic.Int64) bool {
	for {
		have := n.Load()
		if have <= 0 {
			return false
		}
		if n.CompareAndSwap(have, have-1) {
			return true
		}
	}
}

// takeUpTo takes n tokens, or as many as there are.
func takeUpTo(from *atomic.Int64, n int64) int64 {
	for {
		have := from.Load()
		got := min(n, have)
		if got <= 0 {
			return 0
		}
		if from.CompareAndSwap(have, have-got) {
			return got
		}
	}
}

// urgent tells whether a sync is wanted before the next round, and from when on: it has
// never synced, or it was refused and the pool was not empty when last heard of.
func (l *ledger) urgent() (at time.Duration, yes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.underway || l.waiting:
		return 0, false
	case l.seq == 0:
		return l.sent, true
	case l.starved.Load() && !l.dry:
		return saturating.Add(l.sent, l.terms.every/4), true
	}
	return 0, false
}

// plan is the request to send now. funds are what the local part of the budget would
// pay for. A request that was not answered is sent again as it was, until it is: Redis
// tells repetitions from new ones, so that nothing is given or granted twice. There is
// none to send while one is under way.
func (l *ledger) plan(now time.Duration, funds float64) (request, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.underway {
		return request{}, false
	}
	l.underway, l.sent = true, now
	if l.waiting {
		return l.pending, true
	}
	have := l.hand.Load()
	l.aim(max(l.held-have, 0), l.starved.Swap(false))
	target, reserve := l.target, 0.0
	if half := l.terms.pool / 2; target == 0 && funds < 1 && (have == 0 || l.latest.pool >= half) {
		// Nothing to do, and nothing to pay with, as when a process has just begun: one
		// token to be ready, but not of the half of the pool that is for those in need.
		target, reserve = 1, half
	}
	r := request{seq: l.seq + 1, reserve: reserve, want: max(target-have, 0)}
	r.give = takeUpTo(&l.hand, have-target)
	r.hand = l.hand.Load()
	l.seq, l.held = r.seq, r.hand
	l.pending, l.waiting = r, true
	return r, true
}

// aim sets how many tokens it would like to hold: twice what it has used since the last
// plan, one at least if it was refused, and otherwise half as many as before.
func (l *ledger) aim(used int64, starved bool) {
	need := 2 * used
	if starved {
		need = max(need, 1)
	}
	l.target = min(max(need, l.target/2), l.terms.lease())
}

// lost: the request under way was not answered, or nobody knows whether it will be.
func (l *ledger) lost(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.underway = false
	l.failed++
	l.failure = err
}

// overdue notes the failure of a request that is still under way.
func (l *ledger) overdue(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failure = err
}

// apply takes note of an answer. id is for starting over as a new instance, should the
// fleet have seen somebody else under this one's.
func (l *ledger) apply(now time.Duration, a answer, id func() string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.underway = false
	if !l.waiting || a.seq != l.pending.seq {
		return
	}
	want := l.pending.want
	l.waiting, l.pending = false, request{}
	if a.kind == overtaken {
		l.void()
		l.id, l.seq, l.answers = id(), 0, 0
		return
	}
	if a.kind == unknown {
		l.void()
		l.answers = 0
	}
	if l.answers == 0 {
		l.first = a.at
	}
	l.answers++
	l.hand.Add(a.grant)
	l.held = l.hand.Load()
	l.dry = a.grant < want
	l.acked, l.sure = now, l.sent
	l.latest = a
	l.failure = nil
	l.back()
}

// void gives up what is held, since Redis does not know of it.
func (l *ledger) void() {
	l.hand.Swap(0)
	l.held = 0
}

// back ends being on its own. What is left of the share is not brought along: Redis
// did not count it.
func (l *ledger) back() {
	l.alone, l.part = false, 0
	l.share.Swap(0)
}

// drip is called now and then. On its own, an instance allows itself its share of a
// part of the floor.
func (l *ledger) drip(now time.Duration, rnd func() uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answers == 0 {
		return // the fleet has never been seen, so nobody knows what a share is
	}
	if saturating.Since(l.sure, now) > voidAfter {
		l.void()
	}
	from := saturating.Add(l.acked, staleAfter*l.terms.every)
	if now <= from || !l.settled() {
		return
	}
	if !l.alone {
		// Each begins with a part of a token, drawn by chance, so that the fleet's tokens
		// do not all come at once; on average it makes up for what is never completed.
		l.alone, l.dripped = true, from
		l.part = float64(chance.Bits(rnd)>>11) / (1 << 53)
	}
	if l.share.Load() > 0 && saturating.Since(l.added, now).Seconds() > l.terms.pool/l.terms.floor {
		l.share.Swap(0) // as old as a pool gets before it is full
	}
	l.part += l.shareOf() * saturating.Since(l.dripped, now).Seconds()
	l.dripped = max(l.dripped, now)
	if whole := math.Floor(l.part); whole >= 1 {
		l.part -= whole
		most := max(1, int64(l.terms.alone*l.terms.pool/float64(max(l.latest.members, 1))))
		l.share.Add(min(int64(min(whole, MaxPool)), max(most-l.share.Load(), 0)))
		l.added = now
	}
}

// settled tells whether it was in step for so long that all that were then know of
// each other.
func (l *ledger) settled() bool {
	return l.terms.alone > 0 && l.latest.at-l.first >= settledAfter*l.terms.every
}

// shareOf is what it allows itself on its own, in tokens per second.
func (l *ledger) shareOf() float64 {
	return l.terms.alone * l.terms.floor / float64(max(l.latest.members, 1))
}

// parting is the last request: everything back.
func (l *ledger) parting() request {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.share.Swap(0)
	l.seq++
	l.waiting, l.underway, l.answers = false, true, 0
	r := request{seq: l.seq, give: takeUpTo(&l.hand, math.MaxInt64), leave: true}
	l.held = 0
	return r
}

// mode says how the ledger stands with the fleet.
func (l *ledger) mode(now time.Duration) Mode {
	switch {
	case l.answers == 0:
		return Starting
	case saturating.Since(l.acked, now) > staleAfter*l.terms.every:
		return Alone
	}
	return InStep
}
