package requeue_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/integrations/requeue"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
)

// TypedRateLimiter is the interface of k8s.io/client-go/util/workqueue.
type TypedRateLimiter[T comparable] interface {
	When(item T) time.Duration
	Forget(item T)
	NumRequeues(item T) int
}

var _ TypedRateLimiter[string] = (*requeue.RateLimiter[string])(nil)

// alone is the policy without what items share.
var alone = func() lull.Policy {
	p := requeue.Policy()
	p.Budget, p.Breaker = budget.Config{Unlimited: true}, breaker.Config{Off: true}
	return p
}()

func newLimiter(t testing.TB, p lull.Policy) (*requeue.RateLimiter[int], *lull.Dependency) {
	t.Helper()
	d := must.Have(lull.NewDependency("cloud", p, lull.WithRand(seed.Source(t))))
	l := must.Have(requeue.New[int](d))
	return l, d
}

func TestWhatIsRefused(t *testing.T) {
	if l, err := requeue.New[int](nil); l != nil || err == nil || !strings.Contains(err.Error(), "the dependency is nil") {
		t.Errorf("%v", err)
	}
	d := must.Have(lull.NewDependency("cloud", lull.Policy{Attempts: 1}))
	if l, err := requeue.New[int](d); l != nil || err == nil || !strings.Contains(err.Error(), "Policy.Attempts of cloud is 1") {
		t.Errorf("%v", err)
	}
}

// The wait grows with the failures of the item, has jitter, and never ends; each item is counted for
// itself.
func TestAnItemAlone(t *testing.T) {
	l, d := newLimiter(t, alone)
	waits := d.Policy().WithDefaults().Backoff
	for n := 1; n <= 100; n++ {
		got := l.When(1)
		if most := waits.Max(min(n, 19)); got < 0 || got > most {
			t.Errorf("failure %d waits %v, more than %v", n, got, most)
		}
		if l.NumRequeues(1) != n || l.NumRequeues(2) != 0 {
			t.Errorf("%d and %d requeues after %d failures of the first", l.NumRequeues(1), l.NumRequeues(2), n)
		}
	}
	l.Forget(1)
	if got := l.When(1); l.NumRequeues(1) != 1 || got > waits.Max(1) {
		t.Errorf("after it was forgotten it waits %v", got)
	}
	// Items that failed together do not come back together.
	distinct := map[time.Duration]bool{}
	var last time.Duration
	for item := range 1000 {
		for range 10 {
			last = l.When(item + 10)
		}
		distinct[last/(10*time.Millisecond)] = true
	}
	if len(distinct) < 100 { // of 256 parts of 10 ms in which they can be
		t.Errorf("1000 items come back in %d parts of 10 ms", len(distinct))
	}
}

// While all items fail, the budget makes them wait longer than each for itself would.
func TestTheBudgetIsOverAllItems(t *testing.T) {
	sum := func(p lull.Policy) (all time.Duration) {
		l, _ := newLimiter(t, p)
		for item := range 1000 {
			all += l.When(item)
		}
		return all
	}
	p := requeue.Policy()
	p.Breaker.Off = true
	with, without := sum(p), sum(alone)
	if with < 900*500*time.Millisecond || without > 1000*5*time.Millisecond {
		t.Errorf("%v with a budget, %v without", with, without)
	}
	// What has succeeded pays.
	l, _ := newLimiter(t, p)
	for item := range 100 {
		l.Forget(item)
	}
	paid := 0
	for item := range 100 {
		if l.When(item) <= 5*time.Millisecond {
			paid++
		}
	}
	if paid < 10 || paid > 30 {
		t.Errorf("%d of 100 retries were paid for by 100 successes", paid)
	}
}

// While the circuit is open nobody comes back. Afterwards not all come at once.
func TestTheBreakerIsOverAllItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, d := newLimiter(t, requeue.Policy())
		for item := range 200 {
			time.Sleep(20 * time.Millisecond)
			l.When(item)
		}
		opened := d.Breaker().RetryAt(d.Now()) - d.Now()
		if d.State().CircuitClosed(d.Now()) || opened <= 0 {
			t.Fatalf("the circuit is not open after 200 failures in 4 s")
		}
		first, last := time.Duration(engine.Never), time.Duration(0)
		for item := range 200 {
			for range 5 {
				l.When(item)
			}
			got := l.When(item)
			first, last = min(first, got), max(last, got)
		}
		if first < opened || last-first < 50*time.Millisecond {
			t.Errorf("items come back after %v to %v, while the circuit is open for %v", first, last, opened)
		}
		// A success of a probe closes it.
		time.Sleep(opened)
		for item := range 100 {
			l.Forget(item)
			time.Sleep(10 * time.Millisecond)
		}
		if !d.State().CircuitClosed(d.Now()) {
			t.Error("the circuit is still open after successes")
		}
	})
}

// What the dependency limits for its calls is no limit here.
func TestALimitOfCallsIsNone(t *testing.T) {
	p := alone
	p.Limit.InFlight = 1
	l, d := newLimiter(t, p)
	d.Limiter().TryAcquire()
	for range 3 {
		if got := l.When(1); got > time.Second {
			t.Errorf("it waits %v", got)
		}
	}
	l.Forget(1)
}

func TestConcurrently(t *testing.T) {
	l, _ := newLimiter(t, requeue.Policy())
	var wg sync.WaitGroup
	for item := range 8 {
		wg.Go(func() {
			for range 1000 {
				l.When(item)
				l.NumRequeues(item)
				l.Forget(item)
			}
		})
	}
	wg.Wait()
	for item := range 8 {
		if l.NumRequeues(item) != 0 {
			t.Error(item, l.NumRequeues(item))
		}
	}
}

func BenchmarkLimiter(b *testing.B) {
	l, _ := newLimiter(b, requeue.Policy())
	b.ReportAllocs()
	for b.Loop() {
		l.When(1)
		l.Forget(1)
	}
}
