//go:build servers

package lullredis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// patient is a policy that repeats at once, as often as the situation allows.
var patient = lull.Policy{
	Attempts: 3, Backoff: backoff.Schedule{Kind: backoff.Constant, Base: time.Millisecond}, Breaker: breaker.Config{Off: true}, Budget: budget.Config{Unlimited: true},
}

// onRetry calls itself before the first retry of each call.
type onRetry func()

func (f onRetry) Observe(_ context.Context, e lull.Event) {
	if e.Kind == event.RetryScheduled && e.Attempt == 1 {
		f()
	}
}

// A cutter breaks the next connection after so many bytes of answers, or, of a server that it names, all.
type cutter struct {
	left  atomic.Int64
	armed atomic.Bool
	all   string // the address of that server
}

func (c *cutter) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	return &cutConn{Conn: conn, by: c, spared: c.all != "" && c.all != addr}, err
}

type cutConn struct {
	net.Conn
	by     *cutter
	spared bool
	dead   bool
}

func (c *cutConn) Read(b []byte) (int, error) {
	if (!c.by.armed.Load() || c.spared) && !c.dead {
		return c.Conn.Read(b)
	}
	left := c.by.left.Load()
	if left <= 0 && !c.dead {
		c.Conn.Read(make([]byte, 1<<16)) // the server has carried out what it got
		c.by.armed.Store(c.by.all != "") // else the next connection lasts
		c.dead = true
	}
	if c.dead {
		return 0, io.EOF
	}
	n, err := c.Conn.Read(b[:min(int64(len(b)), left)])
	c.by.left.Add(-int64(n))
	return n, err
}

// outcomes describes the result of each command: its value, or the first word of its error.
func outcomes(cmds []redis.Cmder) string {
	var all []string
	for _, cmd := range cmds {
		err := cmd.Err()
		switch {
		case errors.Is(err, io.EOF):
			all = append(all, "EOF")
		case err == redis.Nil:
			all = append(all, "nil")
		case err != nil:
			all = append(all, strings.Fields(err.Error())[0])
		default:
			all = append(all, fmt.Sprint(cmd.(*redis.Cmd).Val()))
		}
	}
	return strings.Join(all, " ")
}

