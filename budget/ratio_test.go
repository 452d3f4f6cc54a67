package budget

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/window"
)

func TestWholeTokensNeedNoLuck(t *testing.T) {
	b := mustRatio(t, Config{Ratio: 0.5})
	earnMany(b, 0, 5) // with the initial half token: 3
	for n := range 3 {
		if g := b.Withdraw(0, Transient, never); g != (Grant{OK: true, Receipt: 1}) {
			t.Fatalf("withdrawal %d: %+v", n, g)
		}
	}
	if g := b.Withdraw(0, Transient, never); g.OK {
		t.Error("granted from an empty budget")
	}
}

// Whatever was drawn, the mark is where it is: trying again, before or after it
// was reached, does not move it, and the next is one token on.
func TestOneDrawDecidesAllFractions(t *testing.T) {
	b := mustRatio(t, Config{Ratio: 0.25})
	draws := 0
	rnd := func() uint64 { // the 0.6th of each token
		if draws++; draws > 1 {
			t.Fatal("drew twice")
		}
		return 1<<63 - 1<<64/10
	}
	granted := ""
	for range 12 { // with the initial quarter: 0.25, 0.5 ... 3
		for range 3 {
			before := b.Balance(0)
			g := b.Withdraw(0, Transient, rnd)
			if g.OK {
				granted += "+"
			} else {
				granted += "-"
			}
			if after := b.Balance(0); !g.OK && after != before {
				t.Errorf("a refusal changed the balance from %v to %v", before, after)
			}
		}
		granted += " "
		earnMany(b, 0, 1)
	}
	const want = "--- --- +-- --- --- --- +-- --- --- --- +-- --- "
	if granted != want {
		t.Errorf("granted %s, want %s: at 0.75, 1.75 and 2.75 earned", granted, want)
	}
	if draws != 1 {
		t.Errorf("%d draws, want 1", draws)
	}
}

// A granted fraction costs a full token.
func TestAFractionIsPaidBackInFull(t *testing.T) {
	b := mustRatio(t, Config{Ratio: 0.25})
	if !b.Withdraw(0, Transient, soonest).OK {
		t.Error("refused with the first unit marked")
	}
	earnMany(b, 0, 3) // pay the debt
	if b.Withdraw(0, Transient, never).OK {
		t.Error("granted while in debt")
	}
	earnMany(b, 0, 1)
	if got := b.Balance(0); got != 0.25 {
		t.Errorf("balance %v after the debt was paid, want 0.25", got)
	}
	if !b.Withdraw(0, Transient, never).OK {
		t.Error("refused at the next mark, one token on")
	}
}

// After a whole window without a withdrawal there is a new draw, before it not.
func TestANewDrawAfterAWindow(t *testing.T) {
	for _, c := range []struct {
		after time.Duration
		rnd   func() uint64
		want  bool
	}{{9999 * time.Millisecond, never, false}, {10 * time.Second, latest, false}, {10 * time.Second, soonest, true}} {
		b := mustRatio(t, Config{})
		b.Withdraw(0, Transient, latest)
		earnMany(b, 5*time.Second, 1)
		if got := b.Withdraw(c.after, Transient, c.rnd).OK; got != c.want {
			t.Errorf("after %v: granted %v, want %v", c.after, got, c.want)
		}
	}
}

func TestWithoutASourceTheMiddleIsDrawn(t *testing.T) {
	for _, c := range []struct {
		ratio float64
		want  bool
	}{{0.49999, false}, {0.5, true}} {
		if g := mustRatio(t, Config{Ratio: c.ratio}).Withdraw(0, Transient, nil); g.OK != c.want {
			t.Errorf("balance %v: granted %v, want %v", c.ratio, g.OK, c.want)
		}
	}
}

// The chance of a grant is the balance, as exactly as the draws are even.
func TestTheDrawIsExact(t *testing.T) {
	const per = 1 << 20
	for _, balance := range []int64{1, 10_000, 70_000, 99_999} {
		won := 0
		for i := range uint64(per) {
			u := draw(func() uint64 { return i << 44 })
			if u < 1 || u > token {
				t.Fatalf("drew %d", u)
			}
			if u <= balance {
				won++
			}
		}
		if want := float64(balance) / token * per; math.Abs(float64(won)-want) > 1 {
			t.Errorf("balance %d of %d: %d of %d evenly spaced draws won, want %.1f", balance, token, won, per, want)
		}
	}
}

func TestTheInitialStockWaitsForTheFirstUse(t *testing.T) {
	for _, idle := range []time.Duration{0, time.Hour, 1000 * time.Hour, math.MaxInt64} {
		b := mustRatio(t, Config{Stock: 2})
		if got := b.Balance(idle); got != 2.1 {
			t.Errorf("unused for %v: balance %v, want 2.1", idle, got)
		}
		for n, rnd := range []func() uint64{never, never, soonest} {
			if !b.Withdraw(idle, Transient, rnd).OK {
				t.Errorf("unused for %v: retry %d of the stock was refused", idle, n)
			}
		}
	}
	// After the first use it expires as everything does.
	b := mustRatio(t, Config{Stock: 2})
	earnMany(b, time.Hour, 1)
	if got := b.Balance(time.Hour + 9*time.Second); got != 2.2 {
		t.Errorf("balance %v, want 2.2", got)
	}
	if got := b.Balance(time.Hour + 10*time.Second); got != 0 {
		t.Errorf("balance %v a window after the first use, want 0", got)
	}
}

