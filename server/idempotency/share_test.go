package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/server/idempotency"
)

// One caller that takes all it can get is refused new keys, but not its old ones, and all others go on.
func TestOneCallerCannotFillTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newMemory(t, idempotency.MemoryStoreConfig{MaxEntries: 10}), idempotency.Config{})
		h := r.m.Wrap(&counter{})
		by := func(caller, key string) result {
			req := request(key)
			req.Header.Set("Authorization", caller)
			return send(t, h, req)
		}
		for i := range 5 {
			by("evil", fmt.Sprint("k", i)).ran(t, 201, fmt.Sprint("receipt ", i+1))
		}
		refusal := by("evil", "more")
		refusal.is(t, 429, "too-many-keys")
		if refusal.header.Get("X-Should-Retry") != "false" || !strings.Contains(refusal.body, "24 hours") {
			t.Errorf("a refusal: %v %s", refusal.header, refusal.body)
		}
		by("evil", "k0").replays(t, 201, "receipt 1")
		by("honest", "k0").ran(t, 201, "receipt 6")
		by("honest", "k0").replays(t, 201, "receipt 6")
		r.saw("ran", "ran", "ran", "ran", "ran", "refused-share", "replayed", "ran", "replayed")
	})
}

// Random callers, claims, records and ends: a caller gets more exactly if what it then
// holds is no more than what was left, and nothing is counted that is gone.
func TestSharesAgainstModel(t *testing.T) { synctest.Test(t, sharesAgainstModel) }

func sharesAgainstModel(t *testing.T) {
	type mine struct{ entries, bytes int }
	type kept struct {
		claim idempotency.Claim
		bytes int
		ends  time.Duration
	}
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 30))
		const maxEntries, maxBytes = 40, 4000
		store := newMemory(t, idempotency.MemoryStoreConfig{MaxEntries: maxEntries, MaxBytes: maxBytes})
		ctx := context.Background()
		var now time.Duration
		entries := map[string]*kept{}
		holds := func(caller string) (m, all mine) {
			for _, e := range entries {
				if now >= e.ends {
					continue
				}
				all.entries, all.bytes = all.entries+1, all.bytes+e.bytes
				if e.claim.Caller == caller {
					m.entries, m.bytes = m.entries+1, m.bytes+e.bytes
				}
			}
			return m, all
		}
		for step := range 400 {
			later := time.Duration(r.IntN(3)) * time.Second
			time.Sleep(later)
			now += later
			caller := []string{"", "a", "a", "a", "a", "b", "b", "c"}[r.IntN(8)]
			key := fmt.Sprintf("%s:%d", caller, step)
			c := idempotency.Claim{Key: key, Caller: caller, Token: idempotency.FencingToken{1}, Lease: time.Second, Retention: time.Duration(1+r.IntN(60)) * time.Second}
			have, all := holds(caller)
			_, err := store.Claim(ctx, c)
			full := all.entries >= maxEntries || len(key) > maxBytes-all.bytes
			over := !full && caller != "" && (have.entries+1 > maxEntries-all.entries || have.bytes+len(key) > maxBytes-all.bytes)
			if errors.Is(err, idempotency.ErrFull) != (full || over) || errors.Is(err, idempotency.ErrShare) != over || err != nil && !full && !over {
				t.Fatalf("seed %d, step %d: caller %q holds %+v of %+v: %v", seed, step, caller, have, all, err)
			}
			if err != nil {
				continue
			}
			entries[key] = &kept{claim: c, bytes: len(key), ends: now + c.Retention}
			have, all = holds(caller)
			switch r.IntN(4) {
			case 0:
				if err := store.Release(ctx, key, c.Token); err != nil {
					t.Fatal(err)
				}
				delete(entries, key)
			case 1, 2:
				n := 17 + r.IntN(400)
				if r.IntN(4) == 0 { // all that is left
					n = max(17, maxBytes-all.bytes)
				}
				err := store.Complete(ctx, key, c.Token, make([]byte, n), c.Retention)
				large := n > maxBytes-all.bytes || caller != "" && have.bytes+n > maxBytes-all.bytes
				if errors.Is(err, idempotency.ErrTooLarge) != large || err != nil && !large {
					t.Fatalf("seed %d, step %d: a record of %d bytes, caller %q holds %+v of %+v: %v", seed, step, n, caller, have, all, err)
				}
				if err == nil {
					entries[key].bytes += n
				}
			}
		}
		time.Sleep(time.Hour)
		if n := store.Len(); n != 0 || idempotency.Bytes(store) != 0 || idempotency.Holders(store) != 0 {
			t.Fatalf("seed %d: in the end %d entries, %d bytes and %d callers are counted", seed, n, idempotency.Bytes(store), idempotency.Holders(store))
		}
	}
}
