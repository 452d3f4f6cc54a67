package rivals

import (
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/budget"
)

// Budget is the kind of retry budget that a client has, and its configuration.
// At most one of them is set; a zero stands for "not this one". The zero Budget
// leaves the choice to Policy.Budget.
type Budget struct {
	AWS     AWSConfig
	GRPC    budget.GRPCConfig
	Envoy   EnvoyConfig
	Finagle FinagleConfig
	Bucket  budget.Config // of a budget.Bucket: without a Window
	Running Running

	// Warmup is the number of calls, beginning with the first of the process,
	// during which the budget is not asked.
	Warmup int
}

// New makes the budget of one process.
func (b Budget) New() budget.Budget {
	if b.Warmup > 0 {
		return newWarmup(b.Warmup, b.kind())
	}
	return b.kind()
}

func (b Budget) kind() (made budget.Budget) {
	switch {
	case b.AWS != AWSConfig{}:
		return newAWSQuota(b.AWS)
	case b.GRPC != budget.GRPCConfig{}:
		made, _ = budget.NewGRPCThrottle(b.GRPC)
	case b.Envoy != EnvoyConfig{}:
		return &envoyConcurrency{cfg: b.Envoy}
	case b.Finagle != FinagleConfig{}:
		return newFinagleBucket(b.Finagle)
	case b.Bucket != budget.Config{}:
		made, _ = budget.NewBucket(b.Bucket)
	case b.Running != Running{}:
		return &running{cfg: b.Running}
	default:
		made, _ = budget.New(budget.Config{}) // nothing is set: as Policy.Budget would be
	}
	return made
}

// An indifferent budget does nothing when a call begins, when an attempt fails (a failure costs only if it is
// retried), and when a retry is over.
type indifferent struct{}

func (indifferent) Start(time.Duration)                   {}
func (indifferent) Failed(time.Duration)                  {}
func (indifferent) Release(time.Duration, budget.Receipt) {}

// A warmup does not ask its budget during the first calls of a process.
type warmup struct {
	budget.Budget
	left atomic.Int64 // calls that are still free, and one
}

func newWarmup(calls int, b budget.Budget) *warmup {
	w := &warmup{Budget: b}
	w.left.Store(int64(calls) + 1)
	return w
}

func (w *warmup) Start(now time.Duration) {
	if w.left.Load() > 0 {
		w.left.Add(-1)
	}
	w.Budget.Start(now)
}

// Withdraw grants whatever is asked for while the first calls last. What is
// granted so is not recorded in the budget.
func (w *warmup) Withdraw(now time.Duration, c budget.Class, rnd func() uint64) budget.Grant {
	if w.left.Load() > 0 {
		return budget.Grant{OK: true}
	}
	return w.Budget.Withdraw(now, c, rnd)
}
