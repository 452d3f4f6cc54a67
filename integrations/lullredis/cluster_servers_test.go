//go:build servers

package lullredis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/must"
)

// twoNodes starts a cluster of two. The slots of b and c are the first one's, that of a is the second one's.
func twoNodes(t *testing.T) (nodes [2]*redis.Client) {
	t.Helper()
	for i := range nodes {
		_, bus, _ := net.SplitHostPort(freeAddr(t))
		s := needServer(t, "--cluster-enabled", "yes", "--cluster-port", bus)
		nodes[i] = bare(t, redis.Options{Addr: s.addr})
		if i == 1 {
			host, port, _ := net.SplitHostPort(s.addr)
			must.Succeed(do(nodes[0], "CLUSTER MEET "+host+" "+port+" "+bus))
		}
		must.Succeed(do(nodes[i], []string{"CLUSTER ADDSLOTSRANGE 0 8191", "CLUSTER ADDSLOTSRANGE 8192 16383"}[i]))
	}
	for _, n := range nodes {
		await(t, "a cluster", func() bool {
			info := n.ClusterInfo(t.Context()).Val()
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:2") && strings.Contains(info, "cluster_slots_ok:16384")
		})
	}
	return nodes
}

// everywhere makes all nodes carry out a command.
func everywhere(t *testing.T, nodes [2]*redis.Client, commands ...string) {
	t.Helper()
	for _, command := range commands {
		for _, n := range nodes {
			must.Succeed(do(n, command))
		}
	}
}

