//go:build servers

package lullpostgres

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/idempotency"
	"github.com/lullgo/lull/server/idempotency/storetest"
)

var bg = context.Background()

// inTx executes q in the handler's transaction, of either kind.
func inTx(ctx context.Context, q string, args ...any) error {
	if tx := TxFrom(ctx); tx != nil {
		_, err := tx.Exec(ctx, q, args...)
		return err
	}
	_, err := SQLTxFrom(ctx).ExecContext(ctx, q, args...)
	return err
}

// each runs f with a Store of either kind, and with a table for effects.
func each(t *testing.T, c Config, f func(t *testing.T, s *Store, effects string)) {
	for name, open := range map[string]func(t *testing.T) *Store{
		"pgx": func(t *testing.T) *Store { return newTable(t, newPool(t, dsn(t)), c) },
		"sql": func(t *testing.T) *Store { return newSQL(t, dsn(t), c) },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			table := "e_" + strings.ToLower(rand.Text())
			must.Succeed(exec(bg, s.db, "CREATE TABLE "+table+" (n int NOT NULL)"))
			f(t, s, table)
		})
	}
}

func count(t *testing.T, s *Store, table string) (n int64) {
	t.Helper()
	must.Succeed(s.db.row(bg, "SELECT count(*) FROM "+table, nil, []any{&n}))
	return n
}

func claims(t *testing.T, s *Store, c idempotency.Claim, want idempotency.KeyState) idempotency.ClaimResult {
	t.Helper()
	a, err := s.Claim(bg, c)
	if err != nil || a.State != want {
		t.Fatalf("Claim: %v, %v, want %v", a.State, err, want)
	}
	return a
}

// While a transaction is at work on a key no other call waits for it, whatever the call is and
// whatever the key was before. A wait would last for ever, as the transaction ends when the calls
// have returned.
func TestNobodyWaits(t *testing.T) {
	t.Parallel()
	each(t, Config{}, func(t *testing.T, s *Store, _ string) {
		for name, before := range map[string]func(c idempotency.Claim) (former idempotency.Claim){
			"new": func(c idempotency.Claim) idempotency.Claim { return anew(c) },
			"taken over": func(c idempotency.Claim) idempotency.Claim {
				former := anew(c)
				claims(t, s, former, idempotency.Claimed)
				must.Succeed(s.Extend(bg, c.Key, former.Token, 0, time.Hour))
				return former
			},
			"forgotten": func(c idempotency.Claim) idempotency.Claim {
				former := anew(c)
				former.Retention, former.Lease = 1, 1
				claims(t, s, former, idempotency.Claimed)
				time.Sleep(time.Millisecond)
				return former
			},
		} {
			t.Run(name, func(t *testing.T) {
				c := request()
				former := before(c)
				c.Resume = true
				ctx, cancel := context.WithTimeout(bg, time.Minute)
				defer cancel()
				_, err := s.Transact(ctx, c, func(context.Context, bool) ([]byte, bool) {
					if a, err := s.Claim(ctx, anew(c)); err != nil || a.State != idempotency.InFlight {
						t.Errorf("Claim: %v, %v, want in-flight", a.State, err)
					}
					other := anew(c)
					other.Fingerprint[0]++
					want := idempotency.InFlight
					if name == "taken over" { // what it was used for is known
						want = idempotency.Mismatch
					}
					if a, err := s.Claim(ctx, other); err != nil || a.State != want {
						t.Errorf("Claim for something else: %v, %v, want %v", a.State, err, want)
					}
					if a, err := s.Transact(ctx, anew(c), nil); err != nil || a.State != idempotency.InFlight {
						t.Errorf("Transact: %v, %v, want in-flight", a.State, err)
					}
					for call, err := range map[string]error{
						"Extend":   s.Extend(ctx, c.Key, former.Token, time.Minute, time.Hour),
						"Complete": s.Complete(ctx, c.Key, former.Token, nil, time.Hour),
						"Release":  s.Release(ctx, c.Key, former.Token),
					} {
						if !errors.Is(err, errBusy) || errors.Is(err, idempotency.ErrFenced) {
							t.Errorf("%s by the former owner: %v, want that it is not known yet", call, err)
						}
					}
					if n, err := s.Sweep(ctx); n != 0 || err != nil {
						t.Errorf("Sweep: %d, %v", n, err)
					}
					return nil, false
				})
				must.Succeed(err)
				if name == "taken over" { // and given back
					check.Is(t, s.Complete(bg, c.Key, former.Token, []byte("late"), time.Hour), nil, "Complete by the former owner, after all")
					return
				}
				claims(t, s, anew(c), idempotency.Claimed)
			})
		}
	})
}

