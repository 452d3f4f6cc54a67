package idempotency_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/server/idempotency"
	"github.com/lullgo/lull/server/idempotency/storetest"
)

// ledger is a MemoryStore with something to be written in transactions: lines.
type ledger struct {
	*idempotency.MemoryStore
	lines  []string
	commit error // of every commit, if not nil: nothing is written
	lost   error // of every commit, after it was made
	hangs  int   // so many claims get no answer
	claims atomic.Int64
	bound  atomic.Int64 // Claim.CommitTimeout of the last that was claimed
}

type ledgerTx struct{ lines []string }

type ledgerKey struct{}

// write is called by handlers.
func write(ctx context.Context, line string) {
	tx := ctx.Value(ledgerKey{}).(*ledgerTx)
	tx.lines = append(tx.lines, line)
}

func (l *ledger) Transact(ctx context.Context, c idempotency.Claim, run func(context.Context, bool) ([]byte, bool)) (idempotency.ClaimResult, error) {
	if l.claims.Add(1) <= int64(l.hangs) {
		<-ctx.Done()
		return idempotency.ClaimResult{}, ctx.Err()
	}
	a, err := l.Claim(ctx, c)
	if err != nil || a.State != idempotency.Claimed {
		return a, err
	}
	l.bound.Store(int64(c.CommitTimeout))
	always := context.WithoutCancel(ctx)
	rollback := func() {
		if a.Resumed {
			l.Extend(always, c.Key, c.Token, 0, c.Retention)
		} else {
			l.Release(always, c.Key, c.Token)
		}
	}
	returned := false
	defer func() {
		if !returned {
			rollback()
		}
	}()
	tx := new(ledgerTx)
	record, keep := run(context.WithValue(ctx, ledgerKey{}, tx), a.Resumed)
	returned = true
	if !keep {
		rollback()
		return a, nil
	}
	if l.commit != nil {
		rollback()
		return idempotency.ClaimResult{}, l.commit
	}
	if err := l.Complete(always, c.Key, c.Token, record, c.Retention); err != nil {
		return idempotency.ClaimResult{}, err
	}
	l.lines = append(l.lines, tx.lines...)
	return a, l.lost
}

func TestLedgerIsATransactor(t *testing.T) {
	storetest.Run(t, func(t *testing.T) idempotency.Store {
		return &ledger{MemoryStore: newMemory(t, idempotency.MemoryStoreConfig{})}
	}, storetest.Options{Virtual: true})
}

func TestTransactional(t *testing.T) {
	for _, test := range []struct {
		name    string
		status  int
		strict  bool
		declare func(context.Context)
		kept    bool
	}{
		{"200", 200, false, nil, true},
		{"422", 422, false, nil, true},
		{"500", 500, false, nil, false},
		{"503", 503, false, nil, false},
		{"503, strict", 503, true, nil, false},
		{"429", 429, false, nil, true},
		{"408", 408, false, nil, false},
		{"408, strict", 408, true, nil, true},
		{"500, committed", 500, false, idempotency.Committed, true},
		{"503, committed", 503, false, idempotency.Committed, true},
		{"200, no effect", 200, false, idempotency.NoEffect, false},
		{"panic", 0, false, nil, false},
		{"panic, committed", 0, false, idempotency.Committed, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &ledger{MemoryStore: newMemory(t, idempotency.MemoryStoreConfig{})}
				r := newRig(t, l, idempotency.Config{Transactional: true, Strict: test.strict})
				c := &counter{do: func(n int, w http.ResponseWriter, r *http.Request) {
					write(r.Context(), "paid")
					if test.declare != nil {
						test.declare(r.Context())
					}
					if test.status == 0 {
						panic("boom")
					}
					w.WriteHeader(test.status)
				}}
				try := func() (got result) {
					defer func() {
						if v := recover(); v != nil && (v != "boom" || test.status != 0) {
							panic(v)
						}
					}()
					return send(t, r.m.Wrap(c), request("k"))
				}
				if got := try(); got.status != test.status || got.replayed {
					t.Errorf("first: %d, replayed %v", got.status, got.replayed)
				}
				if got := try(); got.status != test.status || got.replayed != test.kept {
					t.Errorf("second: %d, replayed %v", got.status, got.replayed)
				}
				want := 0
				if test.kept {
					want = 1
				}
				check.Equal(t, len(l.lines), want, "lines in the ledger: %q", l.lines)
				c.times(t, 2-want)
				if test.kept {
					r.saw("ran", "replayed")
				} else {
					r.saw("released", "released") // rolled back, both times
				}
			})
		})
	}
}

