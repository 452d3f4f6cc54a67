package lullredis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
)

// MaxDials is how many dials a client with [AddTo] has in flight at most, that of a cluster or ring to each server.
const MaxDials = 4

// AddTo puts the commands, pipelines and dials of client under the policy of d. Each command is a
// call with the command's name as its operation ("get"), and so is each pipeline ("pipeline").
//
// Nothing is repeated that may have been carried out, unless carrying it out twice is the same as once:
//
//	what was sent                          repeated
//	a command that only reads,             yes
//	a SET without condition or old value
//	any other command (INCR, LPUSH, XADD,  if there was no connection, or the server refused it
//	SET NX, DEL)                           (LOADING, READONLY and their like: see Classify)
//	a script (EVAL, EVALSHA, FCALL)        if there was no connection; not after an error of any
//	                                       code: scripts can write, and then return one
//	a pipeline with refused commands       from the first refused one on, if every later executed
//	                                       command only reads, or is a SET after SETs only;
//	                                       commands before it are not sent again
//	a pipeline whose connection broke      if each command may be repeated, and none reads what a
//	                                       later one sets
//	MULTI/EXEC; a pipeline with WATCH      as a whole, if there was no connection; not after a
//	or ASKING                              refusal, because it ends the WATCH
//	anything else under Idempotent         yes; a pipeline from its first failure on
//
// Each command of a pipeline keeps its own result or error. (After a lost connection go-redis gives the error
// to all of them.) Exec returns the first failure that is no answer, as a [*lull.Error]. Its
// Verdict.NeverSent reports that no command was carried out.
//
// An answer of Redis is returned as it is: redis.Nil, and errors such as WRONGTYPE when nothing
// was repeated. Any other failure is a [*lull.Error]. Commands that block on purpose (BLPOP, XREAD
// with BLOCK, WAIT and their like) and subscriptions pass by: they are no calls. So do the commands
// that go-redis greets a new connection with (HELLO, AUTH, SELECT, CLIENT SETINFO and their like):
// they are part of the call that needs the connection. If the connection breaks there, the call's command was
// never sent.
//
// A failure on the caller's own side opens no circuit and takes nothing from a budget: a pool without a free connection, a
// client that is closed, credentials that could not be had, TLS that the two do not agree on, the writer that an answer
// goes to, a panic in a hook. A wait for a connection of the pool is repeated, because nothing was sent.
//
// The client must not repeat commands or dials by itself (MaxRetries: -1, DialerRetries: 1), since
// layers multiply: by default it makes 4 attempts of up to 5 dials each. It must obey the deadlines
// of contexts (ContextTimeoutEnabled). AddTo refuses any other client. A cluster's client still
// follows MOVED and ASK (MaxRedirects). Then it also repeats what has failed; AddTo prevents that
// if the command may have been carried out. Watch of a cluster or ring passes by.
// Call AddTo once for a client, before its first command.
//
// A command that succeeds costs 0.2 µs and one allocation more than with a context.WithTimeout for each
// command, and that costs five allocations more than without (go run ./lab/bench -group adapters).
func AddTo(client redis.UniversalClient, d *lull.Dependency) error {
	if err := respectsDeadlines(client); err != nil {
		return err
	}
	if d == nil {
		return errors.New("lullredis: AddTo: the dependency is nil: make one with lull.NewDependency")
	}
	options, _, retries, dials := optionsOf(client)
	if retries > 0 {
		return fmt.Errorf("lullredis: AddTo: the client repeats commands up to %d times by itself, also those that may have been carried out: set MaxRetries to -1 in its %s", retries, options)
	}
	if dials != 1 {
		return fmt.Errorf("lullredis: AddTo: the client dials several times for one command (5 by default): set DialerRetries to 1 in its %s", options)
	}
	addNodes := func(n *redis.Client) { n.AddHook(nodeHook{newDialer(n)}) }
	h := &hook{d: d}
	switch c := client.(type) {
	case *redis.ClusterClient:
		h.cluster = true
		c.OnNewNode(addNodes)
	case *redis.Ring:
		c.OnNewNode(addNodes)
		c.ForEachShard(context.Background(), func(_ context.Context, n *redis.Client) error { addNodes(n); return nil })
	case *redis.Client:
		h.dialer = newDialer(c)
	default:
		h.dialer = newDialer(nil)
	}
	client.AddHook(h)
	return nil
}

