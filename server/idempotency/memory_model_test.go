package idempotency_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/server/idempotency"
)

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
