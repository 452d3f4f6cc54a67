//go:build servers && unix

package lullredis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/must"
)

// Fifty instances of a fleet, each with a client and a Fleet of its own, call something
// at which one call in five succeeds, and one of them calls much more than the others.
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
	var calls, successes, retries atomic.Int64
	var mu sync.Mutex
	worst, began := -1e9, time.Now() // the most by which retries were beyond ratio × successes + floor × time
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var fleets []*Fleet
	var budgets []*FleetBudget
	var wg sync.WaitGroup
	for i := range instances {
		f := must.Have(Open(s.client(t), FleetConfig{SyncEvery: every, SyncTimeout: every}))
		b := mustBudget(t, f, "payments", BudgetConfig{Floor: floor, Pool: pool})
		policy := patient
		policy.Budget = budget.Config{}
		d := newDependency(t, policy, lull.WithBudget(func() budget.Budget { return b }))
		fleets, budgets = append(fleets, f), append(budgets, b)
		rate := 8.0
		if i == 0 {
			rate = 200
		}
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 7))
			for ctx.Err() == nil {
				time.Sleep(time.Duration(rnd.ExpFloat64() / rate * float64(time.Second)))
				calls.Add(1)
				good, attempt := rnd.IntN(5) == 0, 0
				lull.Run(ctx, d, func(context.Context) error {
					// Every retry is held against the bound as it is made. The order of reading errs
					// on the strict side for successes, which only grow.
					if attempt++; attempt > 1 {
						n := float64(retries.Add(1))
						over := n - 0.1*float64(successes.Load()) - floor*time.Since(began).Seconds()
						mu.Lock()
						defer mu.Unlock()
						worst = max(worst, over)
					} else if good {
						successes.Add(1) // before it earns
						return nil
					}
					return lull.Transient(errors.New("no"))
				})
			}
		})
	}
	var c0, s0, r0 int64
	lasts := func(name string, want FleetMode) {
		t.Helper()
		time.Sleep(phase)
		await(t, fmt.Sprint(name, ": ", want), func() bool {
			n := 0
			for _, b := range budgets {
				if b.Snapshot().Mode == want {
					n++
				}
			}
			return n >= instances*9/10
		})
		c, ok, r := calls.Load(), successes.Load(), retries.Load()
		t.Logf("%-9s calls %5d, retries %4d; ratio × successes + floor × time = %5.0f", name, c-c0, r-r0, 0.1*float64(ok-s0)+floor*phase.Seconds())
		c0, s0, r0 = c, ok, r
	}
	lasts("up", ModeInStep)
	await(t, "retries paid for", func() bool { return retries.Load() >= int64(pool/10) }) // virtual_test.go holds it to the floor
	for range 2 {
		must.Succeed(s.Process.Signal(syscall.SIGSTOP))
		lasts("stopped", ModeAlone)
		must.Succeed(s.Process.Signal(syscall.SIGCONT))
		lasts("back", ModeInStep)
	}
	stop()
	wg.Wait()
	if t.Logf("the bound was missed by %.1f at the closest, the pool of %v not counted", -worst, pool); worst > pool {
		t.Errorf("%.1f retries beyond ratio × successes + floor × time: want at most %v", worst, pool)
	}
	await(t, "all instances seen", func() bool { return budgets[0].Snapshot().Instances == instances })
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

// A server that stands still, forgets, has no memory, and is killed: nothing has to be restarted, and an empty Redis
// is an empty pool. What a fleet spends meanwhile is bounded in virtual_test.go.
func TestARedisThatDies(t *testing.T) {
	t.Parallel()
	s := needServer(t)
	f := must.Have(Open(s.client(t), FleetConfig{SyncEvery: 50 * time.Millisecond}))
	b := mustBudget(t, f, "a", BudgetConfig{Floor: 100})
	await(t, "in step", func() bool { return b.Snapshot().Mode == ModeInStep && b.Snapshot().Pool > 10 })
	s.Process.Signal(syscall.SIGSTOP)
	await(t, "alone beside a Redis that stands still", func() bool { return b.Snapshot().Mode == ModeAlone })
	s.Process.Signal(syscall.SIGCONT)
	await(t, "in step again", func() bool { return b.Snapshot().Mode == ModeInStep })
	c := s.client(t)
	must.Succeed(c.FlushAll(context.Background()).Err())
	must.Succeed(c.ScriptFlush(context.Background()).Err())
	await(t, "in step with an empty Redis", func() bool {
		return b.Snapshot().Err == nil && c.Exists(context.Background(), keys("lull", "a")[0]).Val() == 1
	})
	must.Succeed(c.ConfigSet(context.Background(), "maxmemory", "1").Err())
	await(t, "told that Redis has no memory", func() bool { return b.Snapshot().Err != nil && redis.HasErrorPrefix(b.Snapshot().Err, "OOM") })
	t.Log(b.Snapshot().Err)
	s.Process.Kill()
	await(t, "alone", func() bool { return b.Snapshot().Mode == ModeAlone })
	if err := f.Close(context.Background()); err == nil {
		t.Error("Close says that the tokens were handed back, to nobody")
	}
}