// A hook makes calls of commands and pipelines. That of a single server dials, too.
type hook struct {
	*dialer
	d       *lull.Dependency
	cluster bool // the client follows MOVED and ASK
}

// A dialer makes the connections of a client to one server. It is nil for a client of several servers.
type dialer struct {
	client   *redis.Client // whose pools it fills; nil: not known
	inFlight chan struct{} // holds one for each dial
	dials    atomic.Int64  // that were made
	failures atomic.Int64  // of dials and greetings
}

func newDialer(c *redis.Client) *dialer {
	return &dialer{client: c, inFlight: make(chan struct{}, MaxDials)}
}

// DialHook dials when there is room.
func (in *dialer) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		select {
		case in.inFlight <- struct{}{}:
		case <-ctx.Done():
			return nil, notConnected(ctx.Err())
		}
		defer func() { <-in.inFlight }()
		conn, err := next(ctx, network, addr)
		if err != nil {
			in.failures.Add(1)
			err = notConnected(err)
		} else {
			in.dials.Add(1)
		}
		return conn, err
	}
}

// dialCounts are the dials that were made, and the dials and greetings that failed.
type dialCounts struct{ dials, failures int64 }

func (in *dialer) dialsSoFar() (n dialCounts) {
	if in != nil {
		n.dials, n.failures = in.dials.Load(), in.failures.Load()
	}
	return n
}

// asPoolTimeout returns the error of commands that ended with err. It is redis.ErrPoolTimeout if their time was over while they
// waited for a connection of the pool: nothing is being dialled, no dial has failed since before, and either all
// connections were in use, or a new one waited for its credentials.
func (in *dialer) asPoolTimeout(before dialCounts, err error, cmds ...redis.Cmder) error {
	if err != context.DeadlineExceeded || in == nil || len(in.inFlight) > 0 {
		return err
	}
	if now := in.dialsSoFar(); now.failures > before.failures || now.dials == before.dials && !in.poolInUse(len(cmds) > 0) {
		return err
	}
	err = fmt.Errorf("%w: %w", redis.ErrPoolTimeout, err)
	for _, cmd := range cmds {
		cmd.SetErr(err)
	}
	return err
}

// poolInUse reports whether the pool has connections, and all are in use. Pipelines may have a pool of their own.
func (in *dialer) poolInUse(pipeline bool) bool {
	if in.client == nil {
		return false
	}
	s := in.client.PoolStats()
	if p := s.PipelineStats; pipeline && p != nil {
		return p.TotalConns > 0 && p.IdleConns == 0
	}
	return s.TotalConns > 0 && s.IdleConns == 0
}

// asGreetingFailure returns the error of commands that are no calls and ended with err. If a new connection broke while it was
// greeted, the command that needs it was never sent. go-redis unwraps such an error once.
func (in *dialer) asGreetingFailure(err error, cmds ...redis.Cmder) error {
	if err == nil || isReply(err) || slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return !greetings[cmd.Name()] }) {
		return err
	}
	if in != nil {
		in.failures.Add(1)
	}
	if lull.Classify(err).Code == engine.CodeTimeout {
		return err
	}
	return fmt.Errorf("lullredis: greeting a new connection: %w", notConnected(err))
}

// ProcessHook makes one command.
func (h *hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		kind := kindOf(cmd)
		if kind == passesBy {
			_, err := h.send(ctx, next, cmd, true)
			return h.asGreetingFailure(err, cmd)
		}
		idempotent := kind == repeatable || declared(ctx, cmd)
		r, err := h.drive(ctx, cmd.Name(), idempotent, func(ctx context.Context) (lull.Verdict, error) {
			cmd.SetErr(nil)
			return h.send(ctx, next, cmd, !idempotent)
		})
		return h.result(cmd.Name(), r, err)
	}
}

