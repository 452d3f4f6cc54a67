package lullredis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
)

// MaxDials is how many dials a client with [AddTo] has in flight at most.
const MaxDials = 4

// AddTo puts the commands, pipelines and dials of client under the policy of d. Each command is a
// call with the command's name as its operation ("get"), and so is each pipeline ("pipeline").
//
// A command is repeated if it only reads, or if carrying it out twice is the same as once (a SET
// without conditions, a PING). Others, such as INCR, are repeated only if the dial failed or
// Redis has refused them unexecuted (LOADING, CLUSTERDOWN). After a timeout they may have been
// carried out. [Idempotent] declares the opposite for commands that the caller knows. A pipeline is
// repeated as a whole if each of its commands may be.
//
// An answer of Redis is returned as it is: redis.Nil, and errors such as WRONGTYPE when nothing
// was repeated. Any other failure is a [*lull.Error]. Commands that block on purpose (BLPOP, XREAD
// with BLOCK, WAIT and their like) and subscriptions pass by: they are no calls. So do the commands
// that go-redis greets a new connection with (HELLO, AUTH, SELECT, CLIENT SETINFO and their like):
// they are part of the call that needs the connection.
//
// The client must not repeat commands or dials by itself (MaxRetries: -1, DialerRetries: 1), since
// layers multiply: by default it makes 4 attempts of up to 5 dials each. It must obey the deadlines
// of contexts (ContextTimeoutEnabled). AddTo refuses one that does otherwise. Call it once for a
// client, before its first command.
//
// A command that succeeds costs 0.2 µs and one allocation more than with a context.WithTimeout for each
// command, and that costs five allocations more than without (go run ./bench -group adapters).
func AddTo(client redis.UniversalClient, d *lull.Dependency) error {
	if err := respectsDeadlines(client); err != nil {
		return err
	}
	if d == nil {
		return errors.New("lullredis: AddTo: the dependency is nil: make one with lull.NewDependency")
	}
	retries, dials, options := 0, 1, ""
	switch c := client.(type) {
	case *redis.Client:
		retries, dials, options = c.Options().MaxRetries, c.Options().DialerRetries, "redis.Options"
	case *redis.ClusterClient:
		retries, dials, options = c.Options().MaxRetries, c.Options().DialerRetries, "redis.ClusterOptions"
	case *redis.Ring:
		retries, dials, options = c.Options().MaxRetries, c.Options().DialerRetries, "redis.RingOptions"
	}
	if retries > 0 {
		return fmt.Errorf("lullredis: AddTo: the client repeats commands up to %d times by itself, also those that may have been carried out: set MaxRetries to -1 in its %s", retries, options)
	}
	if dials != 1 {
		return fmt.Errorf("lullredis: AddTo: the client dials several times for one command (5 by default): set DialerRetries to 1 in its %s", options)
	}
	client.AddHook(&hook{d, make(chan struct{}, MaxDials)})
	return nil
}

type hook struct {
	d     *lull.Dependency
	dials chan struct{} // holds one for each dial in flight
}

// DialHook dials when there is room.
func (h *hook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		select {
		case h.dials <- struct{}{}:
		case <-ctx.Done():
			return nil, lull.NeverSent(ctx.Err())
		}
		defer func() { <-h.dials }()
		conn, err := next(ctx, network, addr)
		return conn, lull.NeverSent(err)
	}
}

// ProcessHook makes one command.
func (h *hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		kind := kindOf(cmd)
		if kind == passes {
			return next(ctx, cmd)
		}
		return h.call(ctx, cmd.Name(), kind == repeatable || declared(ctx), func(ctx context.Context) error {
			cmd.SetErr(nil)
			return next(ctx, cmd)
		})
	}
}

// ProcessPipelineHook makes several commands at once.
func (h *hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		may := true
		for _, cmd := range cmds {
			kind := kindOf(cmd)
			if kind == passes {
				return next(ctx, cmds)
			}
			may = may && kind == repeatable
		}
		made := false
		err := h.call(ctx, "pipeline", may || declared(ctx), func(ctx context.Context) error {
			made = true
			for _, cmd := range cmds {
				cmd.SetErr(nil)
			}
			return next(ctx, cmds)
		})
		if err != nil && !made {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
		}
		return err
	}
}

func (h *hook) call(ctx context.Context, name string, idempotent bool, op func(context.Context) error) error {
	var err error
	spec := engine.Spec{Operation: name, NotIdempotent: !idempotent}
	r := h.d.Drive(ctx, spec, func(ctx context.Context) lull.Verdict {
		if err = op(ctx); err == nil {
			return lull.Verdict{Kind: lull.KindSuccess}
		}
		v := Classify(err)
		if v.Kind == lull.KindUnclassified && ctx.Err() != nil {
			return lull.Classify(ctx.Err())
		}
		return v
	}, nil, func() error { return err })
	if r.Reason == engine.Success || r.Attempts == 1 && r.Reason == engine.Permanent && isReply(err) {
		return err
	}
	return h.d.Error(name, r, err)
}

