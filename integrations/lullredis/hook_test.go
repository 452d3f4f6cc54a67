package lullredis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/cutofftest"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
)

func TestAddToRefuses(t *testing.T) {
	d := newDependency(t, lull.Policy{})
	for want, x := range map[string]struct {
		c redis.UniversalClient
		d *lull.Dependency
	}{
		"set MaxRetries to -1 in its redis.RingOptions":      {redis.NewRing(&redis.RingOptions{ContextTimeoutEnabled: true}), d},
		"set DialerRetries to 1 in its redis.RingOptions":    {redis.NewRing(&redis.RingOptions{MaxRetries: -1, ContextTimeoutEnabled: true}), d},
		"set DialerRetries to 1 in its redis.ClusterOptions": {redis.NewClusterClient(&redis.ClusterOptions{ContextTimeoutEnabled: true}), d},
		"set ContextTimeoutEnabled in its redis.RingOptions": {redis.NewRing(&redis.RingOptions{MaxRetries: -1}), d},
		"set MaxRetries to -1 in its redis.Options":          {redis.NewClient(&redis.Options{ContextTimeoutEnabled: true}), d},
		"set MaxRetries to -1 in its redis.ClusterOptions":   {redis.NewClusterClient(&redis.ClusterOptions{ContextTimeoutEnabled: true, MaxRetries: 1}), d},
		"set DialerRetries to 1 in its redis.Options":        {redis.NewClient(&redis.Options{MaxRetries: -1, ContextTimeoutEnabled: true}), d},
		"set ContextTimeoutEnabled":                          {redis.NewClient(&redis.Options{MaxRetries: -1}), d},
		"the client is nil":                                  {nil, d},
		"the dependency is nil":                              {redis.NewClient(&redis.Options{MaxRetries: -1, ContextTimeoutEnabled: true}), nil},
	} {
		if err := AddTo(x.c, x.d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A client of a type that AddTo does not know is taken as it is.
func TestAddToAWrappedClient(t *testing.T) {
	d := newDependency(t, lull.Policy{})
	must.Succeed(AddTo(struct{ *redis.Client }{redis.NewClient(&redis.Options{})}, d))
}

// Which commands may be carried out twice.
func TestKindOf(t *testing.T) {
	for _, x := range []struct {
		args string
		want commandKind
	}{
		{"get k", repeatable}, {"GET k", repeatable}, {"mget a b", repeatable}, {"set k v", repeatable}, {"set k v ex 10", repeatable}, {"ping", repeatable},
		{"SET k v KEEPTTL", repeatable}, {"set k v px 10 keepttl", repeatable}, {"set k get", repeatable}, {"set k v exat 1 get", unrepeatable}, {"set k v ifeq w", unrepeatable}, {"set k v new-option", unrepeatable},
		{"mset a 1 b 2", repeatable}, {"msetnx a 1", unrepeatable}, {"eval_ro x 0", repeatable}, {"fcall f 0", unrepeatable}, {"xadd s * f v", unrepeatable}, {"sort l", unrepeatable}, {"config GET x", repeatable},
		{"set k v nx", unrepeatable}, {"set k v NX", unrepeatable}, {"set k v get", unrepeatable}, {"set k v xx ex 10", unrepeatable}, {"incr k", unrepeatable}, {"del k", unrepeatable}, {"lpush k v", unrepeatable},
		{"getdel k", unrepeatable}, {"getex k", unrepeatable}, {"eval x 0", unrepeatable}, {"hset k f v", unrepeatable}, {"expire k 10", unrepeatable}, {"what is this", unrepeatable}, {"multi", unrepeatable},
		{"config get x", repeatable}, {"config set x y", unrepeatable}, {"config", unrepeatable}, {"spop k", unrepeatable},
		{"blpop k 0", passesBy}, {"xread streams s 0", repeatable}, {"xread block 0 streams s 0", passesBy}, {"xreadgroup group g c streams s >", unrepeatable}, {"wait 1 0", passesBy},
		{"hello 3", passesBy}, {"auth x", passesBy}, {"select 1", passesBy}, {"client SETINFO lib-name x", passesBy}, {"client kill x", unrepeatable}, {"client", unrepeatable},
	} {
		var args []any
		for _, a := range strings.Fields(x.args) {
			args = append(args, a)
		}
		check.Equal(t, kindOf(redis.NewCmd(context.Background(), args...)), x.want, "%s", x.args)
		if got := kindOf(redis.NewRawWriteToCmd(context.Background(), io.Discard, args...)); got == repeatable {
			t.Errorf("%s is repeated, though its answer goes to a writer", x.args)
		}
	}
}

// Which pipelines may be carried out twice: what a later command sets, none before it reads.
func TestSame(t *testing.T) {
	for cmds, want := range map[string]bool{
		"get a": true, "set a 1": true, "get a;get b": true, "set a 1;set b 2;mset a 3 c 4": true, "incr a": false, "set a 1;incr b": false,
		"set a 1;get a": true, "get a;set a 1": false, "get b;set a 1": true, "get b;set a b": true, "hgetall a;hmset a f v": false,
		"mget c a;set b 1;set a 1": false, "mget c a;set b 1": true, "get b;mset a 1 b 2": false, "get c;mset a 1 b 2": true,
		"dbsize;set a 1": false, "keys *;set a 1": false, "set a 1;keys *": true, "eval_ro x 1 b;set a 1": false, "set b 1;get a;get b;set a 1;get a": false,
		"set a 1;mset": true,
	} {
		var all []redis.Cmder
		for _, args := range words(cmds) {
			all = append(all, redis.NewCmd(context.Background(), args...))
		}
		check.Equal(t, repeatableAsWhole(all), want, "%s", cmds)
	}
	key := "a"
	for _, arg := range []any{[]byte("a"), &key} {
		if repeatableAsWhole([]redis.Cmder{redis.NewCmd(t.Context(), "get", arg), redis.NewCmd(t.Context(), "set", "a", 1)}) {
			t.Errorf("%T is not the key", arg)
		}
	}
}

type reply string

func (e reply) Error() string { return string(e) }
func (e reply) RedisError()   {}

func TestClassify(t *testing.T) {
	for _, x := range []struct {
		err       error
		kind      string
		neverSent bool
	}{
		{redis.Nil, "success", false},
		{reply("LOADING Redis is loading the dataset in memory"), "transient", true},
		{reply("CLUSTERDOWN Hash slot not served"), "transient", true},
		{reply("READONLY You can't write against a read only replica."), "transient", true},
		{reply("WRONGTYPE Operation against a key"), "permanent", false},
		{reply("ERR LOADING data"), "transient", true},
		{reply("MOVED 3300 127.0.0.1:7001"), "transient", true},
		{reply("ASK 3300 127.0.0.1:7001"), "transient", true},
		{reply("TRYAGAIN Multiple keys request during rehashing of slot"), "transient", true},
		{reply("ERR max number of clients reached"), "transient", true},
		{reply("ERR max number of clients + cluster connections reached"), "transient", true},
		{reply("ERR unknown command"), "permanent", false},
		{reply("LOADINGS"), "permanent", false},
		{redis.ErrPoolExhausted, "caller_transient", true},
		{lull.NeverSent(io.EOF), "transient", true},
		{reply("BUSYGROUP Consumer Group name already exists"), "permanent", false},
		{redis.ErrPoolTimeout, "caller_transient", true},
		{io.EOF, "transient", false},
		{context.DeadlineExceeded, "transient", false},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, "transient", true},
		{errors.New("what?"), "unclassified", false},
	} {
		if v := Classify(x.err); v.Kind.String() != x.kind || v.NeverSent != x.neverSent {
			t.Errorf("%v: %+v", x.err, v)
		}
	}
}

// Which ends of a command prove that it was not carried out, and which are those of the caller's side.
func TestVerdict(t *testing.T) {
	const loading, moved = reply("LOADING Redis is loading the dataset in memory"), reply("MOVED 3300 127.0.0.1:7001")
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	broken, reset := &net.OpError{Op: "write", Err: syscall.EPIPE}, &net.OpError{Op: "read", Err: syscall.ECONNRESET}
	written := redis.Cmder(redis.NewRawWriteToCmd(t.Context(), io.Discard, "get", "k"))
	cmd := func(name string) redis.Cmder { return redis.NewCmd(t.Context(), name) }
	for _, x := range []struct {
		cmd                    redis.Cmder
		err                    error
		onceOnly, followsMoved bool
		kind                   engine.VerdictKind
		neverSent              bool
	}{
		{cmd("incr"), nil, true, false, lull.KindSuccess, false},
		{cmd("incr"), loading, true, false, lull.KindTransient, true},
		{cmd("incr"), reply("WRONGTYPE"), true, false, lull.KindPermanent, false},
		{cmd("incr"), moved, true, false, lull.KindPermanent, false}, // the same server would say the same
		{cmd("incr"), moved, true, true, lull.KindTransient, true},
		{cmd("incr"), io.EOF, true, true, lull.KindTransient, false},
		{cmd("watch"), loading, true, true, lull.KindPermanent, false},
		{cmd("exec"), loading, false, false, lull.KindPermanent, false},
		{cmd("exec"), notConnected(refused), true, false, lull.KindTransient, true},
		{cmd("eval"), loading, true, false, lull.KindPermanent, false},
		{cmd("eval"), loading, false, false, lull.KindTransient, false}, // declared
		{cmd("eval"), notConnected(refused), true, false, lull.KindTransient, true},

		{cmd("get"), redis.ErrPoolTimeout, true, false, engine.KindCallerTransient, true},
		{cmd("get"), refused, true, false, engine.KindCallerSide, true}, // not a dial of the client's
		{cmd("get"), notConnected(refused), true, false, lull.KindTransient, true},
		{cmd("get"), fmt.Errorf("get a token: %w", &net.DNSError{IsTimeout: true}), true, false, engine.KindCallerSide, true},
		{cmd("get"), &url.Error{Op: "Get", Err: io.EOF}, true, false, engine.KindCallerSide, true},
		{cmd("get"), notConnected(&url.Error{Op: "Get", Err: io.EOF}), true, false, lull.KindTransient, true},
		{cmd("get"), broken, true, false, lull.KindTransient, false},
		{cmd("get"), reset, true, false, lull.KindTransient, false},
		{written, broken, true, false, engine.KindCallerTransient, false},
		{written, reset, true, false, lull.KindTransient, false},
		{written, refused, true, false, engine.KindCallerSide, true},
	} {
		if v := verdict(x.cmd, x.err, x.onceOnly, x.followsMoved); v.Kind != x.kind || v.NeverSent != x.neverSent {
			t.Errorf("%s, %v, %t, %t: %+v", x.cmd.Name(), x.err, x.onceOnly, x.followsMoved, v)
		}
	}
}

// From which command on a pipeline is sent again, and whether that may be although not all of it is repeatable.
func TestJudge(t *testing.T) {
	const loading, wrong = reply("LOADING Redis is loading the dataset in memory"), reply("WRONGTYPE")
	for _, x := range []struct {
		cmds  string
		errs  []error
		from  int
		again bool
	}{
		{"incr a;incr b", []error{loading, loading}, 0, true},
		{"incr a;incr b", []error{nil, loading}, 1, true},
		{"incr a;incr b", []error{loading, nil}, 0, false},
		{"incr a;set b 1", []error{loading, io.EOF}, 0, false},
		{"incr a;get b", []error{loading, io.EOF}, 0, false},
		{"incr a;get b;incr c", []error{loading, redis.Nil, loading}, 0, true},
		{"incr a;set b 1", []error{loading, nil}, 0, false},
		{"set a 1;set b 1;incr c", []error{loading, nil, loading}, 0, true},
		{"incr a;lpush b 1", []error{loading, wrong}, 0, false},
		{"lpush a 1;incr b", []error{wrong, loading}, 1, true},
		{"incr a;incr b", []error{wrong, nil}, 2, false},
	} {
		p := pipelined{onceOnly: true}
		for i, args := range words(x.cmds) {
			cmd := redis.NewCmd(t.Context(), args...)
			cmd.SetErr(x.errs[i])
			p.cmds = append(p.cmds, cmd)
		}
		if v, _ := p.judge(firstError(p.cmds)); p.from != x.from || v.NeverSent != x.again {
			t.Errorf("%v: from %d, %+v", x, p.from, v)
		}
	}
}

// A pipeline has failed on the caller's side only if no server has failed.
func TestWhoseFailureAPipelineIs(t *testing.T) {
	const wrong = reply("WRONGTYPE")
	for _, x := range []struct {
		errs []error
		kind engine.VerdictKind
		last error
	}{
		{[]error{redis.ErrPoolTimeout, redis.ErrPoolTimeout}, engine.KindCallerTransient, redis.ErrPoolTimeout},
		{[]error{redis.ErrPoolTimeout, io.EOF}, lull.KindTransient, io.EOF},
		{[]error{io.EOF, redis.ErrPoolTimeout}, lull.KindTransient, io.EOF},
		{[]error{redis.ErrPoolTimeout, nil}, engine.KindCallerTransient, redis.ErrPoolTimeout},
		{[]error{redis.ErrPoolTimeout, wrong}, engine.KindCallerTransient, redis.ErrPoolTimeout},
		{[]error{wrong, redis.ErrPoolTimeout}, engine.KindCallerTransient, redis.ErrPoolTimeout},
	} {
		p := pipelined{onceOnly: true}
		for _, err := range x.errs {
			cmd := redis.NewCmd(t.Context(), "incr", "k")
			cmd.SetErr(err)
			p.cmds = append(p.cmds, cmd)
		}
		if v, last := p.judge(firstError(p.cmds)); v.Kind != x.kind || last != x.last {
			t.Errorf("%v: %+v, %v", x.errs, v, last)
		}
	}
}

// While nobody listens, a write is repeated as well: it was never sent. In the pool nothing waits
// for that.
func TestHookWithoutServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDependency(t, lull.Policy{Attempts: 3, Budget: budget.Config{Unlimited: true}, Backoff: backoff.Schedule{Kind: backoff.Constant, Base: time.Second}})
		c := under(t, d, redis.Options{Addr: "redis.test:6379", Dialer: memnet.Dial})
		start := time.Now()
		err := c.Incr(t.Context(), "n").Err()
		if e, ok := errors.AsType[*lull.Error](err); !ok || e.Attempts != 3 || !e.Verdict.NeverSent || e.Operation != "incr" || time.Since(start) > 2*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		d.Breaker().ForceOpen(d.Now())
		pipe := c.Pipeline()
		get := pipe.Get(t.Context(), "a")
		if _, err := pipe.Exec(t.Context()); !errors.Is(err, lull.ErrCircuitOpen) || !errors.Is(get.Err(), lull.ErrCircuitOpen) {
			t.Errorf("through an open circuit: %v, %v", err, get.Err())
		}
	})
}

