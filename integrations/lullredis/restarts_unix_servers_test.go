//go:build servers && unix

package lullredis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
)

// Redis is frozen, cut off from all its clients, and killed, while eight clients increment a key for
// each increment, so that one that was carried out twice shows. Half of the increments are pipelines
// with a read.
func TestNoIncrementIsCarriedOutTwice(t *testing.T) {
	t.Parallel()
	s := needServer(t)
	c, _ := hooked(t, s.addr, lull.Policy{
		Attempts: 3, AttemptTimeout: 200 * time.Millisecond, Deadline: time.Second, Timeouts: lull.TimeoutsAlways, Budget: budget.Config{Stock: 50},
	})
	direct := s.client(t)
	var done, unknown, failed, next atomic.Int64
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				n := next.Add(1)
				var err error
				if key := fmt.Sprint("n", n); n%2 == 0 {
					err = c.Incr(context.Background(), key).Err()
				} else {
					_, err = c.Pipelined(context.Background(), func(p redis.Pipeliner) error {
						p.Incr(context.Background(), key)
						p.Exists(context.Background(), key)
						return nil
					})
				}
				switch {
				case err == nil:
					done.Add(1)
				case errors.Is(err, lull.ErrNotIdempotent):
					unknown.Add(1)
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
	check := func(when string) {
		t.Helper()
		keys := direct.Keys(context.Background(), "n*").Val()
		twice := 0
		for _, key := range keys {
			if n, err := direct.Get(context.Background(), key).Int(); err != nil || n > 1 {
				twice++
			}
		}
		t.Logf("%s: %d increments done, %d of unknown outcome, %d failed; %d keys, %d of them twice", when, done.Load(), unknown.Load(), failed.Load(), len(keys), twice)
		if twice > 0 || len(keys) < 100 {
			t.Errorf("%s: %d of %d increments were carried out twice", when, twice, len(keys))
		}
	}
	more("increments", &done)
	s.Process.Signal(syscall.SIGSTOP)
	more("frozen", &unknown, &failed)
	s.Process.Signal(syscall.SIGCONT)
	more("increments after the freeze", &done)
	for range 20 { // all connections are cut, between any two bytes
		direct.ClientKillByFilter(context.Background(), "TYPE", "normal", "SKIPME", "yes")
		more("increments between the cuts", &done, &unknown, &failed)
	}
	more("increments after the cuts", &done)
	stop()
	wg.Wait()
	check("frozen and cut")
	s.Process.Kill()
	before := done.Load() + unknown.Load()
	for range 100 {
		if err := c.Incr(context.Background(), "gone").Err(); err == nil {
			t.Fatal("an increment succeeded without Redis")
		} else if errors.Is(err, lull.ErrNotIdempotent) {
			unknown.Add(1) // sent on a connection that was still there
		}
	}
	if n := done.Load() + unknown.Load() - before; n > 20 {
		t.Errorf("%d increments are of unknown outcome without a server to send them to", n)
	}
}
