package budget

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/internal/chance"
	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/internal/window"
)

const (
	// token is one retry, in the units that are counted. A slot holds at least 2.7 million
	// retries, added or taken.
	token = 100_000

	// slots is how many slots a window has, as in Finagle and tower.
	slots = 10
)

// Ratio allows retries up to a ratio of the calls in a sliding window:
//
//	retries ≤ ratio × earned + floor × W
//
// The page docs/mechanisms.md has the rule. Make one with New and a Window; a zero Ratio
// refuses every retry. Its methods may be called concurrently.
type Ratio struct {
	// Configuration, and what the healthy path reads.
	slotWidth  time.Duration // of a slot
	perSuccess int64         // units that a successful call earns
	perArrival int64         // units that a beginning call earns
	// last is the latest tick, plus one; zero until the first use. slotEnd is when its slot
	// ends. Both only grow, and are written under mu, last first. counts may be used once
	// last is not zero.
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
	// needed is the balance that a grant needs, 1 to token: the units earned since the last
	// mark, including the mark. It is always token if wholeTokens, and zero if no marks
	// were drawn. It is as of tick needTick, when that slot's sum was needSlot.
	needed   int32
	needTick uint64
	needSlot int64
	refused  time.Duration // when it last refused
	now      time.Duration // the latest time of a withdrawal
	until    time.Duration // end of the cooldown
}

// newRatio returns an unused budget, for a valid Config.
func newRatio(c Config) *Ratio {
	c.Ratio = cmp.Or(c.Ratio, DefaultRatio)
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

// Start earns, if arrivals do.
func (b *Ratio) Start(now time.Duration) { b.earn(now, b.perArrival) }

// Done earns, if the call succeeded and successes do.
func (b *Ratio) Done(now time.Duration, success bool, _ Receipt, _ int) {
	if success {
		b.earn(now, b.perSuccess)
	}
}

// Refund puts a token back, into the slot of now.
func (b *Ratio) Refund(now time.Duration, _ Receipt) { b.earn(now, token) }

func (*Ratio) Failed(time.Duration)           {}
func (*Ratio) Release(time.Duration, Receipt) {}

// earn adds to the slot of now. A late deposit counts in the latest slot in use. So slots
// are reused in the order of time, and no withdrawal is forgotten before its window is
// over.
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
		// Nothing is left in the window. Slots know their age only on a circle of ticks,
		// which a very long rest may have passed.
		b.counts.Reset()
	}
	b.last.Store(at)
	// At the end of time this is negative, and every call comes here.
	b.slotEnd.Store(int64(at) * int64(b.slotWidth))
	return at
}

// Withdraw pays one token for one retry, or refuses and takes nothing. In a balance below
// one token, marks decide (docs/mechanisms.md); asking again gets the same answer.
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

	// No other withdrawal runs meanwhile. A deposit that comes after the sum is not seen,
	// which is safe.
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
		// The slot is too full of withdrawals to record one more, which would be free then.
		return b.refuse()
	}
	b.counts.Add(at, -token)
	b.needSlot -= token
	b.refusing = false
	return Grant{OK: true, Receipt: 1}
}

// moveNeed adds to needed what was earned since the last withdrawal, given the sum of the
// slot of at. The floor earns its share with every slot. After a whole window it ends the
// marks: nothing that they judged is left, so a new draw judges nothing twice.
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

// drawMark returns which unit of the balance is the first with a mark, from 1, the oldest,
// to token. The higher the bits, the lower.
func drawMark(rnd func() uint64) int64 {
	return token - int64(chance.UpTo(token-1, rnd))
}

// refuse begins a cooldown. Without cooldowns it reports Exhausted for the first refusal
// after a grant, or after a whole window without a refusal. A deposit does not make the
// next refusal a first one; otherwise many would be while half of the calls fail.
func (b *Ratio) refuse() Grant {
	if b.cooldown > 0 {
		b.until = saturating.Add(b.now, b.cooldown)
		return Grant{Exhausted: true, Until: b.until}
	}
	news := !b.refusing || b.now-b.refused >= slots*b.slotWidth
	b.refusing, b.refused = true, b.now
	return Grant{Exhausted: news}
}

// Balance returns the tokens that can be spent now. Below one it is the probability of a
// grant: the share of processes with that balance that have a mark in it. It is zero in a
// cooldown.
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