// isReply reports whether err is an answer of Redis.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// Classify returns the verdict on an error of go-redis, and falls back on lull.Classify. An answer
// is known by its first word, which Redis's protocol defines. NeverSent means that the command
// provably was not carried out.
func Classify(err error) lull.Verdict { return lull.VerdictOf(err, verdict) }

// unexecuted are the answers of a server that could not carry a command out, and may later.
var unexecuted = []string{"LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "READONLY", "BUSY", "NOREPLICAS"}

func verdict(err error) lull.Verdict {
	switch {
	case errors.Is(err, redis.Nil):
		return lull.Verdict{Kind: lull.KindSuccess}
	case isReply(err):
		for _, word := range unexecuted {
			if redis.HasErrorPrefix(err, word+" ") {
				return lull.Verdict{Kind: lull.KindTransient, NeverSent: true, Code: "redis_" + strings.ToLower(word)}
			}
		}
		if redis.IsMaxClientsError(err) {
			return lull.Verdict{Kind: lull.KindTransient, NeverSent: true, Code: "redis_max_clients"}
		}
		return lull.Verdict{Kind: lull.KindPermanent, Code: "redis_error"}
	case errors.Is(err, redis.ErrPoolTimeout): // it waited for a connection of the pool
		return lull.Verdict{Kind: lull.KindTransient, NeverSent: true, Code: "redis_pool_timeout"}
	case errors.Is(err, io.EOF):
		return lull.Verdict{Kind: lull.KindTransient, Code: "connection_lost"}
	}
	return lull.Classify(err)
}

type idempotentKey struct{}

// Idempotent returns a context for commands that may be carried out twice: a DEL whose result does
// not matter, a script that checks by itself.
func Idempotent(ctx context.Context) context.Context {
	return context.WithValue(ctx, idempotentKey{}, true)
}

func declared(ctx context.Context) bool { return ctx.Value(idempotentKey{}) != nil }

// commandKind is what is known of a command.
type commandKind uint8

const (
	once       commandKind = iota // it may not be carried out twice, or nothing is known of it
	repeatable                    // twice is the same as once, with the same result
	passes                        // it is no call: it is meant to wait, or belongs to a new connection
)

// commands are those of which something is known. A command whose second execution has another
// result than the first (DEL, SADD, EXPIRE: how many were changed) is none of them.
var commands = func() map[string]commandKind {
	m := map[string]commandKind{}
	for kind, names := range map[commandKind]string{
		repeatable: "get mget strlen getrange substr exists ttl pttl expiretime pexpiretime type keys scan randomkey dump object memory " +
			"hget hmget hgetall hkeys hvals hlen hexists hstrlen hscan hrandfield lrange lindex llen lpos " +
			"smembers sismember smismember scard srandmember sscan sinter sunion sdiff sintercard " +
			"zrange zrangebyscore zrangebylex zrevrange zrevrangebyscore zrevrangebylex zrank zrevrank zscore zmscore zcard zcount zlexcount zscan " +
			"zrandmember zinter zunion zdiff zintercard getbit bitcount bitpos pfcount geopos geodist geohash geosearch " +
			"xlen xrange xrevrange xinfo xpending eval_ro evalsha_ro fcall_ro json.get json.mget " +
			"ping echo time dbsize info command config lastsave role mset set setex psetex hmset",
		passes: "blpop brpop blmove brpoplpush blmpop bzpopmin bzpopmax bzmpop wait waitaof subscribe psubscribe ssubscribe monitor " +
			"hello auth select readonly",
	} {
		for _, name := range strings.Fields(names) {
			m[name] = kind
		}
	}
	return m
}()

func kindOf(cmd redis.Cmder) commandKind {
	name := cmd.Name()
	kind := commands[name]
	switch name {
	case "xread", "xreadgroup":
		if has(cmd, "block") {
			return passes
		}
		if name == "xread" {
			return repeatable
		}
	case "set": // with a condition, or the old value as its result, the second differs
		if has(cmd, "nx") || has(cmd, "xx") || has(cmd, "get") || has(cmd, "ifeq") || has(cmd, "ifne") || has(cmd, "ifdeq") || has(cmd, "ifdne") {
			return once
		}
	case "config": // SET, RESETSTAT, REWRITE change things
		if sub(cmd) != "get" {
			return once
		}
	case "client":
		switch sub(cmd) {
		case "setname", "setinfo", "tracking", "maint_notifications":
			return passes
		}
	}
	return kind
}

// sub is the second word of a command, in small letters.
func sub(cmd redis.Cmder) string {
	if args := cmd.Args(); len(args) > 1 {
		return strings.ToLower(fmt.Sprint(args[1]))
	}
	return ""
}

// has reports whether an option may be among the arguments. A key or value of that name counts too,
// which is on the safe side.
func has(cmd redis.Cmder, option string) bool {
	args := cmd.Args()
	for _, a := range args[min(len(args), 1):] {
		if s, ok := a.(string); ok && strings.EqualFold(s, option) {
			return true
		}
	}
	return false
}