// send makes one attempt. If onceOnly is set, carrying cmd out twice is not the same as once.
func (h *hook) send(ctx context.Context, next redis.ProcessHook, cmd redis.Cmder, onceOnly bool) (lull.Verdict, error) {
	if !h.cluster {
		before := h.dialsSoFar()
		err := h.asPoolTimeout(before, next(ctx, cmd))
		return verdict(cmd, err, onceOnly, false), err
	}
	s := &clusterAttempt{cmd: cmd, onceOnly: onceOnly}
	err := next(context.WithValue(ctx, clusterAttemptKey{}, s), cmd)
	if held, ok := errors.AsType[finalError](err); ok {
		err = held.err
	}
	v := verdict(cmd, err, onceOnly, true)
	v.NeverSent = v.NeverSent && !s.carriedOut.Load()
	return v, err
}

// ProcessPipelineHook makes several commands at once.
func (h *hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		p, pass := pipelined{cmds: cmds, cluster: h.cluster}, false
		for _, cmd := range cmds {
			pass = pass || kindOf(cmd) == passesBy
			p.indivisible = p.indivisible || connectionBound[cmd.Name()]
		}
		p.onceOnly = pass || !declared(ctx, cmds...) && !repeatableAsWhole(cmds)
		send := func(ctx context.Context, cmds []redis.Cmder) error {
			if h.cluster {
				p.clusterAttempt = &clusterAttempt{onceOnly: p.onceOnly}
				ctx = context.WithValue(ctx, clusterAttemptKey{}, p.clusterAttempt)
			}
			before := h.dialsSoFar()
			err := h.asPoolTimeout(before, next(ctx, cmds), cmds...)
			setMissingErrors(cmds, err)
			return err
		}
		if pass {
			return h.asGreetingFailure(send(ctx, cmds), cmds...)
		}
		made := false
		r, err := h.drive(ctx, "pipeline", !p.onceOnly, func(ctx context.Context) (lull.Verdict, error) {
			made = true
			for _, cmd := range cmds[p.from:] {
				cmd.SetErr(nil)
			}
			err := send(ctx, cmds[p.from:])
			if p.from > 0 {
				err = firstError(cmds)
			}
			return p.judge(err)
		})
		r.Verdict.NeverSent = r.Verdict.NeverSent && p.nothingCarriedOut
		if err = h.result("pipeline", r, err); !made {
			setMissingErrors(cmds, err)
		}
		return err
	}
}

// drive makes one call. op makes an attempt.
func (h *hook) drive(ctx context.Context, name string, idempotent bool, op func(context.Context) (lull.Verdict, error)) (engine.Result, error) {
	var err error
	spec := engine.Spec{Operation: name, NotIdempotent: !idempotent}
	r := h.d.Drive(ctx, spec, func(ctx context.Context) (v lull.Verdict) {
		v, err = op(ctx)
		return v
	}, nil, func() error { return err })
	return r, err
}

func (h *hook) result(name string, r engine.Result, err error) error {
	if r.Reason == engine.Success || r.Attempts == 1 && r.Reason == engine.Permanent && isReply(err) {
		return err
	}
	return h.d.Error(name, r, err)
}

type idempotentKey struct{}

// Idempotent returns a context for commands that may be carried out twice: a DEL whose result does
// not matter, a script that checks by itself.
func Idempotent(ctx context.Context) context.Context {
	return context.WithValue(ctx, idempotentKey{}, true)
}

// declared reports whether the commands may be carried out twice. A command whose answer goes to a writer may
// not: the writer would have its start twice.
func declared(ctx context.Context, cmds ...redis.Cmder) bool {
	return ctx.Value(idempotentKey{}) != nil && !slices.ContainsFunc(cmds, redis.Cmder.NoRetry)
}

// commandKind is what is known of a command.
type commandKind uint8

