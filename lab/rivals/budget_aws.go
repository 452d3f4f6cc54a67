package rivals

import (
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/edge"
)

// AWSConfig is the retry quota of an AWS SDK. Take awsLegacyQuota or awsQuota21
// and change what differs; nothing in it has a default.
type AWSConfig struct {
	// Capacity is the size of the bucket in tokens, zero or more. It starts
	// full. Zero allows no retries.
	Capacity int
	// What a retry costs by the class of the failure before it, in tokens, one
	// or more.
	RetryCost, TimeoutCost, RateLimitedCost int
	// NoRetryIncrement is the amount that a call that succeeded without a paid retry puts
	// back, in tokens, zero or more.
	NoRetryIncrement int
}

// awsLegacyQuota is the quota of the SDKs' standard mode up to version 2.0: 500
// tokens, a retry costs 5, after a timeout 10.
func awsLegacyQuota() AWSConfig {
	return AWSConfig{Capacity: 500, RetryCost: 5, TimeoutCost: 10, RateLimitedCost: 5, NoRetryIncrement: 1}
}

// awsQuota21 is the quota of retry behavior 2.1 (2026): 500 tokens, a retry
// costs 14, or 5 after a rate-limited failure; a timeout is no longer special.
func awsQuota21() AWSConfig {
	return AWSConfig{Capacity: 500, RetryCost: 14, TimeoutCost: 14, RateLimitedCost: 5, NoRetryIncrement: 1}
}

// awsQuota is the retry quota of the AWS SDKs. A retry costs tokens; a call
// that succeeds after retries gets back what the last of them cost and no more,
// and one that needed none puts back one. It has no clock, so what an outage
// spent is earned back by calls alone, a token each.
type awsQuota struct {
	indifferent
	cfg    AWSConfig
	tokens atomic.Int64 // 0 to cfg.Capacity
	edge   edge.Edge
}

func newAWSQuota(c AWSConfig) *awsQuota {
	q := &awsQuota{cfg: c}
	q.tokens.Store(int64(c.Capacity))
	return q
}

// Withdraw pays the cost of the class. The receipt is that cost.
func (q *awsQuota) Withdraw(_ time.Duration, c budget.Class, _ func() uint64) budget.Grant {
	cost := int64(q.cfg.RetryCost)
	switch c {
	case budget.Timeout:
		cost = int64(q.cfg.TimeoutCost)
	case budget.RateLimited:
		cost = int64(q.cfg.RateLimitedCost)
	}
	for {
		have := q.tokens.Load()
		if have < cost {
			return budget.Grant{Exhausted: q.edge.RecordRefusal()}
		}
		if q.tokens.CompareAndSwap(have, have-cost) {
			q.edge.RecordGrant()
			return budget.Grant{OK: true, Receipt: budget.Receipt(cost)}
		}
	}
}

// Done gives back what the last retry cost, or the increment if there was none,
// if the call succeeded.
func (q *awsQuota) Done(_ time.Duration, success bool, last budget.Receipt, retries int) {
	back := int64(last)
	if last == 0 {
		back = int64(q.cfg.NoRetryIncrement)
	}
	if !success || back <= 0 {
		return
	}
	for {
		have := q.tokens.Load()
		room := int64(q.cfg.Capacity) - have
		if room <= 0 || q.tokens.CompareAndSwap(have, have+min(back, room)) {
			return
		}
	}
}

// Balance is the retries of class budget.Transient that the tokens would pay for.
func (q *awsQuota) Balance(time.Duration) float64 {
	return float64(q.tokens.Load() / int64(q.cfg.RetryCost))
}
