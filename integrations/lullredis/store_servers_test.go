//go:build servers

package lullredis

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/idempotency"
	"github.com/lullgo/lull/server/idempotency/storetest"
)

// storeClient returns a client for a Store.
func storeClient(t testing.TB, addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, MaxRetries: -1, PoolSize: 20, PoolTimeout: 20 * time.Second})
	t.Cleanup(func() { c.Close() })
	return c
}

func TestRedisIsAStore(t *testing.T) {
	t.Parallel()
	eachProgram(t, func(t *testing.T, s *server) {
		storetest.Run(t, func(t *testing.T) idempotency.Store { return mustStore(t, storeClient(t, s.addr), StoreConfig{}) }, storetest.Options{})
	})
}

// The limit on records is enforced, and only owners get its error.
func TestARedisWithSmallRecordsIsAStore(t *testing.T) {
	t.Parallel()
	s := needServer(t)
	storetest.Run(t, func(t *testing.T) idempotency.Store {
		return mustStore(t, storeClient(t, s.addr), StoreConfig{MaxRecord: 1 << 20})
	}, storetest.Options{MaxRecord: 1 << 20, Concurrent: 20})
	st := mustStore(t, storeClient(t, s.addr), StoreConfig{MaxRecord: 3})
	c := newClaim()
	check.Is(t, st.Complete(t.Context(), c.Key, c.Token, []byte("long"), time.Hour), idempotency.ErrFenced, "a long record for no entry")
	claims(t, st, c, idempotency.Claimed)
	check.Is(t, st.Complete(t.Context(), c.Key, c.Token, []byte("long"), time.Hour), idempotency.ErrTooLarge, "a long record")
	must.Succeed(st.Complete(t.Context(), c.Key, c.Token, []byte("ok"), time.Hour))
	check.Is(t, st.Complete(t.Context(), c.Key, c.Token, []byte("long"), time.Hour), nil, "a long record after it was completed")
}

// A cluster, without replicas and with one that the store waits for.
func TestAClusterIsAStore(t *testing.T) {
	t.Parallel()
	s, ctx := oneNode(t), context.Background()
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.addr}, ContextTimeoutEnabled: true, MaxRedirects: 8, PoolSize: 20})
	t.Cleanup(func() { c.Close() })
	storetest.Run(t, func(t *testing.T) idempotency.Store { return mustStore(t, c, StoreConfig{}) }, storetest.Options{Concurrent: 50})
	if _, err := mustStore(t, c, StoreConfig{Replicas: 1, ReplicaTimeout: time.Millisecond}).Claim(ctx, newClaim()); err == nil || !strings.Contains(err.Error(), "0 replicas have it") {
		t.Errorf("a claim that waits for a replica that is not there: %v", err)
	}
}

