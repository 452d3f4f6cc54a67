package budget

import (
	"cmp"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
)

func mustAccount(t testing.TB, c Config) *Account {
	t.Helper()
	must.Succeed(c.Validate())
	return newAccount(c)
}

// withFlow is an account whose window exists, and holds nothing.
func withFlow(t testing.TB, c Config) *Account {
	t.Helper()
	a := mustAccount(t, c)
	for range 2 { // the same moment twice
		a.Start(0)
		a.Done(0, true, 0, 0)
	}
	if a.window.Load() == nil || a.Balance(0) != math.Floor(a.stock.Tokens()) {
		t.Fatalf("%+v: no window after two calls at once, or %v in it", c, a.Balance(0))
	}
	return a
}

// An accountModel is the rule of Account written down slowly: the stock in units,
// and the window as the list that the model of Ratio keeps. A Bucket is the stock
// alone, and gives nothing back for retries.
type accountModel struct {
	cfg                Config
	bucket             bool
	per, stock         int64
	flow               *model // nil until two calls have earned within the gap
	gap, last          time.Duration
	earnedBefore, news bool // news: the last answer was not a refusal

	earned, retries int64
}

func newAccountModel(c Config) *accountModel {
	if c.Ratio == 0 {
		c.Ratio = 0.1
	}
	if c.Stock == 0 {
		c.Stock = 20
	}
	return &accountModel{
		cfg: c, news: true,
		per:   int64(math.Round(c.Ratio * 100_000)),
		stock: int64(math.Round(c.Stock * 100_000)),
		// Stock / ratio calls in half a minute, both as they are kept.
		gap: time.Duration(30e9 * math.Round(c.Ratio*100_000) / math.Round(c.Stock*100_000)),
	}
}

// deposit puts so much into the stock, and what does not fit into the window, if there is one.
func (m *accountModel) deposit(now time.Duration, n int64) {
	fits := min(n, int64(math.Round(m.cfg.Stock*100_000))-m.stock)
	m.stock += fits
	if over := n - fits; m.flow != nil && over > 0 {
		m.flow.list = append(m.flow.list, entry{slot: m.flow.at(now), units: over})
	}
}

// refund is what a call's retries cost that has succeeded.
func (m *accountModel) refund(now time.Duration, retries int) {
	if m.bucket {
		return
	}
	m.earned += int64(retries) * 100_000
	m.deposit(now, int64(retries)*100_000)
}

func (m *accountModel) earn(now time.Duration) {
	m.earned += m.per
	m.deposit(now, m.per)
	if m.flow != nil || m.bucket {
		return
	}
	if m.earnedBefore && now-m.last < m.gap {
		m.flow = newModel(Config{Window: 30 * time.Second})
		m.flow.initial = 0
	}
	m.earnedBefore, m.last = true, now
}

func (m *accountModel) withdraw(now time.Duration) Grant {
	if m.flow != nil {
		m.flow.now = max(m.flow.now, now, 0)
		if slot := m.flow.at(m.flow.now); m.flow.sum(slot) >= 100_000 {
			m.flow.list = append(m.flow.list, entry{slot: slot, units: -100_000})
			return m.paid()
		}
	}
	if m.stock >= 100_000 {
		m.stock -= 100_000
		return m.paid()
	}
	news := m.news
	m.news = false
	return Grant{Exhausted: news}
}

func (m *accountModel) paid() Grant {
	m.retries += 100_000
	m.news = true
	return Grant{OK: true, Receipt: 1}
}

func (m *accountModel) balance(now time.Duration) float64 {
	tokens := m.stock / 100_000
	if m.flow != nil {
		tokens += int64(m.flow.balance(now))
	}
	return float64(tokens)
}

