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

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/idempotency"
	"github.com/lullgo/lull/server/idempotency/storetest"
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
				must.Succeed(store.Release(ctx, key, c.Token))
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

func newMemory(t testing.TB, c idempotency.MemoryStoreConfig) *idempotency.MemoryStore {
	t.Helper()
	return must.Have(idempotency.NewMemoryStore(c))
}

func TestMemoryIsAStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) idempotency.Store { return newMemory(t, idempotency.MemoryStoreConfig{}) }, storetest.Options{Virtual: true})
}

// model is the contract of Store, written down as slowly as it reads: a list of
// entries, and a clock that is set.
type model struct {
	now     time.Duration
	entries map[string]*modelEntry
}

type modelEntry struct {
	claim             idempotency.Claim // fingerprint and token
	done, resumed     bool
	record            string
	leaseEnd, forgets time.Duration
}

func (m *model) entry(key string) *modelEntry {
	e := m.entries[key]
	if e != nil && m.now >= e.forgets {
		delete(m.entries, key)
		return nil
	}
	return e
}

func (m *model) claim(c idempotency.Claim) idempotency.ClaimResult {
	e := m.entry(c.Key)
	if e == nil {
		m.entries[c.Key] = &modelEntry{claim: c, leaseEnd: m.now + c.Lease, forgets: m.now + c.Retention}
		return idempotency.ClaimResult{State: idempotency.Claimed}
	}
	if e.claim.Fingerprint != c.Fingerprint {
		return idempotency.ClaimResult{State: idempotency.Mismatch}
	}
	if e.done {
		return idempotency.ClaimResult{State: idempotency.Replay, Record: []byte(e.record)}
	}
	if e.claim.Token != c.Token {
		if m.now < e.leaseEnd {
			return idempotency.ClaimResult{State: idempotency.InFlight, Remaining: e.leaseEnd - m.now}
		}
		if !c.Resume {
			return idempotency.ClaimResult{State: idempotency.Unknown}
		}
		e.resumed = true
	}
	e.claim.Token, e.leaseEnd, e.forgets = c.Token, m.now+c.Lease, m.now+c.Retention
	return idempotency.ClaimResult{State: idempotency.Claimed, Resumed: e.resumed}
}

func (m *model) owned(key string, token idempotency.FencingToken) *modelEntry {
	if e := m.entry(key); e != nil && e.claim.Token == token {
		return e
	}
	return nil
}

// Random calls with few keys, owners and requests: MemoryStore answers as the model does.
func TestMemoryAgainstModel(t *testing.T) { synctest.Test(t, memoryAgainstModel) }

func memoryAgainstModel(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		store := newMemory(t, idempotency.MemoryStoreConfig{})
		ref := &model{entries: map[string]*modelEntry{}}
		ctx := context.Background()
		for step := range 500 {
			later := time.Duration(r.IntN(4)) * time.Second
			time.Sleep(later)
			ref.now += later
			key := string(rune('a' + r.IntN(6)))
			token := idempotency.FencingToken{1: byte(1 + r.IntN(3))}
			lease, retention := time.Duration(r.IntN(6))*time.Second, time.Duration(5+r.IntN(20))*time.Second
			e := ref.owned(key, token)
			var got, want error
			switch r.IntN(6) {
			default:
				c := idempotency.Claim{Key: key, Token: token, Fingerprint: idempotency.Fingerprint{byte(r.IntN(8) / 7)}, Lease: lease + 1, Retention: retention, Resume: r.IntN(2) == 0}
				a, err := store.Claim(ctx, c)
				b := ref.claim(c)
				if err != nil || a.State != b.State || a.Resumed != b.Resumed || a.Remaining != b.Remaining || string(a.Record) != string(b.Record) {
					t.Fatalf("seed %d, step %d: Claim(%+v) = %+v, %v, want %+v", seed, step, c, a, err, b)
				}
			case 3:
				got = store.Extend(ctx, key, token, lease, retention)
				if e == nil || e.done {
					want = idempotency.ErrFenced
				} else {
					e.leaseEnd, e.forgets = ref.now+lease, ref.now+retention
				}
			case 4:
				record := string(rune('A' + r.IntN(26)))
				got = store.Complete(ctx, key, token, []byte(record), retention)
				if e == nil {
					want = idempotency.ErrFenced
				} else if !e.done {
					e.done, e.record, e.forgets = true, record, ref.now+retention
				}
			case 5:
				got = store.Release(ctx, key, token)
				if e == nil || e.done {
					want = idempotency.ErrFenced
				} else {
					delete(ref.entries, key)
				}
			}
			if !errors.Is(got, want) || want == nil && got != nil {
				t.Fatalf("seed %d, step %d: key %s, token %d: %v, want %v", seed, step, key, token[1], got, want)
			}
			alive := 0
			for key := range ref.entries {
				if ref.entry(key) != nil {
					alive++
				}
			}
			if n := store.Len(); n != alive {
				t.Fatalf("seed %d, step %d: %d entries, want %d", seed, step, n, alive)
			}
		}
		time.Sleep(time.Hour)
		if n, bytes := store.Len(), idempotency.Bytes(store); n != 0 || bytes != 0 {
			t.Fatalf("seed %d: in the end %d entries and %d bytes are left", seed, n, bytes)
		}
	}
}
