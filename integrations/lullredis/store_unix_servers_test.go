//go:build servers && unix

package lullredis

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/idempotency"
)

// A server stands still. Calls return when their context ends, by a deadline or by a caller that
// went away.
func TestAStoreThatStandsStill(t *testing.T) {
	t.Parallel()
	s := needServer(t)
	patient := redis.NewClient(&redis.Options{Addr: s.addr, ContextTimeoutEnabled: true, MaxRetries: -1, ReadTimeout: -1, WriteTimeout: -1})
	defer patient.Close()
	st := mustStore(t, patient, StoreConfig{})
	c := newClaim()
	claims(t, st, c, idempotency.Claimed)
	admin := s.client(t)
	scripts := func() int { return callsOf(admin, "eval") + callsOf(admin, "evalsha") }
	before, late := scripts(), newClaim()
	s.Process.Signal(syscall.SIGSTOP)
	deadline, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond) // on the connection that there is
	defer cancel()
	if _, err := st.Claim(deadline, late); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Claim: %v", err)
	}
	going, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	check.Is(t, st.Extend(going, c.Key, c.Token, time.Hour, 2*time.Hour), context.Canceled, "Extend")
	s.Process.Signal(syscall.SIGCONT)
	await(t, "carried out what it has received", func() bool { return scripts() > before })
	if n := admin.Exists(t.Context(), st.RedisKey(late.Key)).Val(); n > 0 {
		t.Error("a claim that came after its deadline holds the key")
	}
	must.Succeed(st.Complete(t.Context(), c.Key, c.Token, []byte("done"), time.Hour))
}

// A replica is promoted while the old master still takes claims, as a failover can do. The new
// master does not have these claims. A caller that waited for the replica got an error.
func TestAFailoverMayLoseAClaim(t *testing.T) {
	t.Parallel()
	for _, replicas := range []int{0, 1} {
		master, replica := pair(t)
		old := mustStore(t, storeClient(t, master.addr), StoreConfig{Replicas: replicas, ReplicaTimeout: 100 * time.Millisecond})
		before, after := newClaim(), newClaim()
		claims(t, mustStore(t, storeClient(t, master.addr), StoreConfig{Replicas: 1, ReplicaTimeout: 20 * time.Second}), before, idempotency.Claimed)
		next := storeClient(t, replica.addr)
		must.Succeed(next.ReplicaOf(t.Context(), "NO", "ONE").Err())
		a, err := old.Claim(t.Context(), after)
		if claimed := err == nil && a.State == idempotency.Claimed; claimed != (replicas == 0) {
			t.Errorf("waiting for %d replicas, of which there are none any more: %v, %v", replicas, a.State, err)
		}
		promoted := mustStore(t, next, StoreConfig{})
		before.Token, after.Token = newClaim().Token, newClaim().Token
		claims(t, promoted, before, idempotency.InFlight) // it had been waited for
		claims(t, promoted, after, idempotency.Claimed)   // and this one is lost
	}
}

// A repeated completion writes nothing, and still waits for replicas.
func TestACompletionThatIsRepeatedIsWaitedFor(t *testing.T) {
	t.Parallel()
	master, replica := pair(t)
	c := newClaim()
	claims(t, mustStore(t, storeClient(t, master.addr), StoreConfig{Replicas: 1, ReplicaTimeout: 20 * time.Second}), c, idempotency.Claimed)
	replica.Process.Signal(syscall.SIGSTOP)
	defer replica.Process.Signal(syscall.SIGCONT)
	for _, replicas := range []int{0, 1, 1} {
		st := mustStore(t, storeClient(t, master.addr), StoreConfig{Replicas: replicas, ReplicaTimeout: 50 * time.Millisecond})
		if err := st.Complete(t.Context(), c.Key, c.Token, []byte("done"), time.Hour); (err == nil) != (replicas == 0) {
			t.Errorf("waiting for %d replicas, and the one there is stands still: %v", replicas, err)
		}
	}
}
