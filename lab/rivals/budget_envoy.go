package rivals

import (
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/edge"
)

// EnvoyConfig is the retry_budget of an Envoy cluster's circuit breakers. Take
// envoyDefault and change what differs; zeros are taken literally.
type EnvoyConfig struct {
	// Percent of the active calls that may be retries, 0 to 100.
	Percent float64
	// MinConcurrency is the number of retries that is always allowed, zero or
	// more.
	MinConcurrency int
}

// envoyDefault returns the values that Envoy uses where a retry_budget leaves its fields out.
func envoyDefault() EnvoyConfig { return EnvoyConfig{Percent: 20, MinConcurrency: 3} }

// envoyConcurrency is the retry budget of Envoy's circuit breakers
// (resource_manager_impl.h). It limits retries under way, not retries made:
//
//	allowed iff retries < max(⌊percent/100 × (active + pending)⌋, min)
//
// A retry counts from the moment it is granted, before its wait, until it is
// settled. A call is active from Start to Done. (In Envoy a request that waits
// for its retry is not active but its retry is already counted, so its limit is
// a little lower in an outage.) Since it bounds concurrency alone, fast failures
// with short waits pass as many retries as they can make.
type envoyConcurrency struct {
	indifferent
	cfg     EnvoyConfig
	calls   atomic.Int64 // begun and not ended
	retries atomic.Int64 // granted and not settled
	edge    edge.Edge
}

// limit is the number of retries that may be under way. Envoy computes it in
// floating point and cuts the fraction off.
func (e *envoyConcurrency) limit() int64 {
	active := max(0, e.calls.Load())
	return max(int64(e.cfg.Percent/100*float64(active)), int64(e.cfg.MinConcurrency))
}

// Start counts an active call.
func (e *envoyConcurrency) Start(time.Duration) { e.calls.Add(1) }

// Withdraw counts a retry as under way, if the limit allows it.
func (e *envoyConcurrency) Withdraw(time.Duration, budget.Class, func() uint64) budget.Grant {
	for {
		n := e.retries.Load()
		if n >= e.limit() {
			return budget.Grant{Exhausted: e.edge.RecordRefusal()}
		}
		if e.retries.CompareAndSwap(n, n+1) {
			e.edge.RecordGrant()
			return budget.Grant{OK: true, Receipt: 1}
		}
	}
}

// Release counts a retry as over. A zero receipt paid for none.
func (e *envoyConcurrency) Release(_ time.Duration, r budget.Receipt) {
	if r == 0 {
		return
	}
	for {
		n := e.retries.Load()
		if n <= 0 || e.retries.CompareAndSwap(n, n-1) {
			return
		}
	}
}

func (e *envoyConcurrency) Done(time.Duration, bool, budget.Receipt, int) { e.calls.Add(-1) }

// Balance is the number of retries that may still be started.
func (e *envoyConcurrency) Balance(time.Duration) float64 {
	return float64(max(0, e.limit()-e.retries.Load()))
}
