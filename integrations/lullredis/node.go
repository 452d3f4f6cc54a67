package lullredis

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// A node is the hook of one server of a cluster or ring. A cluster's client repeats commands by itself, also after a lost
// connection. The node prevents that where the command may have been carried out.
type node struct{ *dialer }

// A sending is one attempt of a call through a cluster's client, which may divide it and follow redirections.
type sending struct {
	cmd        redis.Cmder // of a single command
	once       bool        // carrying it out twice is not the same as once
	carriedOut atomic.Bool // a part of it may have been
	waited     atomic.Bool // a part of it, of a pipeline, for a connection of a pool, in vain
	failed     atomic.Bool // a part of it, of a pipeline, in another way
}

type sendingKey struct{}

// ProcessHook sends one command, or the part of it that is the node's.
func (n node) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s, _ := ctx.Value(sendingKey{}).(*sending)
		before := n.dialsSoFar()
		err := n.asPoolTimeout(before, next(ctx, cmd))
		if s == nil || greetings[cmd.Name()] {
			return n.asGreetingFailure(err, cmd)
		}
		return s.errorForCluster(cmd, err)
	}
}

// ProcessPipelineHook sends the commands that are the node's.
func (n node) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		s, _ := ctx.Value(sendingKey{}).(*sending)
		before := n.dialsSoFar()
		if s == nil || greetings[cmds[0].Name()] {
			err := n.asGreetingFailure(n.asPoolTimeout(before, next(ctx, cmds), cmds...), cmds...)
			setMissingErrors(cmds, err)
			return err
		}
		err := n.asPoolTimeout(before, next(ctx, s.guarded(cmds)), cmds...)
		switch {
		case errors.Is(err, redis.ErrPoolTimeout):
			s.waited.Store(true)
		case err != nil && !isReply(err):
			s.failed.Store(true)
		}
		if s.cmd != nil { // behind ASKING
			return s.errorForCluster(s.cmd, err)
		}
		return err
	}
}

// errorForCluster returns err as the cluster's client is to see it.
func (s *sending) errorForCluster(cmd redis.Cmder, err error) error {
	v := verdict(cmd, err, s.once, true)
	if !v.NeverSent {
		s.carriedOut.Store(true)
	}
	if v.CallerSide() {
		return heldBack{err}
	}
	if !s.once || err == nil || errors.Is(err, redis.Nil) || v.NeverSent && (cmd == s.cmd || redirections[v.Code]) {
		return err
	}
	return heldBack{err}
}

// guarded returns cmds in a form that the cluster's client repeats only after a redirection, or if there was no connection.
func (s *sending) guarded(cmds []redis.Cmder) []redis.Cmder {
	if !s.once {
		return cmds
	}
	for i, cmd := range cmds {
		if name := cmd.Name(); connectionBound[name] && name != "asking" {
			return cmds // a transaction, which it repeats only if it was discarded
		} else if !connectionBound[name] && !strings.HasPrefix(name, "himport") { // whose type it must see
			cmds = append([]redis.Cmder(nil), cmds...)
			cmds[i] = noRetry{cmd}
			return cmds
		}
	}
	return cmds
}

// noRetry is a command after which go-redis repeats neither it nor its neighbours.
type noRetry struct{ redis.Cmder }

func (noRetry) NoRetry() bool { return true }

// heldBack is an error that a cluster's client takes for final.
type heldBack struct{ err error }

func (e heldBack) Error() string { return "lullredis: " + e.err.Error() }
