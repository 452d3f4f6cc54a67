//go:build servers

package lullredis

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull"
)

// do has c carry out a command whose words are separated by spaces.
func do(c redis.UniversalClient, command string) error {
	return c.Do(context.Background(), words(command)[0]...).Err()
}

// The table of Classify, against the server: what it refuses with each code it has not carried out, and
// what may be sent again succeeds as soon as the reason is gone.
func TestWhatTheServerRefuses(t *testing.T) {
	t.Parallel()
	answers := func(c *redis.Client, code string) func() bool {
		return func() bool {
			err := do(c, "GET x")
			return code == "" && (err == nil || err == redis.Nil) || code != "" && redis.HasErrorPrefix(err, code+" ")
		}
	}
	config := func(lines ...string) func(*testing.T, *redis.Client, *redis.Client) {
		return func(t *testing.T, admin, _ *redis.Client) {
			for _, line := range lines {
				must(t, do(admin, line))
			}
		}
	}
	// script runs one that does not end.
	script := func(first string) func(*testing.T, *redis.Client, *redis.Client) {
		return func(t *testing.T, admin, c *redis.Client) {
			must(t, do(admin, "CONFIG SET busy-reply-threshold 1"))
			go admin.Eval(context.Background(), first+" while true do end", []string{"n"})
			await(t, "busy", answers(c, "BUSY"))
		}
	}
	for code, x := range map[string]struct {
		server  []string
		provoke func(t *testing.T, admin, c *redis.Client)
		command string // empty: INCR n
		lift    func(t *testing.T, admin, c *redis.Client)
		again   bool
		lost    bool // the server can't be asked any more
	}{
		"LOADING": {
			server: []string{"--enable-debug-command", "yes", "--key-load-delay", "10000", "--loading-process-events-interval-bytes", "1024"},
			provoke: func(t *testing.T, admin, c *redis.Client) {
				must(t, do(admin, "DEBUG POPULATE 3000"))
				go do(admin, "DEBUG RELOAD")
				await(t, "loading", answers(c, "LOADING"))
			},
			lift: func(t *testing.T, admin, c *redis.Client) {
				must(t, do(admin, "CONFIG SET key-load-delay 0"))
				await(t, "loaded", answers(c, ""))
			},
			again: true,
		},
		"BUSY": {
			provoke: script(""),
			lift: func(t *testing.T, admin, c *redis.Client) {
				must(t, do(admin, "SCRIPT KILL"))
				await(t, "free", answers(c, ""))
			},
			again: true,
		},
		"MASTERDOWN": {
			provoke: config("CONFIG SET replica-read-only no", "CONFIG SET replica-serve-stale-data no", "REPLICAOF 127.0.0.1 1"),
			lift:    config("REPLICAOF NO ONE"), again: true,
		},
		"CLUSTERDOWN": {
			server: []string{"--cluster-enabled", "yes"},
			lift: func(t *testing.T, admin, c *redis.Client) {
				must(t, do(admin, "CLUSTER ADDSLOTSRANGE 0 16383"))
				await(t, "up", answers(c, ""))
			},
			again: true,
		},
		"READONLY":   {provoke: config("REPLICAOF 127.0.0.1 1"), lift: config("REPLICAOF NO ONE"), again: true},
		"NOREPLICAS": {provoke: config("CONFIG SET min-replicas-to-write 1"), lift: config("CONFIG SET min-replicas-to-write 0"), again: true},
		"OOM":        {provoke: config("CONFIG SET maxmemory 1"), lift: config("CONFIG SET maxmemory 0")},
		"MISCONF": {
			server: []string{"--enable-protected-configs", "yes"},
			provoke: func(t *testing.T, admin, _ *redis.Client) {
				dir := filepath.Join(t.TempDir(), "gone")
				must(t, os.Mkdir(dir, 0o700))
				must(t, do(admin, "CONFIG SET dir "+dir))
				must(t, admin.ConfigSet(t.Context(), "save", "3600 1").Err())
				must(t, os.Remove(dir))
				do(admin, "BGSAVE")
				await(t, "failed to save", func() bool {
					return strings.Contains(admin.Info(t.Context(), "persistence").Val(), "rdb_last_bgsave_status:err")
				})
			},
			lift: config("CONFIG SET stop-writes-on-bgsave-error no"),
		},
		"NOSCRIPT":   {command: "EVALSHA 0000000000000000000000000000000000000000 1 n"},
		"UNKILLABLE": {provoke: script("redis.call('incr', KEYS[1])"), command: "SCRIPT KILL", lost: true},
		"NOPERM":     {provoke: config("ACL SETUSER default -incr"), lift: config("ACL SETUSER default +incr")},
		"NOAUTH":     {provoke: config("CONFIG SET requirepass secret")},
		"WRONGTYPE":  {provoke: config("SADD s 1"), command: "INCR s"},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			s := needServer(t, x.server...)
			admin := bare(t, redis.Options{Addr: s.addr, ReadTimeout: -1})
			must(t, admin.Ping(t.Context()).Err())
			c := bare(t, redis.Options{Addr: s.addr})
			if x.provoke != nil {
				x.provoke(t, admin, c)
			}
			command := cmp.Or(x.command, "INCR n")
			err := do(c, command)
			if !redis.HasErrorPrefix(err, code+" ") {
				t.Fatalf("the server answered %v, not %s", err, code)
			}
			kind := lull.KindPermanent
			switch {
			case x.again:
				kind = lull.KindTransient
			case code == "NOPERM" || code == "NOAUTH":
				kind = lull.KindUnclassified
			}
			if v := Classify(err); v.Kind != kind || v.NeverSent != x.again {
				t.Errorf("%v: %+v, want %v, never sent %v", err, v, kind, x.again)
			}
			lifted := false
			lift := func() {
				if lifted = true; x.lift != nil {
					x.lift(t, admin, c)
				}
			}
			err = do(under(t, newDependency(t, patient, lull.WithObserver(onRetry(lift))), redis.Options{Addr: s.addr}), command)
			if x.again && err != nil || !x.again && (!redis.HasErrorPrefix(err, code+" ") || errors.As(err, new(*lull.Error))) || lifted != x.again {
				t.Errorf("under a policy: %v", err)
			}
			if x.lost {
				return
			}
			if !x.again {
				lift()
			}
			want := 0
			if x.again {
				want = 1
			}
			if n, err := admin.Get(context.Background(), "n").Int(); n != want || err != nil && err != redis.Nil {
				t.Errorf("carried out %d times, want %d (%v)", n, want, err)
			}
		})
	}
}