// A cluster's client divides commands and pipelines, follows redirections, and repeats by itself what failed.
// Under a policy nothing is carried out twice there either.
func TestNothingIsCarriedOutTwiceInACluster(t *testing.T) {
	t.Parallel()
	const slotOfB = "3300"
	id := func(n *redis.Client) string { return n.ClusterMyID(context.Background()).Val() }
	moving := func(t *testing.T, nodes [2]*redis.Client) {
		must.Succeed(do(nodes[1], "CLUSTER SETSLOT "+slotOfB+" IMPORTING "+id(nodes[0])))
		must.Succeed(do(nodes[0], "CLUSTER SETSLOT "+slotOfB+" MIGRATING "+id(nodes[1])))
	}
	refuse := func(t *testing.T, nodes [2]*redis.Client) {
		must.Succeed(do(nodes[1], "CONFIG SET min-replicas-to-write 1"))
	}
	accept := func(t *testing.T, nodes [2]*redis.Client) {
		must.Succeed(do(nodes[1], "CONFIG SET min-replicas-to-write 0"))
	}
	nodes := twoNodes(t)
	for name, x := range map[string]struct {
		before string // carried out first, by each key's own node
		set    func(*testing.T, [2]*redis.Client)
		cmds   string
		pipe   bool
		tx     bool
		divide bool // the client divides commands between the nodes
		cut    bool // the first connection that carries an answer breaks
		lift   func(*testing.T, [2]*redis.Client)
		calls  string // incr=1,0: how often each node has carried a command out
		reason error
	}{
		"a counter, broken":            {cmds: "INCR b", cut: true, calls: "incr=1,0", reason: lull.ErrNotIdempotent},
		"a read, broken":               {cmds: "GET b", cut: true, calls: "get=2,0"},
		"a pipeline, broken":           {cmds: "INCR b;INCR c", pipe: true, cut: true, calls: "incr=2,0", reason: lull.ErrNotIdempotent},
		"a pipeline of SETs, broken":   {cmds: "SET b 1;SET c 1", pipe: true, cut: true, calls: "set=4,0"},
		"a transaction, broken":        {cmds: "INCR b;INCR {b}2", tx: true, cut: true, calls: "incr=2,0", reason: lull.ErrNotIdempotent},
		"a pipeline, its first failed": {cmds: "EVAL $raises 1 b;INCR c", pipe: true, calls: "incr=2,0 eval=1,0"},
		"a script that failed":         {cmds: "EVAL $raises 1 b", calls: "eval=1,0"},
		"a list that waits, broken":    {before: "RPUSH b 1 2", cmds: "BLPOP b 1", cut: true, calls: "blpop=1,0"},

		"one node refuses":               {set: refuse, cmds: "INCR b;INCR a", pipe: true, lift: accept, calls: "incr=1,1"},
		"one node refuses, then another": {set: refuse, cmds: "INCR a;INCR b", pipe: true, calls: "incr=1,0", reason: lull.ErrNotIdempotent},
		"one node refuses its part":      {divide: true, set: refuse, cmds: "FLUSHALL", calls: "flushall=1,0", reason: lull.ErrNotIdempotent},
		"a node refuses":                 {set: refuse, cmds: "INCR a", lift: accept, calls: "incr=0,1"},

		"a slot that moves":         {set: moving, cmds: "INCR b", calls: "incr=0,1"},
		"a slot that moves, broken": {set: moving, cmds: "INCR b", cut: true, calls: "incr=0,1", reason: lull.ErrNotIdempotent},
		"a slot that moves, piped":  {set: moving, cmds: "INCR b;INCR c", pipe: true, calls: "incr=1,1"},
		"a slot that has moved": {set: func(t *testing.T, nodes [2]*redis.Client) {
			everywhere(t, nodes, "CLUSTER SETSLOT "+slotOfB+" NODE "+id(nodes[1]))
		}, cmds: "INCR c;INCR b;INCR c", pipe: true, calls: "incr=2,1"},
		"half of the keys have moved": {before: "SADD {b}1 x", set: moving, cmds: "SUNIONSTORE {b}3 {b}1 {b}2", lift: func(t *testing.T, nodes [2]*redis.Client) {
			everywhere(t, nodes, "CLUSTER SETSLOT "+slotOfB+" STABLE")
		}, calls: "sunionstore=1,0"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			everywhere(t, nodes, "CONFIG SET min-replicas-to-write 0", "FLUSHALL", "CLUSTER SETSLOT "+slotOfB+" STABLE", "CLUSTER SETSLOT "+slotOfB+" NODE "+id(nodes[0]))
			var cut cutter
			if x.set != nil { // the client asks for the slots in between: that is no answer to cut off
				cut.all = nodes[1].Options().Addr
			}
			d := newDependency(t, patient, lull.WithObserver(onRetry(func() {
				if x.lift != nil {
					x.lift(t, nodes)
				}
			})))
			c := redis.NewClusterClient(&redis.ClusterOptions{
				Addrs: []string{nodes[0].Options().Addr}, Dialer: cut.dial, DialerRetries: 1, ContextTimeoutEnabled: true, Protocol: 2,
			})
			t.Cleanup(func() { c.Close() })
			must.Succeed(AddTo(c, d))
			if x.divide {
				c.SetCommandInfoResolver(c.NewDynamicResolver())
			}
			for _, key := range []string{"a", "b"} { // both nodes have connections, for commands and for pipelines
				must.Succeed(c.StrLen(ctx, key).Err())
				must.Have(c.Pipelined(ctx, func(p redis.Pipeliner) error { p.StrLen(ctx, key); return nil }))
			}
			if x.before != "" {
				must.Succeed(do(nodes[0], x.before))
			}
			if x.set != nil {
				x.set(t, nodes)
			}
			everywhere(t, nodes, "CONFIG RESETSTAT")
			cut.armed.Store(x.cut)
			var err error
			switch {
			case x.pipe || x.tx:
				p := c.Pipeline()
				if x.tx {
					p = c.TxPipeline()
				}
				for _, args := range words(x.cmds) {
					p.Do(ctx, args...)
				}
				_, err = p.Exec(ctx)
			case strings.HasPrefix(x.cmds, "BLPOP"):
				err = c.BLPop(ctx, 1e9, "b").Err()
			case strings.HasPrefix(x.cmds, "FLUSHALL"):
				err = c.FlushAll(ctx).Err()
			default:
				err = do(c, x.cmds)
			}
			if x.reason != nil && !errors.Is(err, x.reason) || x.reason == nil && errors.As(err, new(*lull.Error)) {
				t.Errorf("%v, want %v", err, x.reason)
			}
			for _, want := range strings.Fields(x.calls) {
				var least [2]int
				command, calls, _ := strings.Cut(want, "=")
				fmt.Sscanf(calls, "%d,%d", &least[0], &least[1])
				for i, n := range nodes {
					await(t, want, func() bool { return callsOf(n, command) >= least[i] }) // its client may not have waited for it
					if got := callsOf(n, command); got != least[i] {
						t.Errorf("node %d has carried out %s %d times, want %s", i, command, got, want)
					}
				}
			}
		})
	}
}

// callsOf returns how often a server has carried a command out since CONFIG RESETSTAT.
func callsOf(n *redis.Client, command string) (calls int) {
	_, at, ok := strings.Cut(n.Info(context.Background(), "commandstats").Val(), "cmdstat_"+command+":calls=")
	if ok {
		fmt.Sscan(strings.NewReplacer(",", " ").Replace(at), &calls)
	}
	return calls
}

