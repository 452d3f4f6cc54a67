package budget

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lullgo/lull/internal/must"
)

func TestAnUnlimitedBucket(t *testing.T) {
	b := must.Have(NewBucket(Config{Unlimited: true}))
	for range 100 {
		if g := b.Withdraw(0, Transient, never); g != (Grant{OK: true}) {
			t.Fatalf("%+v", g)
		}
	}
	if !math.IsInf(b.Balance(0), 1) || !math.IsInf(b.Tokens(), 1) {
		t.Errorf("balance %v, %v tokens, want +Inf", b.Balance(0), b.Tokens())
	}
}

// No deposit and no withdrawal is lost, whoever else is writing.
func TestABucketCountsUnderConcurrency(t *testing.T) {
	for _, c := range []struct {
		config Config
		exact  bool // it can never be full again, so that nothing may be lost
	}{
		{Config{Stock: 100_000, Ratio: 0.1}, true},
		{Config{Stock: 100_000, Ratio: 0.1, Earn: Arrivals}, true},
		{Config{Stock: 3, Ratio: 0.1}, false},
		{Config{Stock: 3, Ratio: 0.1, Earn: Arrivals}, false},
	} {
		b := must.Have(NewBucket(c.config))
		for b.Withdraw(0, Transient, never).OK {
		}
		var granted, news, earned atomic.Int64
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 20_000 {
					b.Start(0)
					success := (i+g)%16 != 0
					if !success {
						switch g := b.Withdraw(0, Transient, never); {
						case g.OK:
							granted.Add(1)
						case g.Exhausted:
							news.Add(1)
						}
					}
					b.Done(0, success, 0, 0)
					if success || c.config.Earn == Arrivals {
						earned.Add(1)
					}
				}
			})
		}
		wg.Wait()
		paid, in := granted.Load()*token, earned.Load()*token/10
		have := int64(math.Round(b.Tokens() * token))
		if c.exact && have != in-paid || have > in-paid {
			t.Errorf("%+v: %d units left, earned %d, paid %d", c.config, have, in, paid)
		}
		if news.Load() > granted.Load() {
			t.Errorf("%+v: %d refusals were news after %d grants", c.config, news.Load(), granted.Load())
		}
		if granted.Load() < 1000 {
			t.Errorf("%+v: %d granted, too few to mean anything", c.config, granted.Load())
		}
	}
}

// A refusal that is news is written; what is earned at that moment must not be
// written over.
func TestARefusalLosesNoDeposit(t *testing.T) {
	const deposits = 300_000
	b := must.Have(NewBucket(Config{Stock: MaxStock, Ratio: 0.6})) // never full again
	for b.Withdraw(0, Transient, never).OK {
	}
	var wg sync.WaitGroup
	var done atomic.Bool
	wg.Go(func() {
		for range deposits {
			b.Done(0, true, 0, 0)
		}
		done.Store(true)
	})
	granted := 0
	for !done.Load() {
		if b.Withdraw(0, Transient, never).OK {
			granted++
		}
	}
	wg.Wait()
	if have, want := int64(math.Round(b.Tokens()*token)), int64(deposits*token*6/10-granted*token); have != want {
		t.Errorf("%d units left after %d deposits and %d retries, want %d", have, deposits, granted, want)
	}
}

// What is kept in one word comes out of it as it went in, at the limits too.
func TestTermsKeepAConfig(t *testing.T) {
	for _, stock := range []float64{1, 2.5, 1.00001, MaxStock} {
		for _, ratio := range []float64{MinRatio, 0.1, 0.33333, MaxRatio} {
			for _, earn := range []Earn{Successes, Arrivals} {
				got := newTerms(Config{Stock: stock, Ratio: ratio, Earn: earn})
				if float64(got.full()) != math.Round(stock*100_000)*2 || float64(got.earned()) != math.Round(ratio*100_000)*2 ||
					got.arrivals() != (earn == Arrivals) || got.unlimited() {
					t.Errorf("%v, %v, %v: %d, %d, %v, %v", stock, ratio, earn, got.full(), got.earned(), got.arrivals(), got.unlimited())
				}
				if a := mustAccount(t, Config{Stock: stock, Ratio: ratio, Earn: earn}); a.Stock() != a.stock.Tokens() {
					t.Errorf("the stock of a new account is %v, and it has %v", a.Stock(), a.stock.Tokens())
				}
			}
		}
	}
	if b := newBucket(Config{Unlimited: true}); b.Stock() != b.Tokens() {
		t.Errorf("the stock of an unlimited bucket is %v", b.Stock())
	}
	if got := newTerms(Config{Unlimited: true, Stock: 5, Earn: Arrivals}); got.full() != 0 || got.earned() != 0 || got.arrivals() || !got.unlimited() {
		t.Errorf("%d, %d, %v, %v", got.full(), got.earned(), got.arrivals(), got.unlimited())
	}
}
