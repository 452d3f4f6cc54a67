package lullredis

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// optionsOf returns the name of the type of a client's options, whether the client obeys the deadlines of contexts, how often
// it repeats commands, and how often it dials. The name is empty for a client that is not go-redis's own.
func optionsOf(client redis.UniversalClient) (name string, deadlines bool, retries, dials int) {
	switch c := client.(type) {
	case *redis.Client:
		o := c.Options()
		return "redis.Options", o.ContextTimeoutEnabled, o.MaxRetries, o.DialerRetries
	case *redis.ClusterClient:
		o := c.Options()
		return "redis.ClusterOptions", o.ContextTimeoutEnabled, o.MaxRetries, o.DialerRetries
	case *redis.Ring:
		o := c.Options()
		return "redis.RingOptions", o.ContextTimeoutEnabled, o.MaxRetries, o.DialerRetries
	}
	return "", true, 0, 1
}

// respectsDeadlines returns an error if client visibly ignores the deadlines of contexts.
func respectsDeadlines(client redis.UniversalClient) error {
	if client == nil {
		return errors.New("lullredis: the client is nil: want one from redis.NewClient or redis.NewUniversalClient")
	}
	if options, deadlines, _, _ := optionsOf(client); !deadlines {
		return errors.New("lullredis: the client ignores the deadlines of contexts, so that a server which stops answering would hold it for seconds: " +
			"set ContextTimeoutEnabled in its " + options + " (or in redis.UniversalOptions), or hand in a client of its own that has it set")
	}
	return nil
}

// pipeline returns the exchange through client. It sends all scripts at once, by their digest.
// Scripts that the server does not have yet are sent once more, in full.
func pipeline(client redis.UniversalClient) exchangeFunc {
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
		cmds[i] = call(ctx, pipe, keys(s.budget.fleet.config.Prefix, s.budget.name), s.request.args(s.id, s.budget.ledger.settings)...)
	}
	_, failed := pipe.Exec(ctx)
	for i, s := range batch {
		v, err := cmds[i].Result()
		if err == nil && v == nil {
			err = failed // a failure of the pipeline, which does not reach every command
		}
		if err == nil {
			s.answer, err = parseAnswer(v)
		}
		s.err = err
	}
}
