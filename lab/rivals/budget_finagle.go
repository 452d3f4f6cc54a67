package rivals

import (
	"math"
	"sync"
	"time"

	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/edge"
	"github.com/lullgo/lull/internal/window"
)

// FinagleConfig holds the parameters of Finagle's RetryBudget.apply. Take finagleDefault
// and change what differs; zeros are taken literally.
type FinagleConfig struct {
	// TTL is how long a deposit lasts, 1 s to 60 s. As in Finagle the limits and
	// the reserve look at whole seconds only.
	TTL time.Duration
	// MinPerSecond is the retries per second that are allowed besides, zero or
	// more.
	MinPerSecond int
	// Percent is Finagle's percentCanRetry, which is a fraction: 0.2 is 20 %.
	// 0 to 1000.
	Percent float64
	// OnSuccess makes calls deposit when they succeed, as in Rust's tower, and
	// not when they begin, as in Finagle.
	OnSuccess bool
}

// finagleScale is how much a deposit is worth, so that ratios above one need
// no fractions (ScaleFactor in the source).
const finagleScale = 1000

// finagleDefault is RetryBudget.apply(): 20 % and 10 retries per second, over
// 10 seconds. Linkerd's service profiles have the same.
func finagleDefault() FinagleConfig {
	return FinagleConfig{TTL: 10 * time.Second, MinPerSecond: 10, Percent: 0.2}
}

// finagleBucket is the retry budget of Finagle (RetryBudget.scala over
// TokenBucket.newLeakyBucket): every call deposits 1000, a retry withdraws
// ⌊1000/percent⌋, a reserve of min × ttl × withdrawal is always there, and
// deposits and withdrawals alike expire after the TTL, in ten slots. Slots
// begin at multiples of TTL/10; in Finagle they begin wherever the last one
// ended. With OnSuccess it is the budget of Rust's tower, and of Linkerd's proxy,
// in Finagle's finer arithmetic. (Linkerd also deposits for failures that it
// would not retry; a Budget does not learn of those.)
//
// The reserve is per process and arrivals earn, so what it allows in an outage
// grows with the number of processes; see package budget.
type finagleBucket struct {
	indifferent
	width               time.Duration // of a slot
	onSuccess           bool
	deposit, withdrawal int64
	reserve             int64
	edge                edge.Edge

	mu    sync.Mutex // guards what follows
	slots [10]int64
	tick  uint64 // of the latest slot
	sum   int64  // of all slots
}

func newFinagleBucket(c FinagleConfig) *finagleBucket {
	b := &finagleBucket{width: c.TTL / 10, onSuccess: c.OnSuccess, withdrawal: 1}
	if c.Percent > 0 {
		// Scala's toInt saturates.
		b.deposit, b.withdrawal = finagleScale, int64(min(finagleScale/c.Percent, math.MaxInt32))
	}
	b.reserve = int64(min(float64(c.MinPerSecond)*float64(c.TTL/time.Second)*float64(b.withdrawal), 1e18))
	return b
}

// advance empties the slots that have left the window. mu must be held.
func (b *finagleBucket) advance(now time.Duration) {
	tick := window.Tick(now, b.width)
	for n := 0; b.tick < tick && n < len(b.slots); n++ {
		b.tick++
		b.sum -= b.slots[b.tick%10]
		b.slots[b.tick%10] = 0
	}
	b.tick = max(b.tick, tick)
}

func (b *finagleBucket) add(n int64) {
	b.slots[b.tick%10] += n
	b.sum += n
}

// Start deposits, unless OnSuccess.
func (b *finagleBucket) Start(now time.Duration) {
	if !b.onSuccess {
		b.put(now)
	}
}

func (b *finagleBucket) put(now time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	b.add(b.deposit)
}

// Withdraw pays for a retry, if the balance covers it.
func (b *finagleBucket) Withdraw(now time.Duration, _ budget.Class, _ func() uint64) budget.Grant {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	if b.sum+b.reserve < b.withdrawal {
		return budget.Grant{Exhausted: b.edge.RecordRefusal()}
	}
	b.add(-b.withdrawal)
	b.edge.RecordGrant()
	return budget.Grant{OK: true, Receipt: 1}
}

// Done deposits, if the call succeeded and OnSuccess is set.
func (b *finagleBucket) Done(now time.Duration, success bool, _ budget.Receipt, _ int) {
	if success && b.onSuccess {
		b.put(now)
	}
}

// Balance is the number of retries that the deposits and the reserve pay for.
func (b *finagleBucket) Balance(now time.Duration) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	return float64(max(0, (b.sum+b.reserve)/b.withdrawal))
}
