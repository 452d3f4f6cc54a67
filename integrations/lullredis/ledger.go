package lullredis

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/internal/chance"
	"github.com/lullgo/lull/internal/saturating"
)

// In units of FleetConfig.SyncEvery.
const (
	// staleAfter is how long an instance has no answer before it is alone. Then it allows itself
	// its share: tokens at a part of the floor.
	staleAfter = 4
	// gapAfter is how long nobody has synced before the script assumes that all were alone. It is
	// more than the longest time between two syncs of one instance, 1.25. Added to that, it is less
	// than staleAfter: the script already sees a gap when an instance begins its share.
	gapAfter = 2
	// settledAfter is how long an instance must have been in step (Redis answered it) before it
	// allows itself a share. By then all instances in step know each other.
	settledAfter = 2
	recentAfter  = 4 // how long an instance is shown as in step
)

const (
	// rememberFor is how long Redis remembers an instance that does not sync any more, and reserves its
	// tokens.
	rememberFor = 10 * time.Minute
	// dropTokensAfter is when an instance without an answer drops its tokens: before Redis forgets them.
	dropTokensAfter = rememberFor / 2
)

// A ledger is one instance's account of the floor of one dependency: its tokens, and how they are
// synced with those of the fleet. It reads no clock, does no I/O and draws only from a source that
// it gets. Decisions (withdraw) may be made concurrently with everything. The driver calls the
// other methods, which take the lock.
type ledger struct {
	// The state for decisions: whole tokens, each of which pays for one retry.
	leased  atomic.Int64 // leased from the pool
	share   atomic.Int64 // allowed to itself, on its own
	refused atomic.Bool  // refused since the last plan

	mu       sync.Mutex // guards the fields below
	settings ledgerSettings
	id       string

	seq      int64
	pending  request       // planned and not yet answered, if waiting
	waiting  bool          // pending has no answer yet, however often it was sent
	underway bool          // pending is being sent
	sent     time.Duration // when it was last sent, or will count as sent

	held       int64 // in hand after the last plan or answer
	target     int64 // tokens that it would like to hold
	shortGrant bool  // the last answer was less than what was asked for
	answers    int64 // so far
	failed     int64 // syncs
	failure    error // of the last sync, nil if it was answered

	answeredAt     time.Duration // when the last answer came
	answeredSentAt time.Duration // when the answered request was sent: Redis did not see this instance earlier
	firstAnswerAt  time.Duration // of the first answer since Redis last did not know this instance, on Redis' clock
	latest         answer
	alone          bool          // accruing its share
	accruedTo      time.Duration // the time up to which it has accrued
	fraction       float64       // of a token accrued
	shareGrewAt    time.Duration // when share last grew
}

func newLedger(t ledgerSettings, id string, now time.Duration) *ledger {
	return &ledger{settings: t, id: id, sent: now}
}

// withdraw takes a token for one retry if there is one. If there is none, wake is true for the
// first refusal since the last plan: its caller wakes the driver. It takes no lock.
func (l *ledger) withdraw() (paid, wake bool) {
	if takeUpTo(&l.leased, 1) == 1 || takeUpTo(&l.share, 1) == 1 {
		return true, false
	}
	return false, !l.refused.Load() && !l.refused.Swap(true)
}

// takeUpTo takes n tokens, or all if there are fewer.
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

// needsSync reports whether a sync is needed before the next round, and from when on: it has never
// synced, or it was refused and the pool was not empty at the last answer.
func (l *ledger) needsSync() (at time.Duration, yes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.underway || l.waiting:
		return 0, false
	case l.seq == 0:
		return l.sent, true
	case l.refused.Load() && !l.shortGrant:
		return saturating.Add(l.sent, l.settings.every/4), true
	}
	return 0, false
}

// nextRequest returns the request to send now. funds are the tokens in the local part of the budget. A
// request without an answer is sent again unchanged, until it is answered. Redis recognises
// repetitions, so nothing is given or granted twice. While one is under way, there is nothing to send.
func (l *ledger) nextRequest(now time.Duration, funds float64) (request, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.underway {
		return request{}, false
	}
	l.underway, l.sent = true, now
	if l.waiting {
		return l.pending, true
	}
	have := l.leased.Load()
	l.setTarget(max(l.held-have, 0), l.refused.Swap(false))
	target, reserve := l.target, 0.0
	if half := l.settings.pool / 2; target == 0 && funds < 1 && (have == 0 || l.latest.pool >= half) {
		// The instance is idle and has nothing to pay with, like a new process: keep one token ready,
		// but not from the half of the pool for instances in need.
		target, reserve = 1, half
	}
	r := request{seq: l.seq + 1, reserve: reserve, want: max(target-have, 0)}
	r.give = takeUpTo(&l.leased, have-target)
	r.held = l.leased.Load()
	l.seq, l.held = r.seq, r.held
	l.pending, l.waiting = r, true
	return r, true
}