// A cluster of one: the keys of a dependency lie in one slot, those of several in
// several, and one pipeline brings them all.
func TestACluster(t *testing.T) {
	t.Parallel()
	s, ctx := oneNode(t), context.Background()
	admin := s.client(t)
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.addr}, ContextTimeoutEnabled: true})
	defer c.Close()
	f := must.Have(Open(c, FleetConfig{SyncEvery: 500 * time.Millisecond, SyncTimeout: 500 * time.Millisecond}))
	var all []*FleetBudget
	slots := map[int64]bool{}
	for i := range 20 {
		name := fmt.Sprint("dependency ", i)
		all = append(all, mustBudget(t, f, name, BudgetConfig{Floor: 100}))
		slots[admin.ClusterKeySlot(ctx, keys("lull", name)[0]).Val()] = true
	}
	if len(slots) < 10 {
		t.Errorf("20 dependencies lie in %d slots", len(slots))
	}
	for _, b := range all {
		await(t, "in step", func() bool { return b.Snapshot().Mode == ModeInStep && b.Snapshot().Err == nil })
	}
	must.Succeed(f.Close(ctx))
}

// Redis is frozen, cut off from all its clients, stopped in order, which saves what it has, and started again, while eight
// clients increment a key for each increment, so that one that was carried out twice shows. Half of the increments are pipelines
// with a read. None that was reported as done is lost, and those that are reported as failed were not made. While Redis is down
// no more is dialled than attempts are made, of MaxDials at a time.
//
// It listens on a socket of the file system: nobody else takes that while it is down, as a port may be.
func TestNoIncrementIsCarriedOutTwice(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "redis") // short: a path of a socket has some hundred bytes
	must.Succeed(err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket, bg := filepath.Join(dir, "s"), context.Background()
	s := needServer(t, "--dir", dir, "--unixsocket", socket)

	var dials, dialling, most atomic.Int64
	d := newDependency(t, lull.Policy{
		Attempts: 3, AttemptTimeout: 200 * time.Millisecond, Deadline: time.Second, Timeouts: lull.TimeoutsAlways, Budget: budget.Config{Stock: 50},
	})
	c := under(t, d, redis.Options{
		Network: "unix", Addr: socket,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			n := dialling.Add(1)
			defer dialling.Add(-1)
			for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	})

	var done, unknown, failed, attempts, next atomic.Int64
	var reported sync.Map // by key: whether it was done, or may have been
	ctx, stop := context.WithCancel(bg)
	defer stop()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				n := next.Add(1)
				key := fmt.Sprint("n", n)
				var err error
				if n%2 == 0 {
					err = c.Incr(bg, key).Err()
				} else {
					err = second(c.Pipelined(bg, func(p redis.Pipeliner) error { p.Incr(bg, key); p.Exists(bg, key); return nil }))
				}
				if e, ok := errors.AsType[*lull.Error](err); ok {
					attempts.Add(int64(e.Attempts))
				}
				switch {
				case err == nil:
					done.Add(1)
					reported.Store(key, true)
				case errors.Is(err, lull.ErrNotIdempotent):
					unknown.Add(1)
					reported.Store(key, false)
				default:
					failed.Add(1)
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	more := func(what string, of ...*atomic.Int64) {
		t.Helper()
		sum := func() (n int64) {
			for _, c := range of {
				n += c.Load()
			}
			return n
		}
		from := sum()
		await(t, what, func() bool { return sum() >= from+100 })
	}
	operator := bare(t, redis.Options{Addr: s.addr, ReadTimeout: -1})
	more("increments", &done)
	s.Process.Signal(syscall.SIGSTOP)
	more("frozen", &unknown, &failed)
	s.Process.Signal(syscall.SIGCONT)
	more("increments after the freeze", &done)
	for range 20 { // all connections are cut, between any two bytes
		operator.ClientKillByFilter(bg, "TYPE", "normal", "SKIPME", "yes")
		more("increments between the cuts", &done, &unknown, &failed)
	}
	more("increments after the cuts", &done)

	most.Store(0)
	from, made := dials.Load(), attempts.Load()
	operator.ShutdownSave(bg)
	await(t, "stopped", func() bool { _, err := os.Stat(socket); return err != nil })
	more("failures", &failed)
	dialled, made := dials.Load()-from, attempts.Load()-made
	const underWay = 8 * 3 // attempts of calls that have not ended
	if dialled == 0 || dialled > made+underWay || most.Load() > MaxDials {
		t.Errorf("while Redis is down: %d dials for %d attempts, %d of them at a time", dialled, made, most.Load())
	}
	again := exec.Command(s.Path, "--port", "0", "--save", "", "--appendonly", "no", "--dir", dir, "--unixsocket", socket, "--logfile", filepath.Join(dir, "log"))
	must.Succeed(again.Start())
	t.Cleanup(func() { again.Process.Kill(); again.Wait() })
	more("increments after the restart", &done)
	stop()
	wg.Wait()

	direct := bare(t, redis.Options{Network: "unix", Addr: socket})
	there := map[string]bool{}
	for _, key := range direct.Keys(bg, "n*").Val() {
		there[key] = true
		if n, err := direct.Get(bg, key).Int(); err != nil || n != 1 {
			t.Errorf("%s was incremented %d times (%v)", key, n, err)
		}
		if _, ok := reported.Load(key); !ok {
			t.Errorf("%s was incremented, and reported as failed", key)
		}
	}
	reported.Range(func(key, was any) bool {
		if was.(bool) && !there[key.(string)] {
			t.Errorf("%s was reported as incremented, and is not there", key)
		}
		return true
	})
	t.Logf("%d increments done, %d of unknown outcome, %d failed; %d keys", done.Load(), unknown.Load(), failed.Load(), len(there))
}
