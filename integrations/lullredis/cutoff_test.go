package lullredis

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/cutofftest"
)

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
