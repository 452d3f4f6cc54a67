//go:build servers

package lullredis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
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
				must.Succeed(do(admin, line))
			}
		}
	}
	// script runs one that does not end.
	script := func(first string) func(*testing.T, *redis.Client, *redis.Client) {
		return func(t *testing.T, admin, c *redis.Client) {
			must.Succeed(do(admin, "CONFIG SET busy-reply-threshold 1"))
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
				must.Succeed(do(admin, "DEBUG POPULATE 3000"))
				go do(admin, "DEBUG RELOAD")
				await(t, "loading", answers(c, "LOADING"))
			},
			lift: func(t *testing.T, admin, c *redis.Client) {
				must.Succeed(do(admin, "CONFIG SET key-load-delay 0"))
				await(t, "loaded", answers(c, ""))
			},
			again: true,
		},
		"BUSY": {
			provoke: script(""),
			lift: func(t *testing.T, admin, c *redis.Client) {
				must.Succeed(do(admin, "SCRIPT KILL"))
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
				must.Succeed(do(admin, "CLUSTER ADDSLOTSRANGE 0 16383"))
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
				must.Succeed(os.Mkdir(dir, 0o700))
				must.Succeed(do(admin, "CONFIG SET dir "+dir))
				must.Succeed(admin.ConfigSet(t.Context(), "save", "3600 1").Err())
				must.Succeed(os.Remove(dir))
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
			must.Succeed(admin.Ping(t.Context()).Err())
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

// timed is the script with its clock in the test's hands.
var timed = redis.NewScript(strings.Replace(syncScript, `local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]`, `local now = tonumber(ARGV[14])`, 1))

// The script and the model are two hands at the same rule, with Redis and with Valkey: random syncs of random
// instances, sensible and not, at times that mostly go on.
func TestTheScriptDoesWhatTheModelDoes(t *testing.T) {
	t.Parallel()
	if strings.Contains(timed.Hash(), script.Hash()) {
		t.Fatal("the clock of the script was not found")
	}
	eachProgram(t, func(t *testing.T, s *server) { compare(t, s.client(t)) })
}

func compare(t *testing.T, c redis.UniversalClient) {
	ctx := context.Background()
	var kinds [3]int
	var granted int64
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		m := newModel()
		key := keys("compare", fmt.Sprint(seed))
		tm := BudgetConfig{Floor: []float64{5, 0.3, 1000}[seed%3], Pool: []float64{50, 1, 7.5}[seed%3]}.ledgerSettings(time.Second)
		now := 1_700_000_000 * time.Second
		seqs := map[string]int64{}
		for step := range 400 {
			switch rnd.IntN(20) {
			case 0:
				now -= time.Duration(rnd.Int64N(int64(3 * time.Second)))
			case 1:
				now += time.Duration(rnd.Int64N(int64(11 * time.Minute)))
			case 2: // a gap
				now += 2*time.Second + time.Duration(rnd.Int64N(int64(5*time.Second)))
			default:
				now += time.Duration(rnd.Int64N(int64(400 * time.Millisecond)))
			}
			id := fmt.Sprint("i", rnd.IntN(6))
			switch rnd.IntN(10) {
			case 0: // again
			case 1:
				seqs[id] += rnd.Int64N(4) - 1
			default:
				seqs[id]++
			}
			r := request{
				seq: max(seqs[id], 1), held: rnd.Int64N(6), give: rnd.Int64N(4), want: rnd.Int64N(20),
				reserve: float64(rnd.IntN(2)) * tm.pool / 2, leave: rnd.IntN(30) == 0,
			}
			if rnd.IntN(200) == 0 {
				m = newModel()
				c.Del(ctx, key...)
			}
			if rnd.IntN(300) == 0 && len(m.records) > 0 { // one of the keys is evicted
				m = newModel()
				c.Del(ctx, key[1])
			}
			v := must.Have(timed.Run(ctx, c, key, append(r.args(id, tm), now.Microseconds())...).Result())
			got := must.Have(parseAnswer(v))
			want := m.sync(now, id, r, tm)
			if math.Abs(got.pool-want.pool) < 0.0011 { // doubles are added in another order
				got.pool = want.pool
			}
			if got != want {
				t.Fatalf("seed %d step %d: %s %+v\nscript %+v\nmodel  %+v", seed, step, id, r, got, want)
			}
			kinds[got.kind]++
			granted += got.grant
			h := must.Have(c.HMGet(ctx, key[0], "p", "o").Result())
			var p, o float64
			fmt.Sscan(fmt.Sprint(h...), &p, &o)
			fmt.Sscan(fmt.Sprint(h[0]), &p)
			fmt.Sscan(fmt.Sprint(h[1]), &o)
			if math.Abs(p-m.pool) > 1e-6 || int64(o) != m.out() || p+o > tm.pool*(1+1e-9) {
				t.Fatalf("seed %d step %d: pool %v held %v, the model has %v and %v", seed, step, p, o, m.pool, m.out())
			}
		}
	}
	if kinds[carriedOut] == 0 || kinds[unknown] == 0 || kinds[overtaken] == 0 || granted == 0 {
		t.Errorf("the test shows little: kinds %v, granted %d", kinds, granted)
	}
}

// Keys expire with the fleet, and both lie in one slot whatever the name.
func TestKeys(t *testing.T) {
	t.Parallel()
	c, ctx := oneNode(t).client(t), context.Background()
	tm := BudgetConfig{}.ledgerSettings(time.Second)
	for _, name := range []string{"payments", "}", "{", "{}", "a}b{c", "%7D", "käse\x00\xff", strings.Repeat("x", 300), "{a}:{b}"} {
		key := keys("lull", name)
		slots := []int64{c.ClusterKeySlot(ctx, key[0]).Val(), c.ClusterKeySlot(ctx, key[1]).Val()}
		check.Equal(t, slots[0], slots[1], "%q: slots", name)
		check.Equal(t, script.Run(ctx, c, key, request{seq: 1, want: 1}.args("i", tm)...).Err(), nil, "%q", name)
		for _, k := range key {
			if ttl := c.PTTL(ctx, k).Val(); ttl < 23*time.Hour || ttl > 24*time.Hour {
				t.Errorf("%q expires after %v", k, ttl)
			}
		}
	}
	seen := map[string]string{}
	for _, name := range []string{"{", "%7B", "%", "%25", "}", "%7D", "a"} {
		k := keys("", name)[0]
		if other, twice := seen[k]; twice {
			t.Errorf("%q and %q share %q", name, other, k)
		}
		seen[k] = name
	}
}

func BenchmarkScript(b *testing.B) {
	c := needServer(b).client(b)
	ctx := context.Background()
	tm := BudgetConfig{Floor: 5}.ledgerSettings(time.Second)
	key := keys("lull", "bench")
	for i := range 1000 {
		script.Run(ctx, c, key, request{seq: 1, want: 1}.args(fmt.Sprint("i", i), tm)...)
	}
	seq := int64(1)
	for b.Loop() { // a hundred at a time, so that it is the server which is measured
		seq++
		pipe := c.Pipeline()
		for i := range 100 {
			script.EvalSha(ctx, pipe, key, request{seq: seq, want: 1, held: 1}.args(fmt.Sprint("i", i), tm)...)
		}
		must.Have(pipe.Exec(ctx))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/sync")
}
