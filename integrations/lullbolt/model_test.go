package lullbolt

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/idempotency"
)

// Random calls, times and restarts, with few keys and owners so that they meet: the store answers as
// idempotency.MemoryStore does, which is held to a model of the contract.
func TestAnswersAsMemoryDoes(t *testing.T) { synctest.Test(t, answersAsMemoryDoes) }

func answersAsMemoryDoes(t *testing.T) {
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 1))
		path, ctx := temp(t), context.Background()
		s := open(t, path, Config{NoSync: true})
		memory := must.Have(idempotency.NewMemoryStore(idempotency.MemoryStoreConfig{}))
		for step := range 1500 {
			key := fmt.Sprint("key ", r.IntN(6))
			token := idempotency.FencingToken{1 + byte(r.IntN(4))}
			d := func() time.Duration { return time.Duration(1 + r.IntN(20)) }
			// both calls a method of the two stores.
			both := func(call func(idempotency.Store) (idempotency.ClaimResult, error)) {
				t.Helper()
				got, err := call(s)
				want, wantErr := call(memory)
				if !reflect.DeepEqual(got, want) || !errors.Is(err, wantErr) {
					t.Fatalf("seed %d, step %d: %+v, %v, want %+v, %v", seed, step, got, err, want, wantErr)
				}
			}
			own := func(call func(idempotency.Store) error) {
				t.Helper()
				both(func(s idempotency.Store) (idempotency.ClaimResult, error) { return idempotency.ClaimResult{}, call(s) })
			}
			switch what := r.IntN(20); {
			case what < 7:
				c := idempotency.Claim{Key: key, Token: token, Lease: d(), Resume: r.IntN(2) == 0}
				c.Fingerprint[0] = byte(r.IntN(8) / 7)
				c.Retention = c.Lease + d()*4
				both(func(s idempotency.Store) (idempotency.ClaimResult, error) { return s.Claim(ctx, c) })
			case what < 11:
				record, keep := fmt.Append(nil, step), d()
				own(func(s idempotency.Store) error { return s.Complete(ctx, key, token, record, keep) })
			case what < 14:
				lease, keep := d()*time.Duration(r.IntN(2)), d()
				own(func(s idempotency.Store) error { return s.Extend(ctx, key, token, lease, keep) })
			case what < 16:
				own(func(s idempotency.Store) error { return s.Release(ctx, key, token) })
			case what < 17:
				_, err := s.Sweep(ctx)
				if n, err2 := s.Len(); err != nil || err2 != nil || n != memory.Len() {
					t.Fatalf("seed %d, step %d: after Sweep %d entries are left, want %d; %v, %v", seed, step, n, memory.Len(), err, err2)
				}
			case what < 18 && step%10 == 0:
				must.Succeed(s.Close())
				s = open(t, path, Config{NoSync: true})
			default:
				time.Sleep(d() / 2)
			}
		}
		s.Close()
	}
}
