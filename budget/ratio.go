package budget

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/internal/chance"
	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/internal/window"
)

const (
	// token is one retry, in the units that are counted. Ratios therefore keep
	// five decimals, and a slot holds at least 2.7 million retries either way.
	token = 100_000

	// slots is how many pieces the window is cut into, as in Finagle and tower.
	slots = 10
)

// Ratio allows retries up to a ratio of the calls in a sliding window; the
// package comment has the rule. Make one with New and a Window; a
// zero Ratio refuses every retry. Its methods may be called concurrently.
type Ratio struct {
	// Configuration, and what the healthy path reads.
	slotWidth  time.Duration // of a slot
	perSuccess int64         // units that a successful call earns
	perArrival int64         // units that a beginning call earns
	// last is the latest tick seen, plus one; zero until the first use. turn is
	// when its slot ends. Both are written under mu, last before turn, and only
	// grow. Whoever has read a last that is not zero may use counts.
	last    atomic.Uint64
	slotEnd atomic.Int64
	counts  window.Counter // made at the first use

	// Configuration of the failure path.
	reserve     int64 // units that Floor keeps in the balance
	initial     int64 // units deposited at the first use
	cooldown    time.Duration
	wholeTokens bool // only whole tokens pay: the window of an Account

	mu       sync.Mutex // serializes withdrawals; guards what follows
	refusing bool       // refused since the last grant
	// need is the balance that a grant needs, 1 to token: the units earned
	// since the last mark, itself included, or always token if whole. Zero: no marks
	// were drawn. It is as of tick looked, whose slot held seen.
	needed   int32
	needTick uint64
	needSlot int64
	refused  time.Duration // when it last refused
	now      time.Duration // the latest time of a withdrawal
	until    time.Duration // end of the cooldown
}

// newRatio returns a budget that nobody has used yet, of what has been validated.
func newRatio(c Config) *Ratio {
	if c.Ratio == 0 {
		c.Ratio = DefaultRatio
	}
	b := &Ratio{
		slotWidth: c.Window / slots,
		reserve:   slots * units(c.Floor*(c.Window/slots).Seconds()),
		initial:   units(c.Stock),
		cooldown:  c.Cooldown,
	}
	if c.Earn == Arrivals {
		b.perArrival = units(c.Ratio)
	} else {
		b.perSuccess = units(c.Ratio)
		b.initial += b.perSuccess // as though one call had succeeded
	}
	return b
}

// Begin earns, if arrivals do.
func (b *Ratio) Start(now time.Duration) { b.earn(now, b.perArrival) }

// End earns, if the call succeeded and successes do.
func (b *Ratio) Done(now time.Duration, success bool, _ Receipt, _ int) {
	if success {
		b.earn(now, b.perSuccess)
	}
}

// Repay puts a token back, into the slot of now.
func (b *Ratio) Refund(now time.Duration, _ Receipt) { b.earn(now, token) }

// Failed does nothing: a failure costs only if it is retried.
func (*Ratio) Failed(time.Duration) {}

// Settle does nothing: a retry has been paid for and stays so.
func (*Ratio) Release(time.Duration, Receipt) {}

// earn deposits into the slot of now. A deposit that is late counts in the
// latest slot that anybody has used, so that slots are only ever taken over in
// the order of time and no withdrawal is forgotten before its window is over.
func (b *Ratio) earn(now time.Duration, n int64) {
	if n == 0 {
		return
	}
	var at uint64
	if int64(now) < b.slotEnd.Load() { // no division where every call passes
		at = b.last.Load()
	}
	if at == 0 {
		b.mu.Lock()
		at = b.advance(window.Tick(now, b.slotWidth) + 1)
		b.mu.Unlock()
	}
	b.counts.Add(at, n)
}