// The handler's changes in its transaction are there if and only if the record is.
func TestTogether(t *testing.T) {
	t.Parallel()
	each(t, Config{}, func(t *testing.T, s *Store, table string) {
		insert := func(ctx context.Context) {
			t.Helper()
			must.Succeed(inTx(ctx, "INSERT INTO "+table+" VALUES (1)"))
		}
		fails := func(name string, run func(ctx context.Context) bool, want string) {
			t.Helper()
			c := request()
			before := count(t, s, table)
			a, err := s.Transact(bg, c, func(ctx context.Context, _ bool) ([]byte, bool) {
				insert(ctx)
				return nil, run(ctx)
			})
			if want == "" && (err != nil || a.State != idempotency.Claimed) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s: %v, %v, want an error with %q", name, a.State, err, want)
			}
			if n := count(t, s, table); n != before {
				t.Errorf("%s: the effect is there, the record is not", name)
			}
			free := anew(c)
			for {
				a, err := s.Claim(bg, free)
				if err == nil && a.State == idempotency.InFlight {
					continue // the server reports the end of a connection before it has rolled back
				}
				if err != nil || a.State != idempotency.Claimed {
					t.Errorf("%s: afterwards %v, %v, want claimed", name, a.State, err)
				}
				break
			}
		}
		fails("not kept", func(context.Context) bool { return false }, "")
		fails("a statement failed", func(ctx context.Context) bool {
			if inTx(ctx, "SELECT 1/0") == nil {
				t.Error("1/0 is something")
			}
			return true
		}, "savepoint")
		fails("rolled back", func(ctx context.Context) bool {
			if tx := TxFrom(ctx); tx != nil {
				return tx.Rollback(ctx) == nil
			}
			return SQLTxFrom(ctx).Rollback() == nil
		}, map[bool]string{true: "rolled back", false: "Transact"}[strings.HasSuffix(t.Name(), "pgx")])
		fails("the connection is cut", func(ctx context.Context) bool {
			return inTx(ctx, "SELECT pg_terminate_backend(pg_backend_pid())") != nil
		}, "Transact")
		fails("panic", func(ctx context.Context) bool {
			defer func() { recover() }()
			s.Transact(ctx, request(), func(ctx context.Context, _ bool) ([]byte, bool) {
				insert(ctx)
				panic("!")
			})
			t.Error("the panic is gone")
			return false
		}, "")
		fails("Goexit", func(ctx context.Context) bool {
			done := make(chan struct{})
			go func() {
				defer close(done)
				s.Transact(ctx, request(), func(ctx context.Context, _ bool) ([]byte, bool) {
					insert(ctx)
					runtime.Goexit()
					return nil, true
				})
			}()
			<-done
			return false
		}, "")

		c := request()
		if tx := TxFrom(bg); tx != nil || SQLTxFrom(bg) != nil {
			t.Error("there is a transaction without Transact")
		}
		a, err := s.Transact(bg, c, func(ctx context.Context, _ bool) ([]byte, bool) {
			insert(ctx)
			if tx := TxFrom(ctx); tx != nil {
				check.Is(t, tx.Commit(ctx), ErrNotYours, "the handler commits")
				// One of the handler's own, inside.
				inner, err := tx.Begin(ctx)
				if err != nil {
					t.Error(err)
				}
				if _, err := inner.Exec(ctx, "SELECT 1/0"); err == nil {
					t.Error("1/0 is something")
				}
				must.Succeed(inner.Rollback(ctx))
			}
			return []byte("kept"), true
		})
		if err != nil || a.State != idempotency.Claimed || count(t, s, table) != 1 {
			t.Errorf("kept: %v, %v, %d effects", a.State, err, count(t, s, table))
		}
		if a := claims(t, s, anew(c), idempotency.Replay); string(a.Record) != "kept" {
			t.Errorf("the record is %q", a.Record)
		}

		// A *sql.Tx can be committed by the handler: then it is not run again.
		if strings.HasSuffix(t.Name(), "sql") {
			c := request()
			_, err := s.Transact(bg, c, func(ctx context.Context, _ bool) ([]byte, bool) {
				return nil, SQLTxFrom(ctx).Commit() == nil
			})
			check.Is(t, err, sql.ErrTxDone, "the handler has committed")
			claims(t, s, anew(c), idempotency.InFlight)
		}
	})
}