// What of a pipeline is repeated. The counters show how often each command was carried out.
func TestWhatOfAPipelineIsRepeated(t *testing.T) {
	t.Parallel()
	const (
		none    = "CONFIG SET min-replicas-to-write 1"
		noneOK  = "CONFIG SET min-replicas-to-write 0"
		replica = "REPLICAOF 127.0.0.1 1"
		primary = "REPLICAOF NO ONE"
		uncut   = -1
	)
	s := needServer(t)
	admin := s.client(t)
	must.Succeed(admin.FunctionLoad(t.Context(), "#!lua name=half\nredis.register_function('half', function(KEYS) redis.call('incr', KEYS[1]) return redis.error_reply('BUSY somebody has it') end)").Err())
	for name, x := range map[string]struct {
		cmds     string
		cut      int    // the connection breaks after so many bytes of answers
		then     string // carried out by somebody else before the first retry
		tx       bool
		declared bool
		keys     string // a=1: what is there in the end
		outcomes string
		attempts int
		reason   error
	}{
		// Refused in the midst: what was carried out before is not sent again.
		"refused for good":                    {"INCR a;" + none + ";INCR b;INCR c", uncut, "", false, false, "a=1", "1 OK NOREPLICAS NOREPLICAS", 3, lull.ErrAttemptsExhausted},
		"refused for a while":                 {"INCR a;" + none + ";INCR b;INCR c", uncut, noneOK, false, false, "a=1 b=1 c=1", "1 OK 1 1", 2, nil},
		"refused, a read between":             {"INCR a;" + none + ";INCR b;GET a;INCR c", uncut, noneOK, false, false, "a=1 b=1 c=1", "1 OK 1 1 1", 2, nil},
		"refused, a write after it":           {none + ";INCR a;" + noneOK + ";INCR b", uncut, "", false, false, "b=1", "OK NOREPLICAS OK 1", 1, lull.ErrNotIdempotent},
		"refused, a SET after it":             {none + ";INCR a;" + noneOK + ";SET a 5", uncut, "", false, false, "a=5", "OK NOREPLICAS OK OK", 1, lull.ErrNotIdempotent},
		"a replica in the midst":              {"INCR a;" + replica + ";INCR b;LPUSH l 1", uncut, primary, false, false, "a=1 b=1 l=1", "1 OK 1 1", 2, nil},
		"a replica in the midst, reads on":    {"INCR a;" + replica + ";GET a;INCR b;GET b", uncut, primary, false, false, "a=1 b=1", "1 OK 1 1 1", 2, nil},
		"declared":                            {"INCR a;" + none + ";INCR b;INCR c", uncut, noneOK, false, true, "a=1 b=1 c=1", "1 OK 1 1", 2, nil},
		"an answer that is an error":          {"SET s x;LPUSH s 1;INCR a", uncut, "", false, false, "a=1 s=x", "OK WRONGTYPE 1", 1, nil},
		"an answer that is an error, refused": {"SET s x;LPUSH s 1;" + none + ";INCR a", uncut, noneOK, false, false, "a=1 s=x", "OK WRONGTYPE OK 1", 2, lull.ErrPermanent},
		"nothing there, refused":              {"GET no;" + none + ";INCR a", uncut, "", false, false, "", "nil OK NOREPLICAS", 3, lull.ErrAttemptsExhausted},
		"no memory":                           {"INCR a;CONFIG SET maxmemory 1;INCR b", uncut, "", false, false, "a=1", "1 OK OOM", 1, nil},

		// Scripts.
		"a script that returned":      {"INCR a;EVAL $returns 1 b;INCR c", uncut, "", false, false, "a=1 b=1 c=1", "1 BUSY 1", 1, nil},
		"a script that raised":        {"EVAL $raises 1 b", uncut, "", false, false, "b=1", "LOADING", 1, nil},
		"a script, refused":           {none + ";EVAL $writes 1 b;INCR a", uncut, noneOK, false, false, "a=1", "OK NOREPLICAS 1", 2, lull.ErrPermanent},
		"a function":                  {"FCALL half 1 b;INCR a", uncut, "", false, false, "a=1 b=1", "BUSY 1", 1, nil},
		"a script, declared":          {"EVAL $returns 1 b", uncut, "", false, true, "b=3", "BUSY", 3, lull.ErrAttemptsExhausted},
		"a script in a transaction":   {"EVAL $returns 1 b;INCR a", uncut, "", true, false, "a=1 b=1", "BUSY 1", 1, nil},
		"a script in one of its own":  {"MULTI;EVAL $returns 1 b;EXEC", uncut, "", false, false, "b=1", "OK QUEUED [BUSY somebody has it]", 1, nil},
		"a transaction of the caller": {none + ";MULTI;INCR a;EXEC", uncut, noneOK, false, false, "", "OK OK NOREPLICAS EXECABORT", 1, nil},

		// Transactions: all or nothing, once.
		"a transaction":                   {"INCR a;INCR b", uncut, "", true, false, "a=1 b=1", "1 1", 1, nil},
		"a transaction that breaks":       {"INCR a;INCR b", 5, "", true, false, "a=1 b=1", "EOF EOF", 1, lull.ErrNotIdempotent},
		"a transaction that breaks, late": {"INCR a;INCR b", 5 + 2*9 + 4 + 4, "", true, false, "a=1 b=1", "EOF EOF", 1, lull.ErrNotIdempotent},

		// The connection breaks, before or between the answers. go-redis gives the error to all commands then.
		"broken, counters":             {"INCR a;INCR b;INCR c", 4, "", false, false, "a=1 b=1 c=1", "EOF EOF EOF", 1, lull.ErrNotIdempotent},
		"broken at the last":           {"INCR a;INCR b;INCR c", 8, "", false, false, "a=1 b=1 c=1", "EOF EOF EOF", 1, lull.ErrNotIdempotent},
		"broken, SETs":                 {"SET a 1;MSET b 2 c 3;SET d 4 EX 100", 0, "", false, false, "a=1 b=2 c=3 d=4", "OK OK OK", 2, nil},
		"broken, SETs behind counters": {"INCR a;SET b 2", 4, "", false, false, "a=1 b=2", "EOF EOF", 1, lull.ErrNotIdempotent},
		"broken, reads":                {"GET a;EXISTS a", 0, "", false, false, "", "nil 0", 2, nil},
		"broken, SETs and reads":       {"SET a 1;GET a;GET b;SET c 2", 0, "", false, false, "a=1 c=2", "OK 1 nil OK", 2, nil},
		"broken, the old value":        {"GET a;SET a 1", 0, "", false, false, "a=1", "EOF EOF", 1, lull.ErrNotIdempotent},
		"broken, SET NX":               {"SET a 1 NX", 0, "", false, false, "a=1", "EOF", 1, lull.ErrNotIdempotent},
		"broken, SET GET":              {"SET a 1 GET", 0, "", false, false, "a=1", "EOF", 1, lull.ErrNotIdempotent},
		"broken, XADD":                 {"XADD x * f v", 0, "", false, false, "x=1", "EOF", 1, lull.ErrNotIdempotent},
		"broken, SORT STORE":           {"SORT l STORE m", 0, "", false, false, "", "EOF", 1, lull.ErrNotIdempotent},
		"broken, GETDEL":               {"SET a 1;GETDEL a", 5, "", false, false, "", "EOF EOF", 1, lull.ErrNotIdempotent},
		"broken, declared":             {"INCR a;INCR b", 4, "", false, true, "a=2 b=2", "2 2", 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			for _, reset := range []string{primary, noneOK, "CONFIG SET maxmemory 0", "FLUSHALL"} {
				must.Succeed(do(admin, reset))
			}
			before := onRetry(func() {
				if x.then != "" {
					must.Succeed(do(admin, x.then))
				}
			})
			var cut cutter
			c := under(t, newDependency(t, patient, lull.WithObserver(before)), redis.Options{Addr: s.addr, Protocol: 2, Dialer: cut.dial})
			pipe := c.Pipeline
			if x.tx {
				pipe = c.TxPipeline
			}
			warm := pipe()
			warm.Ping(ctx)
			must.Have(warm.Exec(ctx))
			p := pipe()
			for _, args := range words(x.cmds) {
				p.Do(ctx, args...)
			}
			if x.declared {
				ctx = Idempotent(ctx)
			}
			if x.cut != uncut {
				cut.left.Store(int64(x.cut))
				cut.armed.Store(true)
			}
			cmds, err := p.Exec(ctx)
			check.Equal(t, outcomes(cmds), x.outcomes, "the commands")
			attempts := 1
			if e, ok := errors.AsType[*lull.Error](err); ok {
				attempts = e.Attempts
				if e.Verdict.NeverSent {
					t.Errorf("%v: nothing was carried out, it reports", err)
				}
			} else if x.reason == nil { // counted by the effects
				attempts = x.attempts
			}
			if attempts != x.attempts || x.reason != nil && !errors.Is(err, x.reason) || x.reason == nil && errors.As(err, new(*lull.Error)) {
				t.Errorf("%d attempts, %v; want %d, %v", attempts, err, x.attempts, x.reason)
			}
			want := map[string]string{}
			for _, key := range strings.Fields(x.keys) {
				k, v, _ := strings.Cut(key, "=")
				want[k] = v
			}
			for _, key := range strings.Fields("a b c d l m s x") {
				n, _ := admin.Do(context.WithoutCancel(ctx), "GET", key).Text()
				switch key {
				case "l":
					if v := admin.LLen(context.WithoutCancel(ctx), key).Val(); v > 0 {
						n = fmt.Sprint(v)
					}
				case "x":
					if v := admin.XLen(context.WithoutCancel(ctx), key).Val(); v > 0 {
						n = fmt.Sprint(v)
					}
				}
				check.Equal(t, n, want[key], "%s", key)
			}
		})
	}
}