// Over a million operations, at random times that also jump and run backwards,
// an Account and a Bucket answer exactly as the model does, are never ahead of what calls earned
// by more than its stock, and pay if and only if they have a balance.
func TestAccountAndBucketAgreeWithASlowModel(t *testing.T) {
	const opsPerRun = 500
	runs := seed.Runs(110)
	var total, grants, refusals, flows int
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 0xacc))
		cfg := Config{
			Ratio: pick(r, 0, 0.1, 0.1, 0.2, 0.33333, 1, 2.5, 0.00001, 4, 0.00012+r.Float64()),
			Earn:  pick(r, Successes, Successes, Arrivals),
			Stock: pick(r, 0, 0, 1, 1.5, 10, 100, 500, 1+r.Float64()),
		}
		m := newAccountModel(cfg)
		var a Budget = mustAccount(t, cfg)
		if m.bucket = seed%3 == 0; m.bucket {
			a = must.Have(NewBucket(cfg))
		}
		failing := r.Float64()
		if r.IntN(3) == 0 {
			failing /= 20 // so that the stock is mostly full
		}
		now := time.Duration(r.Int64N(int64(time.Hour)))
		step := int64(pick(r, time.Millisecond, 50*time.Millisecond, time.Second, 20*time.Second))
		for op := range opsPerRun {
			at := now
			switch r.IntN(60) {
			case 0:
				now += time.Duration(r.Int64N(int64(15 * time.Second)))
			case 1:
				now += time.Duration(r.Int64N(int64(24 * time.Hour)))
			case 2, 3: // a goroutine that is late
				at -= time.Duration(r.Int64N(int64(3 * time.Second)))
			default:
				now += time.Duration(r.Int64N(step))
			}
			switch k := r.Float64(); {
			case k < 0.05:
				if got, want := a.Balance(at), m.balance(at); got != want {
					t.Fatalf("seed %d, operation %d, now %v, %+v: Balance = %v, want %v", seed, op, at, cfg, got, want)
				}
			case k < 0.1:
				a.Failed(at)
				a.Release(at, Receipt(r.Int64()))
			case k < 0.5 && r.Float64() < failing:
				has := a.Balance(at) >= 1
				got, want := a.Withdraw(at, Class(r.IntN(4)), never), m.withdraw(at)
				if got != want || at == now && got.OK != has {
					t.Fatalf("seed %d, operation %d, now %v, %+v: Withdraw = %+v, want %+v; had a balance: %v", seed, op, at, cfg, got, want, has)
				}
				if got.OK {
					grants++
				} else {
					refusals++
				}
			default:
				a.Start(at)
				if cfg.Earn == Arrivals {
					m.earn(at)
				}
				success := r.Float64() >= failing
				retries := max(r.IntN(8)-4, 0)
				a.Done(at, success, Receipt(min(retries, 1)), retries)
				if success {
					m.refund(at, retries)
				}
				if success && cfg.Earn == Successes {
					m.earn(at)
				}
			}
			if limit := m.earned + int64(math.Round(m.cfg.Stock*100_000)); m.retries > limit {
				t.Fatalf("seed %d, operation %d, %+v: %d units of retries, earned and in stock %d", seed, op, cfg, m.retries, limit)
			}
			total++
		}
		if m.flow != nil {
			flows++
		}
	}
	t.Logf("%d operations, %d retries granted, %d refused; %d of %d accounts had a window", total, grants, refusals, flows, runs)
	if total < 450*runs || grants < 22*runs || refusals < 18*runs || flows < runs/3 || runs-flows < runs/22 {
		t.Error("too little of something happened to mean much")
	}
}

// The window exists for those who need it: calls that are QuietGap apart leave
// nothing behind, and two that are closer do.
func TestAQuietProcessHasNoWindow(t *testing.T) {
	for _, c := range []Config{{}, {Earn: Arrivals}, {Stock: 5}, {Ratio: 4, Stock: 1}} {
		gap := c.QuietGap()
		a := mustAccount(t, c)
		var now time.Duration
		for range 100 {
			earnMany(a, now, 1)
			now += gap
		}
		if a.window.Load() != nil {
			t.Errorf("%+v: a window, with calls %v apart", c, gap)
		}
		earnMany(a, now-1, 1)
		if a.window.Load() == nil {
			t.Errorf("%+v: no window, with two calls %v apart", c, gap-1)
		}
	}
	for c, want := range map[Config]time.Duration{
		{}:                                     150 * time.Millisecond,
		{Stock: 2}:                             1500 * time.Millisecond,
		{Stock: 10}:                            300 * time.Millisecond,
		{Ratio: 0.2, Stock: 1, Earn: Arrivals}: 6 * time.Second,
		{Unlimited: true}:                      0,
		{Window: time.Second}:                  0,
		{Ratio: MinRatio, Stock: MaxStock}:     0, // less than a nanosecond
	} {
		check.Equal(t, c.QuietGap(), want, "%+v: QuietGap", c)
	}
	tiny := mustAccount(t, Config{Ratio: MinRatio, Stock: MaxStock})
	earnMany(tiny, 0, 10)
	earnMany(tiny, -1, 10)
	if tiny.window.Load() != nil {
		t.Error("a window that no calls can fill")
	}
}

