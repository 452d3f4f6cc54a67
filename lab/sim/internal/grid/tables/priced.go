package main

import (
	"time"

	"github.com/lullgo/lull/budget"
)

// priced is a bucket of two tokens, full at the start, that a success puts a tenth
// into, and in which a retry after a time-out costs more than one token. Where there
// is less than the price, the balance is spent with the probability of its share of
// it, so that a price above the size of the bucket is not a prohibition. It is for a run, which is
// one goroutine.
type priced struct {
	timeout float64
	tokens  float64
}

const pricedSize = 2

func (*priced) Start(time.Duration)                   {}
func (*priced) Failed(time.Duration)                  {}
func (*priced) Release(time.Duration, budget.Receipt) {}

func (b *priced) Done(_ time.Duration, success bool, _ budget.Receipt, _ int) {
	if success {
		b.tokens = min(b.tokens+budget.DefaultRatio, pricedSize)
	}
}

func (b *priced) Withdraw(_ time.Duration, class budget.Class, random func() uint64) budget.Grant {
	price := 1.0
	if class == budget.Timeout {
		price = b.timeout
	}
	if b.tokens < price && float64(random()>>11)/(1<<53) >= b.tokens/price {
		return budget.Grant{}
	}
	b.tokens = max(b.tokens-price, 0)
	return budget.Grant{OK: true, Receipt: 1}
}

func (b *priced) Balance(time.Duration) float64 { return b.tokens }
