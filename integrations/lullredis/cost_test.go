package lullredis

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/cost"
)

// No part of a call allocates, whoever pays for its retry, also if that is refused.
func TestCost(t *testing.T) { synctest.Test(t, testCost) }

func noRedis(_ context.Context, batch []*budgetSync) {
	for _, e := range batch {
		e.err = errors.New("no Redis")
	}
}

func testCost(t *testing.T) {
	f := open(noRedis, FleetConfig{SyncEvery: MaxSyncEvery}, draws())
	defer f.Close(t.Context())
	b := mustBudget(t, f, "a", BudgetConfig{})
	now := time.Duration(0)
	call := func(success bool) func() {
		return func() {
			now += time.Millisecond
			b.Start(now)
			if !success {
				b.Failed(now)
				b.Release(now, b.Withdraw(now, budget.Transient, nil).Receipt)
			}
			b.Done(now, success, 0, 0)
			b.Balance(now)
		}
	}
	for range 100 {
		call(true)()
	}
	fail := call(false)
	for name, do := range map[string]func(){
		"success":        call(true),
		"failure":        fail,
		"paid by lease":  func() { b.ledger.leased.Store(1); fail() },
		"paid by share":  func() { b.ledger.share.Store(1); fail() },
		"refused, alone": func() { b.ledger.refused.Store(false); fail() },
	} {
		check.Equal(t, testing.AllocsPerRun(1000, do), 0, "%s: allocations", name)
	}
}

func BenchmarkDecision(b *testing.B) {
	open := func() *FleetBudget {
		f := open(noRedis, FleetConfig{SyncEvery: MaxSyncEvery}, draws())
		b.Cleanup(func() { f.Close(context.Background()) })
		return mustBudget(b, f, "a", BudgetConfig{})
	}
	busy := func() *FleetBudget {
		x := open()
		for i := range 100 {
			x.Done(time.Duration(i)*time.Millisecond, true, 0, 0)
		}
		for x.Withdraw(time.Second, budget.Transient, nil).OK {
		}
		return x
	}
	lend := func(x *FleetBudget) *FleetBudget { x.ledger.leased.Store(1 << 60); return x }
	withdraw := func(x budget.Budget) func(time.Duration) {
		return func(now time.Duration) { x.Withdraw(now, budget.Transient, nil) }
	}
	for _, x := range []struct {
		name string
		do   func(now time.Duration)
	}{
		{"success", func(x *FleetBudget) func(time.Duration) { return func(now time.Duration) { x.Done(now, true, 0, 0) } }(open())},
		{"lease/quiet", withdraw(lend(open()))}, // there is no window
		{"refused/quiet", withdraw(open())},
		{"lease/busy", withdraw(lend(busy()))},
		{"refused/busy", withdraw(busy())},
		{"account/refused/busy", withdraw(busy().local)}, // for comparison
	} {
		b.Run(x.name, func(b *testing.B) {
			for now := time.Second; b.Loop(); now += time.Microsecond {
				x.do(now)
			}
		})
	}
}

// hookCosts are a command that succeeds without a server.
func hookCosts(t testing.TB) cost.Calls {
	bare := func(context.Context, redis.Cmder) error { return nil }
	h := (&hook{dialer: newDialer(nil), d: newDependency(t, lull.Policy{})}).ProcessHook(bare)
	cmd := redis.NewStringCmd(t.Context(), "get", "key")
	return cost.Calls{"command": {
		func(ctx context.Context) error { return bare(ctx, cmd) },
		func(ctx context.Context) error { return h(ctx, cmd) },
	}}
}

// The hook costs one allocation for a command that succeeds: the context of the attempt. A time limit
// without lull costs four.
func TestHookCost(t *testing.T) {
	cost.Check(t, hookCosts(t), map[string]cost.Most{"command": {Bare: 1, Bounded: -3}})
}

func BenchmarkHook(b *testing.B) { cost.Bench(b, hookCosts(b)) }