// setTarget sets how many tokens to hold: twice as many as were used since the last plan, one at least
// after a refusal, and otherwise half as many as before.
func (l *ledger) setTarget(used int64, refused bool) {
	need := 2 * used
	if refused {
		need = max(need, 1)
	}
	l.target = min(max(need, l.target/2), int64(l.settings.pool))
}

// lost records that the request under way was not answered, or that its answer is unknown.
func (l *ledger) lost(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.underway = false
	l.failed++
	l.failure = err
}

// overdue records the failure of a request that is still under way.
func (l *ledger) overdue(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failure = err
}

// apply records an answer. It uses id to start over as a new instance, if the fleet has seen
// another instance under this one's id.
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
		l.dropTokens()
		l.id, l.seq, l.answers = id(), 0, 0
		return
	}
	if a.kind == unknown {
		l.dropTokens()
		l.answers = 0
	}
	if l.answers == 0 {
		l.firstAnswerAt = a.at
	}
	l.answers++
	l.leased.Add(a.grant)
	l.held = l.leased.Load()
	l.shortGrant = a.grant < want
	l.answeredAt, l.answeredSentAt = now, l.sent
	l.latest = a
	l.failure = nil
	l.alone, l.fraction = false, 0
	l.share.Swap(0) // Redis did not count what is left of it
}

// dropTokens gives up the tokens, since Redis does not know of them.
func (l *ledger) dropTokens() {
	l.leased.Swap(0)
	l.held = 0
}

// accrue adds what an instance that is alone allows itself: its share of a part of the floor.
func (l *ledger) accrue(now time.Duration, rnd func() uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answers == 0 {
		return // the fleet has never been seen, so the share is unknown
	}
	if saturating.Since(l.answeredSentAt, now) > dropTokensAfter {
		l.dropTokens()
	}
	from := saturating.Add(l.answeredAt, staleAfter*l.settings.every)
	if now <= from || !l.settled() {
		return
	}
	if !l.alone {
		// Each begins with a random part of a token, so that the fleet's tokens do not all come at
		// once. On average it makes up for the tokens that are never completed.
		l.alone, l.accruedTo = true, from
		l.fraction = float64(chance.Bits(rnd)>>11) / (1 << 53)
	}
	if l.share.Load() > 0 && saturating.Since(l.shareGrewAt, now).Seconds() > l.settings.pool/l.settings.floor {
		l.share.Swap(0) // as old as a pool gets before it is full
	}
	share := l.settings.alone * l.settings.floor / float64(max(l.latest.members, 1)) // tokens a second
	l.fraction += share * saturating.Since(l.accruedTo, now).Seconds()
	l.accruedTo = max(l.accruedTo, now)
	if whole := math.Floor(l.fraction); whole >= 1 {
		l.fraction -= whole
		most := max(1, int64(l.settings.alone*l.settings.pool/float64(max(l.latest.members, 1))))
		l.share.Add(min(int64(min(whole, MaxPool)), max(most-l.share.Load(), 0)))
		l.shareGrewAt = now
	}
}

// settled reports whether the instance was in step for settledAfter, so that all in step knew each other.
func (l *ledger) settled() bool {
	return l.settings.alone > 0 && l.latest.at-l.firstAnswerAt >= settledAfter*l.settings.every
}

// lastRequest returns the last request, which gives everything back.
func (l *ledger) lastRequest() request {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.share.Swap(0)
	l.seq++
	l.waiting, l.underway, l.answers = false, true, 0
	r := request{seq: l.seq, give: takeUpTo(&l.leased, math.MaxInt64), leave: true}
	l.held = 0
	return r
}

func (l *ledger) mode(now time.Duration) FleetMode {
	switch {
	case l.answers == 0:
		return ModeStarting
	case saturating.Since(l.answeredAt, now) > staleAfter*l.settings.every:
		return ModeAlone
	}
	return ModeInStep
}