// The time of a request may be over before its handler is: the handler's effect is kept.
func TestTransactContextEnds(t *testing.T) {
	t.Parallel()
	each(t, Config{}, func(t *testing.T, s *Store, table string) {
		c := request()
		ctx, cancel := context.WithCancel(bg)
		a, err := s.Transact(ctx, c, func(ctx context.Context, _ bool) ([]byte, bool) {
			cancel()
			time.Sleep(20 * time.Millisecond) // for goroutines that watch the context
			must.Succeed(inTx(context.WithoutCancel(ctx), "INSERT INTO "+table+" VALUES (1)"))
			return []byte("done"), true
		})
		if err != nil || a.State != idempotency.Claimed || count(t, s, table) != 1 {
			t.Errorf("%v, %v", a.State, err)
		}
		claims(t, s, anew(c), idempotency.Replay)
		for range 20 { // ending while it begins
			ctx, cancel := context.WithCancel(bg)
			go cancel()
			ran := false
			_, err := s.Transact(ctx, request(), func(context.Context, bool) ([]byte, bool) { ran = true; return nil, true })
			if err != nil && (ran || !errors.Is(err, context.Canceled)) {
				t.Errorf("ran %v, %v", ran, err)
			}
		}
	})
}

// A transaction that cannot be serialized is an error. Its handler is not called again; the request
// can be repeated.
func TestSerializationFailure(t *testing.T) {
	each(t, Config{Isolation: sql.LevelSerializable}, func(t *testing.T, s *Store, table string) {
		skew := func(ctx context.Context, meanwhile func()) ([]byte, bool) {
			must.Succeed(inTx(ctx, "SELECT count(*) FROM "+table))
			meanwhile()
			inTx(ctx, "INSERT INTO "+table+" VALUES (1)")
			return nil, true
		}
		c, d := request(), request()
		runs := 0
		_, err := s.Transact(bg, c, func(ctx context.Context, _ bool) ([]byte, bool) {
			runs++
			return skew(ctx, func() {
				if _, err := s.Transact(bg, d, func(ctx context.Context, _ bool) ([]byte, bool) { return skew(ctx, func() {}) }); err != nil {
					t.Errorf("the first to commit: %v", err)
				}
			})
		})
		if err == nil || runs != 1 {
			t.Errorf("the second: %v after %d runs, want an error after one", err, runs)
		}
		t.Log(err)
		claims(t, s, anew(d), idempotency.Replay)
		if a, err := s.Transact(bg, anew(c), func(ctx context.Context, _ bool) ([]byte, bool) { return skew(ctx, func() {}) }); err != nil || a.State != idempotency.Claimed {
			t.Errorf("once more: %v, %v", a.State, err)
		}
		check.Equal(t, count(t, s, table), 2, "effects")
	})
}

