package budget_test

import (
	"testing"
	"time"

	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// What one budget has left the next begins with, if there is room for it.
func TestInherit(t *testing.T) {
	account := func(stock float64) budget.Budget {
		b := must.Have(budget.New(budget.Config{Stock: stock, Ratio: 0.5}))
		return b
	}
	bucket := func(stock float64) budget.Budget {
		b := must.Have(budget.NewBucket(budget.Config{Stock: stock, Ratio: 0.5}))
		return b
	}
	unlimited, _ := budget.New(budget.Config{Unlimited: true})
	ratio := func() budget.Budget {
		b := must.Have(budget.New(budget.Config{Window: 10 * time.Second, Ratio: 0.5}))
		for range 9 {
			b.Done(0, true, 0, 0)
		}
		return b // 4.5 and half a one to begin with
	}
	spent := func(b budget.Budget, n int) budget.Budget {
		for range n {
			if !b.Withdraw(0, budget.Transient, nil).OK {
				t.Fatal("not as much as that")
			}
		}
		return b
	}
	for _, c := range []struct {
		name     string
		to, from budget.Budget
		want     float64
	}{
		{"account", account(20), spent(account(10), 4), 6},
		{"account, smaller", account(3), spent(account(10), 4), 3},
		{"account, full", account(20), account(10), 10},
		{"account from bucket", account(20), spent(bucket(10), 10), 0},
		{"bucket from account", bucket(20), spent(account(10), 9), 1},
		{"bucket from bucket", bucket(5), spent(bucket(10), 1), 5},
		{"account from ratio", account(20), ratio(), 5},
		{"account from unlimited", account(20), unlimited, 20},
		{"account from nothing", account(20), nil, 20},
	} {
		budget.Inherit(0, c.to, c.from)
		check.Equal(t, c.to.Balance(0), c.want, "%s: tokens", c.name)
		spent(c.to, int(c.want))
		if c.to.Withdraw(0, budget.Transient, nil).OK {
			t.Errorf("%s: one more than %v was paid", c.name, c.want)
		}
	}
}

// What an account has earned above its stock, in its window, is kept as well.
func TestInheritTheWindow(t *testing.T) {
	b, _ := budget.New(budget.Config{Stock: 1, Ratio: 0.5})
	for i := range 100 {
		b.Done(time.Duration(i)*10*time.Millisecond, true, 0, 0)
	}
	now := time.Second
	had := b.Balance(now)
	if had < 40 {
		t.Fatalf("%v tokens in the window: this test tells nothing", had)
	}
	next, _ := budget.New(budget.Config{Stock: 2, Ratio: 0.1})
	budget.Inherit(now, next, b)
	check.Equal(t, next.Balance(now), had, "tokens")
	if got := next.Balance(now + 40*time.Second); got > 2 {
		t.Errorf("%v tokens when all has expired", got)
	}
}

// A ratio that takes over begins as new, and nothing panics.
func TestInheritOfOtherKinds(t *testing.T) {
	for _, from := range []budget.Config{{}, {Window: time.Second}, {Unlimited: true}} {
		for _, to := range []budget.Config{{}, {Window: time.Second}, {Unlimited: true}, {Window: time.Minute, Ratio: 0.5}} {
			a, _ := budget.New(from)
			b, _ := budget.New(to)
			fresh, _ := budget.New(to)
			budget.Inherit(time.Hour, b, a)
			if to.Window != 0 && b.Balance(time.Hour) != fresh.Balance(time.Hour) {
				t.Errorf("%+v from %+v: %v, want %v", to, from, b.Balance(time.Hour), fresh.Balance(time.Hour))
			}
		}
	}
}
