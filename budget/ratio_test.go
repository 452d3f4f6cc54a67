package budget

import (
	"math/bits"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/window"
)

// Two withdrawals never spend one token twice, and a withdrawal is never lost
// while deposits move the window on under it.
func TestWithdrawalsUnderConcurrency(t *testing.T) {
	for _, c := range []Config{
		{Ratio: 0.1, Window: time.Hour},
		{Ratio: 0.1, Window: 100 * time.Millisecond},
		{Ratio: 0.1, Window: 100 * time.Millisecond, Earn: Arrivals},
	} {
		b := mustRatio(t, c)
		var clock, granted, earned atomic.Int64
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 20_000 {
					// Each goroutine reads the clock, and may act on it late.
					now := time.Duration(clock.Add(int64(2 * time.Microsecond)))
					b.Start(now)
					if (i+g)%16 == 0 {
						if b.Withdraw(now, Transient, latest).OK {
							granted.Add(1)
						}
						b.Done(now, false, 0, 0)
						continue
					}
					earned.Add(1)
					b.Done(now, true, 0, 0)
				}
			})
		}
		wg.Wait()
		calls := earned.Load()
		if c.Earn == Arrivals {
			calls = 8 * 20_000
		}
		// The marks come as late as they can, so that nothing is ever owed.
		limit := int64(0.1*float64(calls) + 0.1)
		t.Logf("%+v: %d earned, %d granted (at most %d)", c, calls, granted.Load(), limit)
		if granted.Load() > limit {
			t.Errorf("%+v: %d granted, want at most %d", c, granted.Load(), limit)
		}
		if granted.Load() < limit/10 {
			t.Errorf("%+v: %d granted, of %d earned: tokens are being lost", c, granted.Load(), limit)
		}
	}
}

// Eight goroutines race for exactly so many tokens. Each is spent once, and of all that find nothing one is the first to.
// (In an Account a refusal between two grants, each from another purse, may be news as well.)
func TestATokenIsSpentOnce(t *testing.T) {
	account := withFlow(t, Config{Stock: 1000, Ratio: 1})
	earnMany(account, 0, 5000)
	for name, c := range map[string]struct {
		budget       Budget
		tokens, news int64
	}{
		"Ratio":   {mustRatio(t, Config{Ratio: 1, Stock: 19_999}), 20_000, 1},
		"Bucket":  {must.Have(NewBucket(Config{Stock: 20_000})), 20_000, 1},
		"Account": {account, 6000, 8},
	} {
		var granted, news atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range c.tokens {
					switch g := c.budget.Withdraw(0, Transient, never); {
					case g.OK:
						granted.Add(1)
					case g.Exhausted:
						news.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if granted.Load() != c.tokens || news.Load() < 1 || news.Load() > c.news {
			t.Errorf("%s: %d retries granted for %d tokens, %d refusals were news", name, granted.Load(), c.tokens, news.Load())
		}
	}
}

// A slot that is too full to record one more withdrawal must not give it away.
func TestAFullSlotRefuses(t *testing.T) {
	b := mustRatio(t, Config{Floor: MaxFloor}) // ten million, of which a slot holds 2.7
	b.Withdraw(0, Transient, never)
	b.counts.Add(1, -window.Max)
	if b.Balance(0) < 1e6 {
		t.Fatalf("balance %v, want millions", b.Balance(0))
	}
	if b.Withdraw(0, Transient, never).OK {
		t.Error("granted what could not be recorded")
	}
	if !b.Withdraw(time.Second, Transient, never).OK {
		t.Error("refused in the next slot")
	}
}

// A clock that differs between goroutines by more than the ring of slots must
// not make a withdrawal vanish.
func TestAFastClockDoesNotHideWithdrawals(t *testing.T) {
	b := mustRatio(t, Config{Ratio: 1})
	earnMany(b, 9*time.Second, 4)
	granted := 0
	for i := range 20 {
		if b.Withdraw(9*time.Second, Transient, never).OK {
			granted++
		}
		b.Done(time.Duration(9+i)*time.Second, false, 0, 0)
		if i == 5 { // somebody ahead by 8 slots earns once
			b.Done(17*time.Second, true, 0, 0)
		}
	}
	if granted != 6 { // the initial one, 4 and 1
		t.Errorf("%d granted, want 6", granted)
	}
}

// drawing is a source that draws u, 1 to token.
func drawing(u int64) func() uint64 {
	r, _ := bits.Div64(uint64(token-u), token-1, token)
	return func() uint64 { return r }
}

// Over all that can be drawn, the retries are on average no more than was
// earned, and with a try after every deposit exactly that. No luck is involved:
// each random sequence of deposits and tries is played once with each draw.
func TestOverAllDrawsRetriesAreWhatWasEarned(t *testing.T) {
	const grid = token / 100 // what is earned is a multiple, so that 100 draws cover all
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 5))
		per := int64(1 + r.IntN(130))
		eager := seed%2 == 0 // tries after every deposit
		gap := pick(r, 100*time.Millisecond, 2*time.Second, 8*time.Second)
		type step struct {
			now time.Duration
			try bool
		}
		steps := []step{{0, true}}
		var now, tried time.Duration
		for range 60 {
			now += time.Duration(r.Int64N(int64(gap)))
			try := r.IntN(3) == 0
			if !try {
				steps = append(steps, step{now, false})
			}
			// Never a window without a try: after one there is a new draw.
			if try || eager || now-tried > time.Second {
				steps = append(steps, step{now, true})
				tried = now
			}
		}
		var retries, earned int64
		for u := int64(grid); u <= token; u += grid {
			b := mustRatio(t, Config{Ratio: float64(per*grid) / token})
			earned += per * grid // the initial deposit
			for _, s := range steps {
				if !s.try {
					b.Done(s.now, true, 0, 0)
					earned += per * grid
					continue
				}
				for b.Withdraw(s.now, Transient, drawing(u)).OK {
					retries++
				}
			}
		}
		if retries*token > earned || eager && retries*token != earned {
			t.Errorf("seed %d, %d %% for a call, tries after each %v: %d retries over all draws, %.2f earned",
				seed, per, eager, retries, float64(earned)/token)
		}
	}
}
