package lullredis

import (
	"testing"

	"github.com/redis/go-redis/v9"
)

// bare returns a client that neither repeats nor is under a policy.
func bare(t testing.TB, o redis.Options) *redis.Client {
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
	c := redis.NewClient(&o)
	t.Cleanup(func() { c.Close() })
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