// A ring's client divides pipelines and transactions between servers, one of which is not there.
func TestNothingIsCarriedOutTwiceInARing(t *testing.T) {
	t.Parallel()
	gone := freeAddr(t)
	for name, x := range map[string]struct {
		cmds      string // there and gone are keys of the server that is there, and of the other
		tx        bool
		there     string
		attempts  int
		reason    error
		untouched bool
	}{
		"gone first":                {cmds: "INCR gone;INCR there", there: "1", attempts: 1, reason: lull.ErrNotIdempotent},
		"gone last":                 {cmds: "INCR there;INCR gone", there: "1", attempts: 3, reason: lull.ErrAttemptsExhausted},
		"all gone":                  {cmds: "INCR gone;LPUSH gone 1", attempts: 3, reason: lull.ErrAttemptsExhausted, untouched: true},
		"a transaction":             {cmds: "INCR there;INCR gone", tx: true, there: "1", attempts: 1, reason: lull.ErrNotIdempotent},
		"a transaction, gone first": {cmds: "INCR gone;INCR there", tx: true, there: "1", attempts: 1, reason: lull.ErrNotIdempotent},
		"a transaction, all gone":   {cmds: "INCR gone;INCR gone", tx: true, attempts: 3, reason: lull.ErrAttemptsExhausted, untouched: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, ctx := needServer(t), t.Context()
			r := redis.NewRing(&redis.RingOptions{
				Addrs: map[string]string{"there": s.addr, "gone": gone}, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true, HeartbeatFrequency: time.Hour,
			})
			t.Cleanup(func() { r.Close() })
			must.Succeed(AddTo(r, newDependency(t, patient)))
			p := r.Pipeline()
			if x.tx {
				p = r.TxPipeline()
			}
			key := map[string]string{}
			for i := 0; len(key) < 2; i++ {
				c := must.Have(r.GetShardClientForKey(fmt.Sprint(i)))
				if c.Options().Addr == s.addr {
					key["there"] = fmt.Sprint(i)
				} else {
					key["gone"] = fmt.Sprint(i)
				}
			}
			for _, args := range words(x.cmds) {
				args[1] = key[args[1].(string)]
				p.Do(ctx, args...)
			}
			_, err := p.Exec(ctx)
			if e, ok := errors.AsType[*lull.Error](err); !ok || e.Attempts != x.attempts || !errors.Is(err, x.reason) || e.Verdict.NeverSent != x.untouched {
				t.Errorf("%v, want %d attempts, %v, untouched %v", err, x.attempts, x.reason, x.untouched)
			}
			if n, _ := s.client(t).Get(ctx, key["there"]).Result(); n != x.there {
				t.Errorf("carried out %q times, want %q", n, x.there)
			}
		})
	}
}

// A connection that breaks while it is greeted has carried nothing, nor has one that the server has no room for.
func TestAConnectionThatIsNotGreeted(t *testing.T) {
	t.Parallel()
	for name, pipe := range map[string]bool{"command": false, "pipeline": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, ctx := needServer(t), t.Context()
			admin := s.client(t)
			must.Succeed(admin.ConfigSet(ctx, "maxclients", "1").Err())
			d := newDependency(t, patient, lull.WithObserver(onRetry(func() {
				must.Succeed(admin.ConfigSet(ctx, "maxclients", "100").Err())
			})))
			c := under(t, d, redis.Options{Addr: s.addr})
			var err error
			if pipe {
				_, err = c.Pipelined(ctx, func(p redis.Pipeliner) error { p.Incr(ctx, "n"); p.Incr(ctx, "n"); return nil })
			} else {
				err = c.IncrBy(ctx, "n", 2).Err()
			}
			if n := admin.Get(ctx, "n").Val(); err != nil || n != "2" {
				t.Errorf("%v; the counter is %q", err, n)
			}
		})
	}
}

// An answer to the greeting is not that of the commands, but they have it.
func TestARefusedGreeting(t *testing.T) {
	t.Parallel()
	s, ctx := needServer(t), t.Context()
	c := under(t, newDependency(t, patient), redis.Options{Addr: s.addr, DB: 99})
	cmds, err := c.Pipelined(ctx, func(p redis.Pipeliner) error { p.Incr(ctx, "n"); p.Incr(ctx, "m"); return nil })
	for _, cmd := range cmds {
		if !redis.HasErrorPrefix(err, "DB index") || !errors.Is(cmd.Err(), err) {
			t.Errorf("%v: %v, want %v", cmd.Name(), cmd.Err(), err)
		}
	}
}

// One server of a ring refuses its connections. Its commands have that error, and the others their results.
func TestOneServerOfARingRefusesConnections(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]bool{"from the start": false, "added later": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			good, bad, ctx := needServer(t), needServer(t, "--databases", "1"), t.Context()
			addrs := map[string]string{"good": good.addr, "bad": bad.addr}
			first := addrs
			if later {
				first = map[string]string{"good": good.addr}
			}
			r := redis.NewRing(&redis.RingOptions{Addrs: first, DB: 1, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true, HeartbeatFrequency: time.Hour})
			t.Cleanup(func() { r.Close() })
			must.Succeed(AddTo(r, newDependency(t, patient)))
			r.SetAddrs(addrs)
			cmds, err := r.Pipelined(ctx, func(p redis.Pipeliner) error {
				for i := range 20 {
					p.Incr(ctx, fmt.Sprint(i))
				}
				return nil
			})
			there := 0
			for _, cmd := range cmds {
				switch n := cmd.(*redis.IntCmd); {
				case n.Err() == nil && n.Val() == 1:
					there++
				case !redis.HasErrorPrefix(n.Err(), "DB index"):
					t.Errorf("%v", n)
				}
			}
			if n := bare(t, redis.Options{Addr: good.addr, DB: 1}).DBSize(ctx).Val(); there == 0 || there == len(cmds) || n != int64(there) || !redis.HasErrorPrefix(err, "DB index") {
				t.Errorf("%v; %d of %d, %d keys", err, there, len(cmds), n)
			}
		})
	}
}
