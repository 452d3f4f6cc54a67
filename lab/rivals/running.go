package rivals

import (
	"slices"
	"sync"
	"time"

	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/edge"
	"github.com/lullgo/lull/internal/saturating"
)

// Running is the retry budget of failsafe-go: a retry is allowed while few of
// the executions in progress are retries that are running.
//
//	allowed iff running < Min or running/(calls + running) ≤ Ratio
//
// A call that waits for its retry is in the denominator and its retry is not yet
// running, so the longer the waits, the lower the quotient: with waits of 50 ms
// around attempts of 1 ms, the budget refuses nothing at all.
type Running struct {
	Ratio float64 // 0 to 1
	Min   int     // retries that may run whatever the ratio, zero or more
	// Delay is the wait before each retry, which must be constant: the policy's
	// Backoff.Base. failsafe-go asks its budget after the wait. The engine asks
	// before it, so the retry is held to run from Delay after that on.
	Delay time.Duration
}

// running is a Running of one process.
type running struct {
	indifferent
	cfg Running

	mu      sync.Mutex // guards what follows
	now     time.Duration
	calls   int             // begun and not ended
	retries int             // running
	waiting []time.Duration // when the other retries that were granted begin to run, in order
	edge    edge.Edge
}

// advance lets retries run whose wait is over. mu must be held.
func (b *running) advance(now time.Duration) {
	b.now = max(b.now, now)
	n := 0
	for n < len(b.waiting) && b.waiting[n] <= b.now {
		n++
	}
	if n > 0 {
		b.retries += n
		b.waiting = append(b.waiting[:0], b.waiting[n:]...)
	}
}

func (b *running) Start(time.Duration) {
	b.mu.Lock()
	b.calls++
	b.mu.Unlock()
}

// Withdraw looks at what is running now. The receipt is when the retry begins to
// run, and one.
func (b *running) Withdraw(now time.Duration, _ budget.Class, _ func() uint64) budget.Grant {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	if b.retries >= b.cfg.Min && float64(b.retries) > b.cfg.Ratio*float64(b.calls+b.retries) {
		return budget.Grant{Exhausted: b.edge.RecordRefusal()}
	}
	b.edge.RecordGrant()
	at := saturating.Add(b.now, b.cfg.Delay)
	if b.cfg.Delay == 0 {
		b.retries++
	} else {
		b.waiting = append(b.waiting, at)
	}
	return budget.Grant{OK: true, Receipt: budget.Receipt(at) + 1}
}

// Release counts a retry as over, whether it has run or not.
func (b *running) Release(now time.Duration, r budget.Receipt) {
	if r == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	at := time.Duration(r - 1)
	if at <= b.now {
		b.retries = max(0, b.retries-1)
	} else if i, found := slices.BinarySearch(b.waiting, at); found {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	}
}

func (b *running) Done(_ time.Duration, _ bool, _ budget.Receipt, _ int) {
	b.mu.Lock()
	b.calls--
	b.mu.Unlock()
}

// Balance is how many retries could be begun now, if none of them waited.
func (b *running) Balance(now time.Duration) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	n := 0
	for r := b.retries; n < 1<<20 && (r < b.cfg.Min || float64(r) <= b.cfg.Ratio*float64(b.calls+r)); r++ {
		n++
	}
	return float64(n)
}
