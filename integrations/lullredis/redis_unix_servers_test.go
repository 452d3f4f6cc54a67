//go:build servers && unix

package lullredis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/seed"
)

// Fifty instances of a fleet, each with a client and a Fleet of its own, call something
// of which one call in five succeeds, and one of them calls much more than the others.
// The Redis between them is stopped with a signal, so that it holds its connections and
// answers nothing. Later it continues. At every moment of all three phases, counted from
// the start,
//
//	retries ≤ ratio × calls that succeeded + floor × time + pool
//
// It takes real time, since the server does. The bound does not depend on how long
// anything took.
func TestFiftyInstancesOfOneRedis(t *testing.T) {
	t.Parallel() // it waits, most of the time
	const (
		instances = 50
		floor     = 30.0
		pool      = 60.0
		phase     = 2500 * time.Millisecond
		every     = 200 * time.Millisecond
	)
	s := needServer(t)
	var calls, successes, retries, left atomic.Int64
	var began time.Time
	var worst struct {
		sync.Mutex
		over float64
	}
	worst.over = -1e9
	// Every retry is held against the bound as it is made. The order of reading errs
	// on the strict side for successes, which only grow.
	check := func() {
		n := float64(retries.Add(1))
		bound := 0.1*float64(successes.Load()) + floor*time.Since(began).Seconds()
		worst.Lock()
		worst.over = max(worst.over, n-bound)
		worst.Unlock()
	}

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var fleets []*Fleet
	var budgets []*Budget
	var wg sync.WaitGroup
	began = time.Now()
	for i := range instances {
		f, err := Open(s.client(t), FleetConfig{Every: every, Timeout: every})
		if err != nil {
			t.Fatal(err)
		}
		b := mustBudget(t, f, "payments", Config{Floor: floor, Pool: pool})
		d, err := lull.NewDependency("payments", lull.Policy{
			Attempts: 3, Backoff: backoff.Schedule{Kind: backoff.Constant, Base: time.Millisecond}, Breaker: breaker.Config{Off: true},
		}, lull.WithRand(seed.Source(t)), lull.WithBudget(func() budget.Budget { return b }))
		if err != nil {
			t.Fatal(err)
		}
		fleets, budgets = append(fleets, f), append(budgets, b)
		rate := 8.0
		if i == 0 {
			rate = 200
		}
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 7))
			for {
				select {
				case <-ctx.Done():
					return
				case <-time.After(time.Duration(rnd.ExpFloat64() / rate * float64(time.Second))):
				}
				good := rnd.IntN(5) == 0
				calls.Add(1)
				attempt := 0
				err := lull.Run(ctx, d, func(context.Context) error {
					if attempt++; attempt > 1 {
						check()
					}
					if good && attempt == 1 {
						successes.Add(1) // before it earns
						return nil
					}
					return lull.Transient(errors.New("no"))
				})
				if err != nil && !errors.Is(err, lull.ErrBudgetExhausted) {
					left.Add(1)
				}
			}
		})
	}
	modes := func() (n [3]int) {
		for _, b := range budgets {
			n[b.State().Mode]++
		}
		return n
	}
	var c0, s0, r0 int64
	report := func(name string, wantMode Mode) {
		t.Helper()
		m := modes()
		for patience := time.Now().Add(30 * time.Second); m[wantMode] < instances*9/10 && time.Now().Before(patience); m = modes() {
			time.Sleep(50 * time.Millisecond) // on a busy machine
		}
		c, ok, r := calls.Load(), successes.Load(), retries.Load()
		st := budgets[0].State()
		t.Logf("%-9s calls %5d, successes %4d, retries %4d; ratio × successes + floor × time = %5.0f; in step %d, alone %d; pool %.1f, instances %d, members %d",
			name, c-c0, ok-s0, r-r0, 0.1*float64(ok-s0)+floor*phase.Seconds(), m[InStep], m[Alone], st.Pool, st.Instances, st.Members)
		c0, s0, r0 = c, ok, r
		if m[wantMode] < instances*9/10 {
			t.Errorf("%s: %d of %d instances are %v", name, m[wantMode], instances, wantMode)
		}
	}
	time.Sleep(phase)
	report("up", InStep)
	await(t, "retries paid for", func() bool { return retries.Load() >= int64(pool/10) }) // virtual_test.go holds it to the floor
	for _, what := range []string{"stopped", "stopped again"} {
		if err := s.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(phase)
		report(what, Alone)
		s.Process.Signal(syscall.SIGCONT)
		time.Sleep(phase)
		report("back", InStep)
	}
	stop()
	wg.Wait()
	t.Logf("in all    calls %5d, successes %4d, retries %4d; the bound was missed by %.1f at the closest, the pool of %v not counted",
		calls.Load(), successes.Load(), retries.Load(), -worst.over, pool)
	if worst.over > pool {
		t.Errorf("%.1f retries beyond ratio × successes + floor × time: want at most %v", worst.over, pool)
	}
	await(t, "all instances seen", func() bool { return budgets[0].State().Instances == instances })
	unheard := int64(0) // on a busy machine an answer may take longer than Timeout
	for _, f := range fleets {
		if err := f.Close(context.Background()); errors.Is(err, context.DeadlineExceeded) && unheard < instances/2 {
			unheard++
		} else if err != nil {
			t.Error(err)
		}
	}
	c := s.client(t)
	if n := c.ZCard(context.Background(), keys("lull", "payments")[1]).Val(); n > unheard {
		t.Errorf("%d instances are left after all have gone, and only %d do not know whether they have", n, unheard)
	}
	if o := c.HGet(context.Background(), keys("lull", "payments")[0], "o").Val(); o != "0" && unheard == 0 {
		t.Errorf("%s tokens are held by nobody", o)
	}
}