// A claim that comes to the server after its caller's deadline changes nothing, whatever was there.
// The answer has the server's time, so the next one is in time.
func TestLateClaims(t *testing.T) {
	t.Parallel()
	each(t, Config{}, func(t *testing.T, s *Store, _ string) {
		ctx, cancel := context.WithTimeout(bg, time.Minute)
		defer cancel()
		for name, before := range map[string]func(c idempotency.Claim) error{
			"new":   func(idempotency.Claim) error { return nil },
			"owned": func(c idempotency.Claim) error { claims(t, s, c, idempotency.Claimed); return nil },
			"given up by another": func(c idempotency.Claim) error {
				c = anew(c)
				claims(t, s, c, idempotency.Claimed)
				return s.Extend(bg, c.Key, c.Token, 0, time.Hour)
			},
			"forgotten": func(c idempotency.Claim) error {
				c = anew(c)
				c.Lease, c.Retention = 1, 1
				claims(t, s, c, idempotency.Claimed)
				time.Sleep(time.Millisecond)
				return nil
			},
		} {
			c := request()
			c.Resume = true
			must.Succeed(before(c))
			there := func() (row string) {
				must.Succeed(s.db.row(bg, "SELECT COALESCE(max(e::text), 'none') FROM "+s.config.quoted()+" AS e WHERE key = $1::text", []any{c.Key}, []any{&row}))
				return row
			}
			was := there()
			for _, query := range []string{s.sql.claim, s.sql.claimInTx} {
				s.clock.Read(1) // as if the deadline had been in 1970
				if a, err := s.claim(ctx, s.db, query, &c); err != nil || a.State != claimAgain || there() != was {
					t.Errorf("%s: a late claim: %v, %v; the row %q became %q", name, a.State, err, was, there())
				}
			}
			if a, err := s.Claim(ctx, c); err != nil || a.State != idempotency.Claimed {
				t.Errorf("%s: the next claim: %v, %v", name, a.State, err)
			}
		}
	})
}

// A release meets no claim that is being committed: it is not known yet what there will be.
func TestReleaseAndClaimsUnderWay(t *testing.T) {
	t.Parallel()
	each(t, Config{}, func(t *testing.T, s *Store, _ string) {
		c := request()
		tx := must.Have(s.db.begin(bg, 0))
		if a, err := s.claim(bg, tx, s.sql.claim, &c); err != nil || a.State != idempotency.Claimed {
			t.Fatal(a.State, err)
		}
		check.Is(t, s.Release(bg, c.Key, c.Token), errBusy, "Release while the claim is being committed")
		must.Succeed(tx.commit(bg))
		check.Is(t, s.Release(bg, c.Key, c.Token), nil, "Release afterwards")
		claims(t, s, anew(c), idempotency.Claimed)
	})
}

// Keys that share the number of a lock block each other as long as a transaction runs. That is
// their only effect on each other.
func TestLockCollision(t *testing.T) {
	t.Parallel()
	pool := newPool(t, dsn(t))
	collide := func(s *Store) *Store { s.lock = func(string) int64 { return 42 }; return s }
	storetest.Run(t, func(t *testing.T) idempotency.Store { return collide(newTable(t, pool, Config{})) }, storetest.Options{Concurrent: 20})

	s := collide(newTable(t, pool, Config{}))
	c, d := request(), request()
	if _, err := s.Transact(bg, c, func(context.Context, bool) ([]byte, bool) {
		claims(t, s, d, idempotency.InFlight)
		return nil, true
	}); err != nil {
		t.Fatal(err)
	}
	claims(t, s, d, idempotency.Claimed)

	// Without any lock, only the index decides: some calls wait, and still only one handler runs.
	s.sql.claimInTx = strings.Replace(s.sql.claimInTx, "pg_try_advisory_xact_lock($7::bigint)", "$7::bigint IS NOT NULL", 1)
	e := request()
	var mu sync.Mutex
	runs := 0
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := s.Transact(bg, anew(e), func(context.Context, bool) ([]byte, bool) {
				mu.Lock()
				runs++
				mu.Unlock()
				return nil, true
			}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	check.Equal(t, runs, 1, "runs")
}