const (
	unrepeatable commandKind = iota // it may not be carried out twice, or nothing is known of it
	repeatable                      // twice is the same as once, with the same result
	passesBy                        // it is no call: it is meant to wait, or belongs to a new connection
)

// What is known of commands. A command is in none of these if its second execution has another result than its first
// (DEL, SADD, EXPIRE: how many were changed).
var (
	// repeatables are those that may be carried out twice.
	repeatables = wordSet("get mget strlen getrange substr exists ttl pttl expiretime pexpiretime type keys scan randomkey dump object memory " +
		"hget hmget hgetall hkeys hvals hlen hexists hstrlen hscan hrandfield lrange lindex llen lpos " +
		"smembers sismember smismember scard srandmember sscan sinter sunion sdiff sintercard " +
		"zrange zrangebyscore zrangebylex zrevrange zrevrangebyscore zrevrangebylex zrank zrevrank zscore zmscore zcard zcount zlexcount zscan " +
		"zrandmember zinter zunion zdiff zintercard getbit bitcount bitpos pfcount geopos geodist geohash geosearch " +
		"xlen xrange xrevrange xread xinfo xpending eval_ro evalsha_ro fcall_ro json.get json.mget " +
		"ping echo time dbsize info command config lastsave role mset set setex psetex hmset")
	writes = wordSet("set setex psetex mset hmset") // those of them that change something
	// blocking are meant to wait, or belong to a new connection.
	blocking = wordSet("blpop brpop blmove brpoplpush blmpop bzpopmin bzpopmax bzmpop wait waitaof subscribe psubscribe ssubscribe monitor " +
		"hello auth select readonly")
	// connectionBound are those that only mean something on one connection, together with their neighbours.
	connectionBound = wordSet("multi exec discard watch unwatch asking reset")
	// clientPrepares are the second words of those with CLIENT that belong to a new connection.
	clientPrepares = wordSet("setname setinfo tracking maint_notifications")
	// scripts run the caller's code, which may return any error after it has written.
	scripts   = wordSet("eval evalsha fcall tfcall tfcallasync")
	greetings = wordSet("hello auth select readonly client") // those of go-redis to a new connection
	// readsUnnamedKeys are the commands that read keys which are not among their arguments.
	readsUnnamedKeys = wordSet("keys scan randomkey dbsize info memory eval_ro evalsha_ro fcall_ro")
)

func wordSet(of string) map[string]bool {
	m := map[string]bool{}
	for _, name := range strings.Fields(of) {
		m[name] = true
	}
	return m
}

func kindOf(cmd redis.Cmder) commandKind {
	name := cmd.Name()
	switch {
	case name == "set" && conditional(cmd), name == "config" && secondWord(cmd) != "get":
		return unrepeatable
	case strings.HasPrefix(name, "xread") && hasOption(cmd, "block"), name == "client" && clientPrepares[secondWord(cmd)]:
		return passesBy
	case repeatables[name] && !cmd.NoRetry(): // see declared
		return repeatable
	case blocking[name]:
		return passesBy
	}
	return unrepeatable
}

// conditional reports whether a SET has a condition, or returns the old value: a second SET may have another result.
func conditional(set redis.Cmder) bool {
	args := set.Args()
	for i := 3; i < len(args); i++ {
		option, _ := args[i].(string)
		switch strings.ToLower(option) {
		case "ex", "px", "exat", "pxat":
			i++
		case "keepttl":
		default:
			return true
		}
	}
	return false
}

// secondWord is the second word of a command, in lower case.
func secondWord(cmd redis.Cmder) string {
	if args := cmd.Args(); len(args) > 1 {
		return strings.ToLower(fmt.Sprint(args[1]))
	}
	return ""
}

// hasOption reports whether an option may be among the arguments. A key or value of that name counts too,
// which is on the safe side.
func hasOption(cmd redis.Cmder, option string) bool {
	args := cmd.Args()
	return slices.ContainsFunc(args[min(len(args), 1):], func(a any) bool {
		s, ok := a.(string)
		return ok && strings.EqualFold(s, option)
	})
}
