package lullredis

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// A nodeHook is the hook of one server of a cluster or ring. A cluster's client repeats commands by itself, also after a lost
// connection. The node prevents that where the command may have been carried out.
type nodeHook struct{ *dialer }

// A clusterAttempt is one attempt of a call through a cluster's client, which may divide it and follow redirections.
type clusterAttempt struct {
	cmd        redis.Cmder // of a single command
	onceOnly   bool        // carrying it out twice is not the same as once
	carriedOut atomic.Bool // a part of it may have been carried out
	waited     atomic.Bool // a part of a pipeline waited in vain for a connection of a pool
	failed     atomic.Bool // a part of a pipeline failed in another way
}

type clusterAttemptKey struct{}

// ProcessHook sends one command, or the part of it that is the node's.
func (n nodeHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s, _ := ctx.Value(clusterAttemptKey{}).(*clusterAttempt)
		before := n.dialsSoFar()
		err := n.asPoolTimeout(before, next(ctx, cmd))
		if s == nil || greetings[cmd.Name()] {
			return n.asGreetingFailure(err, cmd)
		}
		return s.errorForCluster(cmd, err)
	}
}

// ProcessPipelineHook sends the commands that are the node's.
func (n nodeHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		s, _ := ctx.Value(clusterAttemptKey{}).(*clusterAttempt)
		before := n.dialsSoFar()
		if s == nil || greetings[cmds[0].Name()] {
			err := n.asGreetingFailure(n.asPoolTimeout(before, next(ctx, cmds), cmds...), cmds...)
			setMissingErrors(cmds, err)
			return err
		}
		err := n.asPoolTimeout(before, next(ctx, s.preventRepeats(cmds)), cmds...)
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
func (s *clusterAttempt) errorForCluster(cmd redis.Cmder, err error) error {
	v := verdict(cmd, err, s.onceOnly, true)
	if !v.NeverSent {
		s.carriedOut.Store(true)
	}
	if v.CallerSide() {
		return finalError{err}
	}
	if !s.onceOnly || err == nil || errors.Is(err, redis.Nil) || v.NeverSent && (cmd == s.cmd || redirections[v.Code]) {
		return err
	}
	return finalError{err}
}

// preventRepeats returns cmds in a form that the cluster's client repeats only after a redirection, or if there was no connection.
func (s *clusterAttempt) preventRepeats(cmds []redis.Cmder) []redis.Cmder {
	if !s.onceOnly {
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

// noRetry is a command that go-redis does not repeat, nor the commands beside it.
type noRetry struct{ redis.Cmder }

func (noRetry) NoRetry() bool { return true }

// finalError is an error after which a cluster's client does not repeat.
type finalError struct{ err error }

func (e finalError) Error() string { return "lullredis: " + e.err.Error() }