// A server that is stopped, then killed, then another at the same port: nothing has to
// be restarted, and an empty Redis is an empty pool.
func TestARedisThatDies(t *testing.T) {
	t.Parallel()
	s := needServer(t)
	f, err := Open(s.client(t), FleetConfig{Every: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	b := mustBudget(t, f, "a", Config{Floor: 100})
	await(t, "in step", func() bool { return b.State().Mode == InStep && b.State().Pool > 10 })
	c := s.client(t)
	if err := c.FlushAll(context.Background()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.ScriptFlush(context.Background()).Err(); err != nil {
		t.Fatal(err)
	}
	await(t, "in step with an empty Redis", func() bool { st := b.State(); return st.Err == nil && st.Syncs > 0 && st.Syncs < 10 })
	if err := c.ConfigSet(context.Background(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	await(t, "told that Redis has no memory", func() bool { return b.State().Err != nil && redis.HasErrorPrefix(b.State().Err, "OOM") })
	t.Log(b.State().Err)
	s.Process.Kill()
	await(t, "alone", func() bool { return b.State().Mode == Alone })
	if err := f.Close(context.Background()); err == nil {
		t.Error("Close says that the tokens were handed back, to nobody")
	}
}

// A cluster of one: the keys of a dependency lie in one slot, those of several in
// several, and one pipeline brings them all.
func TestACluster(t *testing.T) {
	t.Parallel()
	s := needServer(t, "--cluster-enabled", "yes")
	ctx := context.Background()
	admin := s.client(t)
	if err := admin.ClusterAddSlotsRange(ctx, 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.addr}, ContextTimeoutEnabled: true})
	defer c.Close()
	f, err := Open(c, FleetConfig{Every: 500 * time.Millisecond, Timeout: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	var all []*Budget
	slots := map[int64]bool{}
	for i := range 20 {
		name := fmt.Sprint("dependency ", i)
		all = append(all, mustBudget(t, f, name, Config{Floor: 100}))
		slots[admin.ClusterKeySlot(ctx, keys("lull", name)[0]).Val()] = true
	}
	if len(slots) < 10 {
		t.Errorf("20 dependencies lie in %d slots", len(slots))
	}
	for _, b := range all {
		await(t, "in step", func() bool { return b.State().Mode == InStep && b.State().Err == nil })
	}
	if err := f.Close(ctx); err != nil {
		t.Error(err)
	}
}