// advance moves the latest tick to at and returns the latest. mu must be held.
func (b *Ratio) advance(at uint64) uint64 {
	last := b.last.Load()
	if at <= last {
		return last
	}
	switch {
	case last == 0:
		b.counts = window.New(slots)
		b.counts.Add(at, b.initial)
	case at-last >= slots:
		// Nothing is live. Slots know their age only on a circle of ticks, so
		// after a very long rest they must not be left to be judged by it.
		b.counts.Reset()
	}
	b.last.Store(at)
	// At the end of time this is negative, and every call asks here.
	b.slotEnd.Store(int64(at) * int64(b.slotWidth))
	return at
}

// Withdraw pays one token for one retry, or refuses and takes nothing. The class
// makes no difference. In a balance below one token the marks of the package
// comment decide, and asking again does not change their answer.
func (b *Ratio) Withdraw(now time.Duration, _ Class, rnd func() uint64) Grant {
	if b.slotWidth <= 0 {
		return Grant{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = max(b.now, now)
	if b.now < b.until {
		return Grant{Until: b.until}
	}
	at := b.advance(window.Tick(b.now, b.slotWidth) + 1)

	// Nobody else withdraws meanwhile. A deposit that arrives after the sum was
	// taken is not seen, which errs on the safe side.
	balance := b.counts.Sum(at, slots) + b.reserve
	slot := b.counts.Sum(at, 1)
	if b.wholeTokens {
		b.needed = token
	} else {
		b.moveNeed(at, slot)
		if b.needed == 0 && 0 < balance && balance < token {
			b.needed = 1 + int32((balance-drawMark(rnd)+token)%token)
		}
	}
	switch {
	case balance <= 0 || balance < int64(b.needed):
		return b.refuse()
	case slot < -window.Max:
		// The slot is too full of withdrawals to be relied on to record one
		// more, and one that is not recorded would be free.
		return b.refuse()
	}
	b.counts.Add(at, -token)
	b.needSlot -= token
	b.refusing = false
	return Grant{OK: true, Receipt: 1}
}

// follow moves need on by what was earned since the last look, given what the
// slot of at holds. The floor earns its share of the reserve with every slot.
// After a look a whole window ago nobody knows how much that was, but nothing of
// what was judged then is left, so that a new draw judges nothing twice.
func (b *Ratio) moveNeed(at uint64, slot int64) {
	if n := at - b.needTick; n >= slots {
		b.needed = 0
	} else if b.needed != 0 {
		earned := slot - b.needSlot + int64(n)*(b.reserve/slots)
		if n > 0 {
			earned += b.counts.Sum(at-1, int(n))
		}
		b.needed = 1 + int32((int64(b.needed-1)+earned)%token)
	}
	b.needTick, b.needSlot = at, slot
}

// drawMark is which unit of the balance is the first that is marked, from 1, the
// oldest, to token: what the balance must have been for a grant. The higher the
// bits, the lower.
func drawMark(rnd func() uint64) int64 {
	return token - int64(chance.UpTo(token-1, rnd))
}

// refuse begins a cooldown or, if there are none, reports whether this refusal is
// news: the first after a grant, or after a whole window without one. Deposits
// do not make it news, or every failure in a half-failing stream would be.
func (b *Ratio) refuse() Grant {
	if b.cooldown > 0 {
		b.until = saturating.Add(b.now, b.cooldown)
		return Grant{Exhausted: true, Until: b.until}
	}
	news := !b.refusing || b.now-b.refused >= slots*b.slotWidth
	b.refusing, b.refused = true, b.now
	return Grant{Exhausted: news}
}

// Balance is the tokens that could be spent now. One or more pays for a retry;
// below one it is the share of processes with that balance that have a mark in
// it, and so the probability of a grant. In debt or in a cooldown it is zero.
func (b *Ratio) Balance(now time.Duration) float64 {
	if b.slotWidth <= 0 {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now = max(b.now, now)
	if now < b.until {
		return 0
	}
	balance := b.reserve + b.initial
	if last := b.last.Load(); last != 0 {
		at := max(last, window.Tick(now, b.slotWidth)+1)
		if at-last >= slots {
			balance = b.reserve // all expired, as advance would find
		} else {
			balance = b.reserve + b.counts.Sum(at, slots)
		}
	}
	return float64(max(balance, 0)) / token
}