// A transaction that was refused is not repeated: the server has discarded it, and forgotten what it watched. So a
// repetition would not see what others have changed.
func TestARefusedTransactionIsNotRepeated(t *testing.T) {
	t.Parallel()
	s, ctx := needServer(t), t.Context()
	admin := s.client(t)
	must.Succeed(do(admin, "CONFIG SET min-replicas-to-write 1"))
	d := newDependency(t, patient, lull.WithObserver(onRetry(func() { must.Succeed(do(admin, "CONFIG SET min-replicas-to-write 0")) })))
	c := under(t, d, redis.Options{Addr: s.addr})
	incr := func(p redis.Pipeliner) error { p.Incr(ctx, "a"); p.Incr(ctx, "b"); return nil }
	for name, err := range map[string]error{
		"alone":   second(c.TxPipelined(ctx, incr)),
		"watched": c.Watch(ctx, func(tx *redis.Tx) error { return second(tx.TxPipelined(ctx, incr)) }, "a"),
	} {
		if n := admin.Exists(ctx, "a", "b").Val(); !redis.IsExecAbortError(err) || errors.As(err, new(*lull.Error)) || n > 0 {
			t.Errorf("%s: %v; %d keys", name, err, n)
		}
	}
	must.Succeed(do(admin, "CONFIG SET min-replicas-to-write 0"))
	err := c.Watch(ctx, func(tx *redis.Tx) error {
		must.Succeed(admin.Set(ctx, "a", 5, 0).Err())
		return second(tx.TxPipelined(ctx, incr))
	}, "a")
	if n := admin.Get(ctx, "a").Val(); err != redis.TxFailedErr || n != "5" {
		t.Errorf("somebody else was first: %v; a is %q", err, n)
	}
}

