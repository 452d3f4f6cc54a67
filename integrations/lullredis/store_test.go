package lullredis

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull/internal/problem"
)

func mustStore(t testing.TB, c redis.UniversalClient, config StoreConfig) *Store {
	t.Helper()
	s, err := NewStore(c, config)
	must(t, err)
	return s
}

// A connection notices a deadline a little before its context does. The error is that of the context all the same.
func TestADeadlineThatOnlyTheConnectionHasNoticed(t *testing.T) {
	for left, ended := range map[time.Duration]bool{time.Millisecond: true, time.Second: false} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), left)
			defer cancel()
			if err := failure(ctx, "claim", os.ErrDeadlineExceeded); errors.Is(err, context.DeadlineExceeded) != ended || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%v before the end: %v", left, err)
			}
		})
	}
}

func TestStoreConfig(t *testing.T) {
	for _, c := range []struct {
		config StoreConfig
		wrong  []string
	}{
		{StoreConfig{}, nil},
		{StoreConfig{Prefix: "a", MaxRecord: 1, Replicas: 1, ReplicaTimeout: time.Millisecond}, nil},
		{StoreConfig{Prefix: "{", MaxRecord: -1, Replicas: -1, ReplicaTimeout: 1}, []string{"Prefix", "MaxRecord", "Replicas", "ReplicaTimeout"}},
		{StoreConfig{MaxRecord: maxBulk + 1}, []string{"MaxRecord"}},
	} {
		if got := problem.Fields(c.config.Validate()); !slices.Equal(got, c.wrong) {
			t.Errorf("%+v: wrong %q, want %q", c.config, got, c.wrong)
		}
	}
	deaf := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer deaf.Close()
	if _, err := NewStore(deaf, StoreConfig{}); err == nil {
		t.Error("a client that ignores deadlines was taken")
	}
	if _, err := NewStore(nil, StoreConfig{}); err == nil {
		t.Error("no client was taken")
	}
	heeding := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ContextTimeoutEnabled: true})
	defer heeding.Close()
	if _, err := NewStore(heeding, StoreConfig{Replicas: -1}); err == nil {
		t.Error("less than no replicas were taken")
	}
	a, b := mustStore(t, heeding, StoreConfig{}), mustStore(t, heeding, StoreConfig{Prefix: "x"})
	if k := a.RedisKey("s:{k}%"); k != "lull:idempotency:{s:%7Bk%7D%25}" {
		t.Errorf("key %q", k)
	}
	if k := b.RedisKey("s:k"); k != "x:{s:k}" {
		t.Errorf("key %q", k)
	}
}

func TestMilliseconds(t *testing.T) {
	for d, want := range map[time.Duration]int64{-1: 0, 0: 0, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, 1<<63 - 1: 9223372036855} {
		if got := millis(d); got != want {
			t.Errorf("%v is %d ms, want %d", d, got, want)
		}
	}
	if duration(5) != 5*time.Millisecond || duration(1<<62) != 1<<63-1 {
		t.Error("milliseconds as a Duration")
	}
}
