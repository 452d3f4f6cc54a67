package lullredis

import (
	"time"

	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/edge"
)

// A FleetBudget pays for the retries of one dependency in one instance of a fleet: with tokens that the
// instance's own calls have earned, and beyond that with tokens that the fleet's floor lends it. It
// is a [budget.Budget], for lull.WithBudget. Make one with [Fleet.Budget].
//
// A decision takes as long as one of a budget.Account plus two loads. It never waits for Redis. The
// methods may be called concurrently.
type FleetBudget struct {
	local  budget.Budget
	ledger *ledger
	edge   edge.Edge
	name   string
	config BudgetConfig
	fleet  *Fleet
}

var _ budget.Budget = (*FleetBudget)(nil)

func newBudget(name string, c BudgetConfig, f *Fleet, id string, now time.Duration) (*FleetBudget, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	local, err := budget.New(c.local())
	if err != nil {
		return nil, err
	}
	// An account starts with a stock that nobody earned. The pool replaces it.
	for range int(budget.DefaultStock) {
		local.Withdraw(0, budget.Transient, nil)
	}
	return &FleetBudget{
		local:  local,
		ledger: newLedger(c.ledgerSettings(f.config.SyncEvery), id, now),
		name:   name,
		config: c,
		fleet:  f,
	}, nil
}

// Start records that a call begins. It earns, if arrivals do.
func (b *FleetBudget) Start(now time.Duration) { b.local.Start(now) }

// Failed does nothing: a failure costs only if it is retried.
func (*FleetBudget) Failed(time.Duration) {}

// Release does nothing: a retry has been paid for and stays so.
func (*FleetBudget) Release(time.Duration, budget.Receipt) {}

// Done records that a call has ended. It earns, if it succeeded and successes do. The price
// of its retries is not refunded: a fleet's bound is on all retries, and tokens that the
// fleet has lent would come back as this process's own.
func (b *FleetBudget) Done(now time.Duration, success bool, r budget.Receipt, _ int) {
	b.local.Done(now, success, r, 0)
}

// Withdraw takes one token for one retry: one that calls have earned, which expire, else one that
// the fleet has lent. If there is neither it refuses at once, and the Fleet asks for more
// meanwhile.
func (b *FleetBudget) Withdraw(now time.Duration, c budget.Class, rnd func() uint64) budget.Grant {
	if g := b.local.Withdraw(now, c, rnd); g.OK {
		b.edge.RecordGrant()
		return g
	}
	paid, wake := b.ledger.withdraw()
	if paid {
		b.edge.RecordGrant()
		return budget.Grant{OK: true, Receipt: 1}
	}
	if wake {
		b.fleet.wakeUp()
	}
	return budget.Grant{Exhausted: b.edge.RecordRefusal()}
}

// Balance returns the whole tokens that this instance holds.
func (b *FleetBudget) Balance(now time.Duration) float64 {
	return b.local.Balance(now) + float64(b.ledger.leased.Load()+b.ledger.share.Load())
}

// Snapshot returns what the instance knows of the fleet.
func (b *FleetBudget) Snapshot() Snapshot {
	s := b.ledger.state(b.fleet.now())
	s.Name = b.name
	return s
}
