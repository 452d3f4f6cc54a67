package lullbolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	lullbolt "github.com/lullgo/lull/integrations/lullbolt"
	"github.com/lullgo/lull/server/idempotency"
)

// model is the contract of idempotency.Store, as simple as possible.
type model struct {
	now     time.Duration
	entries map[string]*modelEntry
}

type modelEntry struct {
	fingerprint        idempotency.Fingerprint
	token              idempotency.Token
	completed, resumed bool
	lease, forget      time.Duration
	record             []byte
}

func (m *model) at(key string) *modelEntry {
	if e := m.entries[key]; e != nil && m.now < e.forget {
		return e
	}
	return nil
}

func (m *model) claim(c idempotency.Claim) idempotency.Answer {
	e := m.at(c.Key)
	if e == nil {
		m.entries[c.Key] = &modelEntry{fingerprint: c.Fingerprint, token: c.Token, lease: m.now + c.Lease, forget: m.now + c.Retention}
		return idempotency.Answer{State: idempotency.Claimed}
	}
	if e.fingerprint != c.Fingerprint {
		return idempotency.Answer{State: idempotency.Mismatch}
	}
	if e.completed {
		return idempotency.Answer{State: idempotency.Replay, Record: e.record}
	}
	if e.token != c.Token {
		if m.now < e.lease {
			return idempotency.Answer{State: idempotency.InFlight, Remaining: e.lease - m.now}
		}
		if !c.Resume {
			return idempotency.Answer{State: idempotency.Unknown}
		}
		e.token, e.resumed = c.Token, true
	}
	e.lease, e.forget = m.now+c.Lease, m.now+c.Retention
	return idempotency.Answer{State: idempotency.Claimed, Resumed: e.resumed}
}

func (m *model) own(key string, token idempotency.Token) *modelEntry {
	if e := m.at(key); e != nil && e.token == token {
		return e
	}
	return nil
}

// Random calls, times and restarts, with few keys and owners so that they meet.
func TestModel(t *testing.T) {
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 1))
		path := temp(t)
		m := &model{entries: map[string]*modelEntry{}}
		s := open(t, path, lullbolt.Config{NoSync: true})
		clock := lullbolt.Freeze(s)
		ctx := context.Background()
		for step := range 1500 {
			key := fmt.Sprint("key ", r.IntN(6))
			var token idempotency.Token
			token[0] = 1 + byte(r.IntN(4))
			d := func() time.Duration { return time.Duration(1 + r.IntN(20)) }
			var got, want any
			switch what := r.IntN(20); {
			case what < 7:
				c := idempotency.Claim{Key: key, Token: token, Lease: d(), Resume: r.IntN(2) == 0}
				c.Fingerprint[0] = byte(r.IntN(8) / 7)
				c.Retention = c.Lease + d()*4
				a, err := s.Claim(ctx, c)
				if err != nil {
					t.Fatal(err)
				}
				b := m.claim(c)
				if !bytes.Equal(a.Record, b.Record) {
					t.Fatalf("seed %d, step %d: record %q, want %q", seed, step, a.Record, b.Record)
				}
				a.Record, b.Record = nil, nil
				got, want = fmt.Sprint(a), fmt.Sprint(b)
			case what < 11:
				record, keep := fmt.Append(nil, step), d()
				got, want = s.Complete(ctx, key, token, record, keep), error(idempotency.ErrFenced)
				if e := m.own(key, token); e != nil {
					want = nil
					if !e.completed {
						e.completed, e.record, e.forget = true, record, m.now+keep
					}
				}
			case what < 14:
				lease, keep := d()*time.Duration(r.IntN(2)), d()
				got, want = s.Extend(ctx, key, token, lease, keep), error(idempotency.ErrFenced)
				if e := m.own(key, token); e != nil && !e.completed {
					want = nil
					e.lease, e.forget = m.now+lease, m.now+keep
				}
			case what < 16:
				got, want = s.Release(ctx, key, token), error(idempotency.ErrFenced)
				if e := m.own(key, token); e != nil && !e.completed {
					want = nil
					delete(m.entries, key)
				}
			case what < 17:
				if _, err := s.Sweep(ctx); err != nil {
					t.Fatal(err)
				}
				live := 0
				for key := range m.entries {
					if m.at(key) != nil {
						live++
					}
				}
				n, err := s.Len()
				if err != nil {
					t.Fatal(err)
				}
				got, want = n, live
			case what < 18 && step%10 == 0:
				*clock -= m.now
				base := lullbolt.Now(s)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = open(t, path, lullbolt.Config{NoSync: true})
				clock = lullbolt.FreezeAt(s, base)
				*clock = m.now
			default:
				m.now += d() / 2
				*clock = m.now
			}
			if err, ok := got.(error); ok && errors.Is(err, idempotency.ErrFenced) {
				got = error(idempotency.ErrFenced)
			}
			if got != want {
				t.Fatalf("seed %d, step %d: %v, want %v", seed, step, got, want)
			}
		}
		s.Close()
	}
}