func newDependency(t testing.TB, p lull.Policy, opts ...lull.Option) *lull.Dependency {
	t.Helper()
	return must.Have(lull.NewDependency("redis", p, append(opts, lull.WithRand(seed.Source(t)))...))
}

// under returns a client under the policy of d.
func under(t testing.TB, d *lull.Dependency, o redis.Options) *redis.Client {
	t.Helper()
	c := bare(t, o)
	must.Succeed(AddTo(c, d))
	return c
}

// bare returns a client that neither repeats nor is under a policy.
func bare(t testing.TB, o redis.Options) *redis.Client {
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
	c := redis.NewClient(&o)
	t.Cleanup(func() { c.Close() })
	return c
}

// Scripts that write, and then return or raise what a server refuses commands with.
var scripts4test = map[string]string{
	"$returns": `redis.call('incr', KEYS[1]) return redis.error_reply('BUSY somebody has it')`,
	"$raises":  `redis.call('incr', KEYS[1]) error({err='LOADING the rest failed'})`,
	"$writes":  `return redis.call('incr', KEYS[1])`,
}

// words returns the commands of a text, separated by semicolons.
func words(text string) (cmds [][]any) {
	for _, line := range strings.Split(text, ";") {
		var args []any
		for _, word := range strings.Fields(line) {
			if script, ok := scripts4test[word]; ok {
				word = script
			}
			args = append(args, word)
		}
		cmds = append(cmds, args)
	}
	return cmds
}

