package budget

import (
	"math"
	"math/big"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/seed"
)

func mustBucket(t testing.TB, c Config) *Bucket {
	t.Helper()
	b, err := NewBucket(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestABucketStartsFullAndNeverHoldsMore(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   float64
	}{{Config{}, 2}, {Config{Stock: 1}, 1}, {Config{Stock: 2.5, Earn: Arrivals}, 2.5}, {Config{Stock: MaxStock}, MaxStock}} {
		b := mustBucket(t, c.config)
		if got := b.Tokens(); got != c.want {
			t.Errorf("%+v: starts with %v tokens, want %v", c.config, got, c.want)
		}
		earnMany(b, 0, 100)
		if got := b.Tokens(); got != c.want {
			t.Errorf("%+v: %v tokens after 100 calls, want %v", c.config, got, c.want)
		}
		if got := b.Balance(0); got != math.Floor(c.want) {
			t.Errorf("%+v: balance %v, want %v", c.config, got, math.Floor(c.want))
		}
	}
}

// A bucket has no clock: what was earned is there a day later, and a process
// that was silent has neither gained nor lost.
func TestABucketKeepsWhatItHas(t *testing.T) {
	b := mustBucket(t, Config{Stock: 2})
	var now time.Duration
	for _, step := range []struct {
		earn int
		want bool
	}{{0, true}, {0, true}, {0, false}, {9, false}, {1, true}, {0, false}} {
		now += 24 * time.Hour
		earnMany(b, now, step.earn)
		now += 24 * time.Hour
		if got := b.Withdraw(now, Transient, never).OK; got != step.want {
			t.Errorf("at %v, after %d more successes: granted %v, want %v", now, step.earn, got, step.want)
		}
	}
}

// Less than a token pays for nothing, and is not lost: it adds up.
func TestABucketRoundsNothing(t *testing.T) {
	b := mustBucket(t, Config{Stock: 2, Ratio: 0.33333})
	b.Withdraw(0, Transient, never)
	b.Withdraw(0, Transient, never)
	granted := 0
	for range 300_000 {
		b.End(0, true, 0, 0)
		if b.Withdraw(0, Transient, never).OK {
			granted++
		}
	}
	if granted != 99_999 {
		t.Errorf("%d retries for 300,000 successes at 0.33333, want 99,999", granted)
	}
	if got := b.Tokens(); got != 0 {
		t.Errorf("%v tokens left, want 0", got)
	}
}

func TestWhatFillsABucket(t *testing.T) {
	for _, c := range []struct {
		earn               Earn
		begun, failed, won float64 // tokens after one call each
	}{
		{Successes, 0, 0, 0.25},
		{Arrivals, 0.25, 0.25, 0.25},
	} {
		b := mustBucket(t, Config{Stock: 1, Ratio: 0.25, Earn: c.earn})
		check := func(when string, want float64) {
			t.Helper()
			if got := b.Tokens(); got != want {
				t.Errorf("earned by %v, %s: %v tokens, want %v", c.earn, when, got, want)
			}
		}
		b.Withdraw(0, Transient, never)
		check("spent", 0)
		b.Begin(0)
		check("a call begun", c.begun)
		b.Failed(0)
		b.Settle(0, 1)
		b.End(0, false, 1, 1)
		check("and failed", c.failed)
		b.End(0, true, 1, 1)
		check("one succeeded", c.won)
	}
}

// One refusal in a row of refusals is news. What is earned meanwhile does not
// make the next one news; a retry that was paid does.
func TestABucketMarksTheEdge(t *testing.T) {
	b := mustBucket(t, Config{Stock: 2, Ratio: 0.5})
	want := func(g Grant) {
		t.Helper()
		if got := b.Withdraw(0, RateLimited, never); got != g {
			t.Errorf("%+v, want %+v", got, g)
		}
	}
	paid, news, known := Grant{OK: true, Receipt: 1}, Grant{Exhausted: true}, Grant{}
	want(paid)
	want(paid)
	want(news)
	want(known)
	b.End(0, true, 0, 0)
	want(known)
	b.End(0, true, 0, 0)
	want(paid)
	want(news)
	earnMany(b, 0, 100) // full again, the refusal unforgotten
	if got := b.Tokens(); got != 2 {
		t.Errorf("%v tokens, want 2", got)
	}
	want(paid)
	want(paid)
	want(news)
}

func TestAnUnlimitedBucket(t *testing.T) {
	b := mustBucket(t, Config{Unlimited: true})
	for range 100 {
		if g := b.Withdraw(0, Transient, never); g != (Grant{OK: true}) {
			t.Fatalf("%+v", g)
		}
	}
	if !math.IsInf(b.Balance(0), 1) || !math.IsInf(b.Tokens(), 1) {
		t.Errorf("balance %v, %v tokens, want +Inf", b.Balance(0), b.Tokens())
	}
}

// A bucketModel is the rule of Bucket in rational numbers, which neither round
// nor overflow.
type bucketModel struct {
	size, earned, tokens *big.Rat
	empty                bool
}

func rat(x float64) *big.Rat {
	return big.NewRat(int64(math.Round(x*100_000)), 100_000)
}

func newBucketModel(c Config) *bucketModel {
	if c.Ratio == 0 {
		c.Ratio = 0.1
	}
	if c.Stock == 0 {
		c.Stock = 2
	}
	return &bucketModel{size: rat(c.Stock), earned: rat(c.Ratio), tokens: rat(c.Stock)}
}

func (m *bucketModel) earn() {
	if m.tokens.Add(m.tokens, m.earned).Cmp(m.size) > 0 {
		m.tokens.Set(m.size)
	}
}

func (m *bucketModel) withdraw() Grant {
	one := big.NewRat(1, 1)
	if m.tokens.Cmp(one) >= 0 {
		m.tokens.Sub(m.tokens, one)
		m.empty = false
		return Grant{OK: true, Receipt: 1}
	}
	news := !m.empty
	m.empty = true
	return Grant{Exhausted: news}
}

// Over a million operations Bucket answers exactly as the model does, and keeps
// rule 1: over any stretch, retries ≤ stock + ratio × what earned in it.
func TestBucketAgreesWithASlowModel(t *testing.T) {
	const opsPerRun = 500
	runs := seed.Runs(110)
	var total, grants, refusals int
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 0xb0c))
		cfg := Config{
			Ratio: pick(r, 0, 0.1, 0.1, 0.2, 0.33333, 1, 2.5, 0.00001, 4, 0.00012+r.Float64()),
			Earn:  pick(r, Successes, Successes, Arrivals),
			Stock: pick(r, 0, 1, 1, 2, 1.5, 10, 500, 1e6, 1+r.Float64()),
		}
		b, err := NewBucket(cfg)
		if err != nil {
			t.Fatalf("seed %d: %+v: %v", seed, cfg, err)
		}
		m := newBucketModel(cfg)
		failing := r.Float64()
		// The most that retries were ever ahead of what earned, of all stretches.
		var ahead, least, most big.Rat
		earn := func() {
			m.earn()
			ahead.Sub(&ahead, m.earned)
			if ahead.Cmp(&least) < 0 {
				least.Set(&ahead)
			}
		}
		for op := range opsPerRun {
			now := time.Duration(r.Int64())
			if r.IntN(8) == 0 {
				now = -now
			}
			switch k := r.Float64(); {
			case k < 0.1:
				want, _ := m.tokens.Float64()
				if got := b.Tokens(); math.Abs(got-want) > 1e-9 {
					t.Fatalf("seed %d, operation %d, %+v: %v tokens, want %v", seed, op, cfg, got, want)
				}
				if got, want := b.Balance(now), math.Floor(want+1e-9); got != want {
					t.Fatalf("seed %d, operation %d, %+v: Balance = %v, want %v", seed, op, cfg, got, want)
				}
			case k < 0.15:
				b.Failed(now)
				b.Settle(now, Receipt(r.Int64()))
			case k < 0.55 && r.Float64() < failing:
				got, want := b.Withdraw(now, Class(r.IntN(4)), never), m.withdraw()
				if got != want {
					t.Fatalf("seed %d, operation %d, %+v: Withdraw = %+v, want %+v", seed, op, cfg, got, want)
				}
				if !got.OK {
					refusals++
					break
				}
				grants++
				ahead.Add(&ahead, big.NewRat(1, 1))
				var over big.Rat
				if over.Sub(&ahead, &least).Cmp(&most) > 0 {
					most.Set(&over)
				}
			default:
				b.Begin(now)
				if cfg.Earn == Arrivals {
					earn()
				}
				success := r.Float64() >= failing
				b.End(now, success, Receipt(r.Int64N(2)), r.IntN(2))
				if success && cfg.Earn == Successes {
					earn()
				}
			}
			total++
		}
		if most.Cmp(m.size) > 0 {
			t.Fatalf("seed %d, %+v: retries got %v ahead of what earned, more than the stock", seed, cfg, most.FloatString(5))
		}
	}
	t.Logf("%d operations, %d retries granted, %d refused", total, grants, refusals)
	if total < 450*runs || grants < 30*runs || refusals < 4*runs {
		t.Errorf("too little happened to mean much: %d operations, %d granted, %d refused", total, grants, refusals)
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
		b := mustBucket(t, c.config)
		for b.Withdraw(0, Transient, never).OK {
		}
		var granted, news, earned atomic.Int64
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 20_000 {
					b.Begin(0)
					success := (i+g)%16 != 0
					if !success {
						switch g := b.Withdraw(0, Transient, never); {
						case g.OK:
							granted.Add(1)
						case g.Exhausted:
							news.Add(1)
						}
					}
					b.End(0, success, 0, 0)
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
	b := mustBucket(t, Config{Stock: MaxStock, Ratio: 0.6}) // never full again
	for b.Withdraw(0, Transient, never).OK {
	}
	var wg sync.WaitGroup
	var done atomic.Bool
	wg.Go(func() {
		for range deposits {
			b.End(0, true, 0, 0)
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
			}
		}
	}
	if got := newTerms(Config{Unlimited: true, Stock: 5, Earn: Arrivals}); got.full() != 0 || got.earned() != 0 || got.arrivals() || !got.unlimited() {
		t.Errorf("%d, %d, %v, %v", got.full(), got.earned(), got.arrivals(), got.unlimited())
	}
}