// Arrivals have earned by the time that a retry is wanted, so nothing is given.
func TestArrivalsEarnWhenTheyBegin(t *testing.T) {
	b := mustRatio(t, Config{Earn: Arrivals, Ratio: 0.5})
	if got := b.Balance(0); got != 0 {
		t.Errorf("balance %v before the first call, want 0", got)
	}
	b.Begin(0)
	if got := b.Balance(0); got != 0.5 {
		t.Errorf("balance %v after one call began, want 0.5", got)
	}
	b.End(0, true, 0, 0)
	if got := b.Balance(0); got != 0.5 {
		t.Errorf("balance %v after it ended, want 0.5: it has earned already", got)
	}
}

func TestFailuresEarnNothing(t *testing.T) {
	b := mustRatio(t, Config{})
	for range 100 {
		b.Begin(0)
		b.Failed(0)
		b.End(0, false, 0, 0)
	}
	if got := b.Balance(0); got != 0.1 {
		t.Errorf("balance %v, want the initial 0.1", got)
	}
}

func TestTheFloorComesBackWithTheWindow(t *testing.T) {
	b := mustRatio(t, Config{Floor: 2, Window: time.Second, Earn: Arrivals})
	for _, now := range []time.Duration{0, 0, 100 * time.Second, 100 * time.Second} {
		if !b.Withdraw(now, Transient, never).OK {
			t.Errorf("at %v: refused, want 2 retries a second", now)
		}
	}
	if b.Withdraw(100*time.Second+899*time.Millisecond, Transient, never).OK {
		t.Error("a third retry within the second")
	}
	if !b.Withdraw(101*time.Second, Transient, never).OK {
		t.Error("refused in the next second")
	}
}

func TestCooldown(t *testing.T) {
	b := mustRatio(t, Config{Ratio: 1, Cooldown: 5 * time.Second})
	b.Withdraw(0, Transient, never)
	at := func(now time.Duration, want Grant) {
		t.Helper()
		if got := b.Withdraw(now, Transient, never); got != want {
			t.Errorf("at %v: %+v, want %+v", now, got, want)
		}
	}
	at(time.Second, Grant{Exhausted: true, Until: 6 * time.Second})
	earnMany(b, time.Second, 10)
	at(2*time.Second, Grant{Until: 6 * time.Second}) // it has tokens, and waits
	if got := b.Balance(2 * time.Second); got != 0 {
		t.Errorf("balance %v in the cooldown, want 0", got)
	}
	at(6*time.Second-1, Grant{Until: 6 * time.Second})
	at(3*time.Second, Grant{Until: 6 * time.Second}) // a goroutine that is late
	at(6*time.Second, Grant{OK: true, Receipt: 1})
	at(60*time.Second, Grant{Exhausted: true, Until: 65 * time.Second}) // all expired
	at(math.MaxInt64-1, Grant{Exhausted: true, Until: math.MaxInt64})
}

// Without a cooldown one refusal in a row of refusals is news.
func TestExhaustedMarksTheEdge(t *testing.T) {
	b := mustRatio(t, Config{Ratio: 0.5})
	want := func(now time.Duration, g Grant) {
		t.Helper()
		if got := b.Withdraw(now, Transient, never); got != g {
			t.Errorf("at %v: %+v, want %+v", now, got, g)
		}
	}
	earnMany(b, 0, 1)
	want(0, Grant{OK: true, Receipt: 1})
	want(0, Grant{Exhausted: true})
	want(0, Grant{})
	b.Withdraw(0, Transient, soonest)
	earnMany(b, 0, 2)
	want(time.Second, Grant{OK: true, Receipt: 1})
	want(time.Second, Grant{Exhausted: true}) // the first after a grant
	for s := 2; s < 30; s++ {
		want(time.Duration(s)*time.Second, Grant{}) // one outage, one event
	}
	want(40*time.Second, Grant{Exhausted: true}) // a window of rest, a new one
}

func TestUnlimited(t *testing.T) {
	b := mustRatio(t, Config{Unlimited: true})
	for range 1000 {
		if g := b.Withdraw(0, Transient, never); g != (Grant{OK: true}) {
			t.Fatalf("%+v", g)
		}
	}
	if got := b.Balance(0); !math.IsInf(got, 1) {
		t.Errorf("balance %v, want +Inf", got)
	}
}

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
					b.Begin(now)
					if (i+g)%16 == 0 {
						if b.Withdraw(now, Transient, latest).OK {
							granted.Add(1)
						}
						b.End(now, false, 0, 0)
						continue
					}
					earned.Add(1)
					b.End(now, true, 0, 0)
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
		"Bucket":  {mustBucket(t, Config{Stock: 20_000}), 20_000, 1},
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
		b.End(time.Duration(9+i)*time.Second, false, 0, 0)
		if i == 5 { // somebody ahead by 8 slots earns once
			b.End(17*time.Second, true, 0, 0)
		}
	}
	if granted != 6 { // the initial one, 4 and 1
		t.Errorf("%d granted, want 6", granted)
	}
}
