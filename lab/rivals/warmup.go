package rivals

import (
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/budget"
)

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
