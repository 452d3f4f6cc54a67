// Package budgettest has a budget for tests that is of another kind than those of package budget.
package budgettest

import (
	"sync"
	"time"

	"github.com/lullgo/lull/budget"
)

// A Budget pays for a retry while fewer than AtMost are under way (zero: any number) and its tokens suffice: it
// has Stock of them at first and at most, a retry costs its class plus one, and a call that succeeds gives one.
// AtMost or Stock must be set.
type Budget struct {
	AtMost, Stock int

	mu            sync.Mutex
	under, tokens int // tokens: taken from the stock
}

func (b *Budget) Start(time.Duration)  {}
func (b *Budget) Failed(time.Duration) {}

func (b *Budget) Withdraw(_ time.Duration, c budget.Class, _ func() uint64) budget.Grant {
	b.mu.Lock()
	defer b.mu.Unlock()
	cost := int(c) + 1
	if b.AtMost > 0 && b.under >= b.AtMost || b.Stock > 0 && b.tokens+cost > b.Stock {
		return budget.Grant{Exhausted: true}
	}
	b.under++
	b.tokens += cost
	return budget.Grant{OK: true, Receipt: budget.Receipt(cost)}
}

func (b *Budget) Release(_ time.Duration, r budget.Receipt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r > 0 {
		b.under--
	}
}

func (b *Budget) Done(_ time.Duration, success bool, _ budget.Receipt, _ int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if success {
		b.tokens = max(0, b.tokens-1)
	}
}

func (b *Budget) Balance(time.Duration) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 1 << 20
	if b.AtMost > 0 {
		n = max(0, b.AtMost-b.under)
	}
	if b.Stock > 0 {
		n = min(n, b.Stock-b.tokens)
	}
	return float64(n)
}