// below is a hook beneath lull's. It is what ends an attempt.
type below struct {
	attempt func(context.Context) error
}

func (b *below) DialHook(next redis.DialHook) redis.DialHook {
	return next
}

func (b *below) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := b.attempt(ctx)
		cmd.SetErr(err)
		return err
	}
}

func (b *below) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := b.attempt(ctx)
		for _, cmd := range cmds {
			cmd.SetErr(err)
		}
		return err
	}
}

// What ended an attempt is decided by who ended its context: of commands and of pipelines.
func TestWhoCutTheAttemptOff(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, c *redis.Client) error{
		"a read":  func(ctx context.Context, c *redis.Client) error { return c.Get(ctx, "k").Err() },
		"a write": func(ctx context.Context, c *redis.Client) error { return c.Incr(ctx, "k").Err() },
		"a dial":  func(ctx context.Context, c *redis.Client) error { return c.Get(ctx, "k").Err() },
		"a pipeline": func(ctx context.Context, c *redis.Client) error {
			_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error { p.Incr(ctx, "k"); return nil })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			cutofftest.Test(t, func(t *testing.T, p lull.Policy) cutofftest.Call {
				c := under(t, newDependency(t, p), redis.Options{Addr: "127.0.0.1:1"})
				b := &below{}
				c.AddHook(b)
				return func(ctx context.Context, attempt func(context.Context) error) error {
					b.attempt = attempt
					return call(ctx, c)
				}
			})
		})
	}
}