// Retries of calls that succeed in the end cost nothing. Those of calls that fail are, at any
// time, no more than what successes have earned, and the stock.
func TestRule01RetriesThatHelpedAreGivenBack(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0xbac))
		cfg := Config{Ratio: pick(r, 0, 0.05, 0.3), Stock: pick(r, 0, 1, 5.0)}
		ratio, stock := cmp.Or(cfg.Ratio, DefaultRatio), cmp.Or(cfg.Stock, DefaultStock)
		a := mustAccount(t, cfg)
		fails := pick(r, 0.02, 0.2, 0.5, 1)
		var now time.Duration
		var successes, helped, useless, refused int
		for n := range 3000 {
			if n%500 == 0 {
				fails = pick(r, 0.02, 0.2, 0.5, 1)
			}
			now += time.Duration(r.Int64N(int64(100 * time.Millisecond)))
			a.Start(now)
			retries, ok := 0, r.Float64() >= fails
			for !ok && retries < 4 {
				if g := a.Withdraw(now, Transient, never); !g.OK {
					refused++
					break
				}
				retries++
				ok = r.Float64() >= fails
			}
			a.Done(now, ok, Receipt(min(retries, 1)), retries)
			if ok {
				successes++
				helped += retries
			} else {
				useless += retries
			}
			if limit := ratio*float64(successes) + stock; float64(useless) > limit+1e-6 {
				t.Fatalf("seed %d, %+v: %d retries of calls that failed, after %d successes", seed, cfg, useless, successes)
			}
		}
		if helped == 0 && seed == 0 {
			t.Errorf("seed %d: no retry helped (%d useless, %d refused)", seed, useless, refused)
		}
	}
}

// However many make the window at once, there is one, and what is earned from
// then on is in it.
func TestOneWindowIsMade(t *testing.T) {
	const goroutines, calls = 4, 50
	for range 2000 {
		a := mustAccount(t, Config{Ratio: 1})
		var wg sync.WaitGroup
		var ready atomic.Int32
		for range goroutines {
			wg.Go(func() {
				for ready.Add(1); ready.Load() < goroutines; {
					runtime.Gosched()
				}
				earnMany(a, time.Second, calls)
			})
		}
		wg.Wait()
		// All but the first call, and what each goroutine had under way then.
		least, most := float64(goroutines*(calls-1)-1), float64(goroutines*calls)
		if got := a.Balance(time.Second) - DefaultStock; got < least || got > most {
			t.Fatalf("%v tokens in the window, want %v to %v", got, least, most)
		}
	}
}

// Nothing is paid twice, whoever else is writing, and no refusal is news without
// a retry that was paid before it.
func TestAnAccountCountsUnderConcurrency(t *testing.T) {
	for _, c := range []Config{{}, {Earn: Arrivals}, {Stock: 50, Ratio: 0.5}} {
		a := mustAccount(t, c)
		var granted, news, earned atomic.Int64
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 10_000 {
					now := time.Duration(i) * time.Millisecond
					a.Start(now)
					success := (i+g)%8 != 0
					if !success {
						switch g := a.Withdraw(now, Transient, never); {
						case g.OK:
							granted.Add(1)
						case g.Exhausted:
							news.Add(1)
						}
					}
					a.Done(now, success, 0, 0)
					if success || c.Earn == Arrivals {
						earned.Add(1)
					}
				}
			})
		}
		wg.Wait()
		m := newAccountModel(c)
		limit := m.cfg.Stock + m.cfg.Ratio*float64(earned.Load())
		if got := float64(granted.Load()); got > limit+1e-6 || got < 5000 {
			t.Errorf("%+v: %v retries, want at most %v, and many", c, got, limit)
		}
		if news.Load() > granted.Load()+1 {
			t.Errorf("%+v: %d refusals were news after %d grants", c, news.Load(), granted.Load())
		}
	}
}

// What a retry has cost is put back once, wherever it was paid from, and never above what fits.
func TestRefund(t *testing.T) {
	for name, c := range map[string]Config{"account": {Stock: 3}, "ratio": {Window: time.Minute, Stock: 3}} {
		b := must.Have(New(c))
		for range 100 {
			b.Done(0, true, 0, 0)
		}
		before := b.Balance(0)
		var paid []Grant
		for {
			g := b.Withdraw(0, Transient, nil)
			if !g.OK {
				break
			}
			paid = append(paid, g)
		}
		if len(paid) < 3 {
			t.Fatalf("%s: %d retries", name, len(paid))
		}
		for _, g := range paid {
			b.(Refundable).Refund(0, g.Receipt)
		}
		check.Equal(t, b.Balance(0), before, "%s: tokens", name)
	}
	b := must.Have(NewBucket(Config{Stock: 3}))
	g := b.Withdraw(0, Transient, nil)
	b.Refund(0, g.Receipt)
	b.Refund(0, g.Receipt)
	check.Equal(t, b.Balance(0), 3, "tokens in a bucket of 3")
}
