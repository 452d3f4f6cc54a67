package lullredis

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// respectsDeadlines returns an error if client visibly ignores the deadlines of contexts.
func respectsDeadlines(client redis.UniversalClient) error {
	var heeds bool
	var options string
	switch c := client.(type) {
	case nil:
		return errors.New("lullredis: the client is nil: want one from redis.NewClient or redis.NewUniversalClient")
	case *redis.Client:
		heeds, options = c.Options().ContextTimeoutEnabled, "redis.Options"
	case *redis.ClusterClient:
		heeds, options = c.Options().ContextTimeoutEnabled, "redis.ClusterOptions"
	case *redis.Ring:
		heeds, options = c.Options().ContextTimeoutEnabled, "redis.RingOptions"
	default:
		return nil
	}
	if !heeds {
		return errors.New("lullredis: the client ignores the deadlines of contexts, so that a server which stops answering would hold it for seconds: " +
			"set ContextTimeoutEnabled in its " + options + " (or in redis.UniversalOptions), or hand in a client of its own that has it set")
	}
	return nil
}

// pipeline returns the exchange through client. It sends all scripts at once, by their digest.
// Those that the server does not have yet are sent once more, in full.
func pipeline(client redis.UniversalClient) exchange {
	return func(ctx context.Context, batch []*budgetSync) {
		var again []*budgetSync
		send(ctx, client, batch, script.EvalSha)
		for _, s := range batch {
			if s.err != nil && redis.HasErrorPrefix(s.err, "NOSCRIPT") {
				again = append(again, s)
			}
		}
		if len(again) > 0 {
			send(ctx, client, again, script.Eval)
		}
	}
}

func send(ctx context.Context, client redis.UniversalClient, batch []*budgetSync, call func(context.Context, redis.Scripter, []string, ...any) *redis.Cmd) {
	pipe := client.Pipeline()
	cmds := make([]*redis.Cmd, len(batch))
	for i, s := range batch {
		f := s.budget.fleet.config
		args := s.request.args(s.id, s.budget.ledger.terms, gapAfter*f.Every, recentAfter*f.Every, memory)
		cmds[i] = call(ctx, pipe, keys(f.Prefix, s.budget.name), args...)
	}
	_, failed := pipe.Exec(ctx)
	for i, s := range batch {
		v, err := cmds[i].Result()
		if err == nil && v == nil {
			err = failed // a failure of the pipeline, which does not reach every command
		}
		if err == nil {
			s.answer, err = read(v)
		}
		s.err = err
	}
}
