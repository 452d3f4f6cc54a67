//go:build servers && unix

package lullredis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/seed"
)

// Redis is stopped in order, which saves what it has, and started again, while eight clients increment
// a key for each increment. No increment is carried out twice, none that was reported as done is
// lost, and those that are reported as failed were not made. While it is down no more is dialled than
// attempts are made, of MaxDials at a time.
//
// It listens on a socket of the file system: nobody else takes that while it is down, as a port may be.
func TestRedisIsStoppedAndStartedAgain(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "redis") // short: a path of a socket has some hundred bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	s := needServer(t, "--dir", dir, "--unixsocket", socket)

	var dials, dialling, most atomic.Int64
	options := redis.Options{
		Network: "unix", Addr: socket, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			n := dialling.Add(1)
			defer dialling.Add(-1)
			for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	}
	d, err := lull.NewDependency("redis", lull.Policy{}, lull.WithRand(seed.Source(t)))
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(&options)
	t.Cleanup(func() { c.Close() })
	if err := AddTo(c, d); err != nil {
		t.Fatal(err)
	}

	var done, unknown, failed, attempts, next atomic.Int64
	var reported sync.Map // by key: whether it was done, or may have been
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				key := fmt.Sprint("n", next.Add(1))
				err := c.Incr(context.Background(), key).Err()
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
	more := func(what string, of *atomic.Int64) {
		t.Helper()
		from := of.Load()
		await(t, what, func() bool { return of.Load() >= from+100 })
	}
	more("increments", &done)
	most.Store(0)
	from, made := dials.Load(), attempts.Load()
	operator := redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1})
	t.Cleanup(func() { operator.Close() })
	operator.ShutdownSave(context.Background())
	await(t, "stopped", func() bool { _, err := os.Stat(socket); return err != nil })
	more("failures", &failed)
	dialled, made := dials.Load()-from, attempts.Load()-made
	if dialled == 0 {
		t.Error("nothing was dialled while Redis was down")
	}
	t.Logf("while Redis is down: %d dials for %d attempts, %d of them at a time", dialled, made, most.Load())
	const underWay = 8 * 3 // attempts of calls that have not ended
	if dialled > made+underWay || most.Load() > MaxDials {
		t.Errorf("while Redis is down: %d dials for %d attempts, %d of them at a time", dialled, made, most.Load())
	}

	again := exec.Command(s.Path, "--port", "0", "--save", "", "--appendonly", "no", "--dir", dir, "--unixsocket", socket, "--logfile", filepath.Join(dir, "log"))
	if err := again.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { again.Process.Kill(); again.Wait() })
	more("increments after the restart", &done)
	stop()
	wg.Wait()

	direct := redis.NewClient(&redis.Options{Network: "unix", Addr: socket})
	t.Cleanup(func() { direct.Close() })
	keys := direct.Keys(context.Background(), "n*").Val()
	there := map[string]bool{}
	for _, key := range keys {
		there[key] = true
		if n, err := direct.Get(context.Background(), key).Int(); err != nil || n != 1 {
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
	t.Logf("%d increments done, %d of unknown outcome, %d failed; %d keys", done.Load(), unknown.Load(), failed.Load(), len(keys))
}