func second(_ []redis.Cmder, err error) error { return err }

// An answer that goes to the caller's writer is not asked for again: the writer has its start.
func TestAnAnswerIsWrittenOnce(t *testing.T) {
	t.Parallel()
	s, ctx := needServer(t), t.Context()
	must.Succeed(s.client(t).Set(ctx, "k", strings.Repeat("x", 100), 0).Err())
	var cut cutter
	c := under(t, newDependency(t, patient), redis.Options{Addr: s.addr, Dialer: cut.dial, Protocol: 2})
	for _, ctx := range []context.Context{ctx, Idempotent(ctx)} {
		must.Succeed(c.Ping(ctx).Err())
		cut.left.Store(50)
		cut.armed.Store(true)
		var b strings.Builder
		if err := c.DoRawWriteTo(ctx, &b, "get", "k").Err(); !errors.Is(err, lull.ErrNotIdempotent) || b.Len() > 50 {
			t.Errorf("%v; %d bytes", err, b.Len())
		}
	}
}

func TestADeclaredCommandIsRepeated(t *testing.T) {
	t.Parallel()
	var cut cutter
	c, ctx := under(t, newDependency(t, patient), redis.Options{Addr: needServer(t).addr, Dialer: cut.dial, Protocol: 2}), t.Context()
	must.Succeed(c.Ping(ctx).Err())
	cut.armed.Store(true)
	if n, err := c.Incr(Idempotent(ctx), "n").Result(); n != 2 || err != nil {
		t.Errorf("%d, %v; want 2", n, err)
	}
}