// A commit that fails: the answer does not claim that anything was done, has nothing of
// the response, and the client may try again, whether it was done or not.
func TestCommitFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, lost := range []bool{false, true} {
			l := &ledger{MemoryStore: newMemory(t, idempotency.MemoryStoreConfig{})}
			down := errors.New("connection lost")
			if lost {
				l.lost = down
			} else {
				l.commit = down
			}
			r := newRig(t, l, idempotency.Config{Transactional: true})
			c := &counter{do: func(_ int, w http.ResponseWriter, r *http.Request) {
				write(r.Context(), "paid")
				w.Header().Set("Location", "/receipts/1")
				w.WriteHeader(201)
				io.WriteString(w, "receipt")
			}}
			h := r.m.Wrap(c)
			got := send(t, h, request("k"))
			got.is(t, 503, "store-unavailable")
			check.Equal(t, got.header.Get("Location"), "", "Location, when the response was taken back: %v", got.header)
			check.Is(t, r.events[0].Err, down, "error of the event")
			r.saw("store-failed")
			l.commit, l.lost = nil, nil
			if got := send(t, h, request("k")); got.status != 201 || got.body != "receipt" || got.replayed != lost {
				t.Errorf("after a commit that failed (answer lost: %v): %+v", lost, got)
			}
			check.Equal(t, len(l.lines), 1, "lines in the ledger: %q", l.lines)
		}
	})
}

// A response that was sent before the commit failed is broken off: the client must not
// take it for a complete one.
func TestCommitFailsAfterFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{MemoryStore: newMemory(t, idempotency.MemoryStoreConfig{}), commit: errors.New("connection lost")}
		rig := newRig(t, l, idempotency.Config{Transactional: true})
		h := rig.m.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			write(r.Context(), "paid")
			io.WriteString(w, "receipt")
			w.(http.Flusher).Flush()
		}))
		s := memnet.NewServer(t, h)
		defer func() {
			s.Close()
			rig.saw("store-failed")
		}()
		resp, err := s.Client().Do(clientRequest(s, "k"))
		if err == nil {
			var b []byte
			if b, err = io.ReadAll(resp.Body); err == nil {
				t.Errorf("the client has a whole response: %d %q", resp.StatusCode, b)
			}
		}
		check.Equal(t, len(l.lines), 0, "lines in the ledger: %q", l.lines)
	})
}

// A transaction obeys Config.Store, too: each attempt at its claim has a bound, another follows, and
// all of them together have one. So has the commit. The handler has none of these, and what it
// calls is no part of the call to the store.
func TestTransactionsAreBounded(t *testing.T) {
	patient := idempotency.StorePolicy()
	patient.Attempts, patient.AttemptTimeout, patient.Deadline, patient.Timeouts = 2, 10*time.Second, 15*time.Second, lull.TimeoutsAlways
	for _, test := range []struct {
		policy lull.Policy
		hangs  int
		runs   int
	}{
		{lull.Policy{}, 0, 1},
		{lull.Policy{}, 100, 0},
		{patient, 1, 1},
		{patient, 2, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := &ledger{MemoryStore: newMemory(t, idempotency.MemoryStoreConfig{}), hangs: test.hangs}
			config := idempotency.Config{Transactional: true, Store: test.policy}
			r := newRig(t, l, config)
			policy := config.WithDefaults().Store
			begun := time.Now()
			var claimed time.Duration
			c := &counter{do: func(_ int, w http.ResponseWriter, r *http.Request) {
				claimed = time.Since(begun)
				if _, has := r.Context().Deadline(); has {
					t.Error("the handler has a deadline")
				}
				if in, ok := lull.AttemptFrom(r.Context()); ok {
					t.Errorf("the handler is a part of %+v", in)
				}
				time.Sleep(time.Hour)
				check.Equal(t, r.Context().Err(), nil, "the handler's context")
				write(r.Context(), "paid")
			}}
			got := send(t, r.m.Wrap(c), request("k"))
			c.times(t, test.runs)
			if test.runs == 0 {
				claimed = time.Since(begun)
				got.is(t, 503, "store-unavailable")
				r.saw("store-failed")
			} else {
				got.ran(t, 200, "")
				r.saw("ran")
				check.Equal(t, time.Duration(l.bound.Load()), policy.WithDefaults().AttemptTimeout, "how long the commit may take")
			}
			if claimed > policy.WorstCase() {
				t.Errorf("%d claims without an answer: %v passed, more than %v", test.hangs, claimed, policy.WorstCase())
			}
			check.Equal(t, len(l.lines), test.runs, "lines in the ledger: %q", l.lines)
		})
	}
}

// A store with an impossible answer has committed nothing.
func TestTransactionsThatAnswerNonsense(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, n := range []nonsense{
			{runs: false, state: 0}, {runs: false, state: idempotency.Claimed}, {runs: false, state: idempotency.Unknown + 1},
			{runs: true, state: 0}, {runs: true, state: idempotency.Replay}, {runs: true, state: 255},
		} {
			r := newRig(t, n, idempotency.Config{Transactional: true})
			send(t, r.m.Wrap(&counter{}), request("k")).is(t, 503, "store-unavailable")
			r.saw("store-failed")
		}
	})
}

func TestTransactionsRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{MemoryStore: newMemory(t, idempotency.MemoryStoreConfig{})}
		r := newRig(t, l, idempotency.Config{Transactional: true})
		h := r.m.Wrap(&counter{})
		first := begin(t, r.m.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Second) })), request("k"))
		send(t, h, request("k")).is(t, 409, "in-flight")
		send(t, h, requestOf("POST", "/pay", "k", "101")).is(t, 422, "key-reused")
		(<-first).ran(t, 200, "")
		send(t, h, request("k")).replays(t, 200, "")
		interrupt(t, l, request("l"))
		send(t, h, request("l")).is(t, 409, "outcome-unknown")
	})
}