// A claim that comes to Redis after its caller's deadline changes nothing, whatever was there. The
// answer has Redis' time, so the next one is in time.
func TestLateClaims(t *testing.T) {
	t.Parallel()
	c := storeClient(t, needServer(t).addr)
	s := mustStore(t, c, StoreConfig{})
	for name, before := range map[string]func(claim idempotency.Claim) error{
		"new":   func(idempotency.Claim) error { return nil },
		"owned": func(claim idempotency.Claim) error { claims(t, s, claim, idempotency.Claimed); return nil },
		"given up by another": func(claim idempotency.Claim) error {
			claim.Token = newClaim().Token
			claims(t, s, claim, idempotency.Claimed)
			return s.Extend(t.Context(), claim.Key, claim.Token, 0, time.Hour)
		},
	} {
		claim := newClaim()
		claim.Resume = true
		must.Succeed(before(claim))
		there := func() map[string]string { return c.HGetAll(t.Context(), s.RedisKey(claim.Key)).Val() }
		was := there()
		v, err := s.run(t.Context(), "claim", claimScript, claim.Key, claim.Fingerprint[:], claim.Token[:], 1, 1, "1", "1") // a deadline in 1970
		if a, now, ok := parseClaim(v); err != nil || !ok || a.State != late || now < 1e12 || !maps.Equal(there(), was) {
			t.Errorf("%s: a late claim: %v, %v; %v became %v", name, v, err, was, there())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		s.clock.Read(1)
		if a, err := s.Claim(ctx, claim); err != nil || a.State != idempotency.Claimed {
			t.Errorf("%s: a claim after a wrong reading of the clock: %v, %v", name, a.State, err)
		}
		cancel()
	}
}

// Servers are killed at each step, and others answer the retries.
func TestRedisMatrix(t *testing.T) {
	t.Parallel()
	storetest.Matrix(t, storetest.Outliving{
		Place: func(t *testing.T) string { return needServer(t).addr },
		Open: func(t *testing.T, addr string) idempotency.Store {
			return mustStore(t, storeClient(t, addr), StoreConfig{})
		},
		Address: func(place string) (string, func(string) string) {
			return place, func(addr string) string { return addr }
		},
	})
}

func newClaim() idempotency.Claim {
	c := idempotency.Claim{Key: rand.Text(), Lease: time.Hour, Retention: 2 * time.Hour}
	rand.Read(c.Token[:])
	return c
}

func claims(t *testing.T, s *Store, c idempotency.Claim, want idempotency.KeyState) {
	t.Helper()
	if a, err := s.Claim(t.Context(), c); err != nil || a.State != want {
		t.Fatalf("Claim: %v, %v, want %v", a.State, err, want)
	}
}

// pair returns a master and a replica that has all of its data.
func pair(t *testing.T) (master, replica *server) {
	master = needServer(t, "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1")
	host, port, _ := strings.Cut(master.addr, ":")
	replica = needServer(t, "--replicaof", host+" "+port)
	c := storeClient(t, replica.addr)
	await(t, "replicating", func() bool {
		return strings.Contains(c.Info(context.Background(), "replication").Val(), "master_link_status:up")
	})
	return master, replica
}

func TestAStoreThatWaitsForReplicasIsAStore(t *testing.T) {
	t.Parallel()
	master, _ := pair(t)
	storetest.Run(t, func(t *testing.T) idempotency.Store {
		return mustStore(t, storeClient(t, master.addr), StoreConfig{Replicas: 1, ReplicaTimeout: 20 * time.Second})
	}, storetest.Options{Concurrent: 50})
}

// A claim that waits for replicas is sent once, whatever the answer: whole again only if the server does not know the script.
func TestAClaimThatFailedIsNotSentAgain(t *testing.T) {
	t.Parallel()
	s := needServer(t)
	admin := s.client(t)
	st := mustStore(t, storeClient(t, s.addr), StoreConfig{Replicas: 1, ReplicaTimeout: time.Millisecond})
	if _, err := st.Claim(t.Context(), newClaim()); err == nil || callsOf(admin, "eval") != 1 {
		t.Errorf("%v after %d scripts, want that no replica has it", err, callsOf(admin, "eval"))
	}
	for _, command := range []string{"REPLICAOF 127.0.0.1 1", "CONFIG RESETSTAT"} {
		must.Succeed(do(admin, command))
	}
	_, err := st.Claim(t.Context(), newClaim())
	if whole, digest := callsOf(admin, "eval"), callsOf(admin, "evalsha"); whole != 0 || digest != 1 || err == nil {
		t.Errorf("%v after %d scripts by their digest and %d whole ones", err, digest, whole)
	}
}

// The key has a value of another kind, or the answer is malformed.
func TestAStoreWhoseKeysAreTaken(t *testing.T) {
	t.Parallel()
	s := needServer(t)
	c := storeClient(t, s.addr)
	st := mustStore(t, c, StoreConfig{})
	cl := newClaim()
	c.Set(t.Context(), st.RedisKey(cl.Key), "x", 0)
	if a, err := st.Claim(t.Context(), cl); err == nil || a.State != 0 {
		t.Errorf("%+v, %v", a, err)
	}
	if err := st.Release(t.Context(), cl.Key, cl.Token); err == nil || errors.Is(err, idempotency.ErrFenced) {
		t.Errorf("%v", err)
	}
	const n = int64(0)
	for _, v := range []any{nil, "x", []any{}, []any{n, n, n}, []any{int64(-1), n, n, n}, []any{int64(6), n, n, n}, []any{int64(1), "", n, n}, []any{int64(1), n, n, ""},
		[]any{int64(3), n, n, n}, []any{int64(3), n, n, n, n}, []any{int64(1), n, n, n, "x"}} {
		if a, _, ok := parseClaim(v); ok {
			t.Errorf("%v was read as %+v", v, a)
		}
	}
}

// A first request: claim and complete, with a record of 2 KiB, 16 callers at once.
func BenchmarkStore(b *testing.B) {
	st := mustStore(b, storeClient(b, needServer(b).addr), StoreConfig{})
	record := make([]byte, 2048)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c := newClaim()
			if a, err := st.Claim(ctx, c); err != nil || a.State != idempotency.Claimed {
				b.Errorf("%v, %v", a.State, err)
				return
			}
			if err := st.Complete(ctx, c.Key, c.Token, record, time.Minute); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
