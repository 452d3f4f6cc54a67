package sqltest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/integrations/lullsql"
)

// tally is what has been reported of writes.
type tally struct {
	done, unknown, failed, attempts atomic.Int64
	mu                              sync.Mutex
	reported                        map[int]bool // whose success was reported
}

// write makes write n, by Exec or by Tx, and notes what was reported.
func (r *tally) write(ctx context.Context, d *lull.Dependency, db *sql.DB, insert string, n int) error {
	var err error
	if n%2 == 0 {
		_, err = lullsql.Exec(ctx, d, db, insert, n)
	} else {
		err = lullsql.Tx(ctx, d, db, nil, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, insert, n)
			return err
		})
	}
	switch {
	case err == nil:
		r.done.Add(1)
		r.mu.Lock()
		r.reported[n] = true
		r.mu.Unlock()
	case errors.Is(err, lullsql.ErrOutcomeUnknown) || errors.Is(err, lull.ErrNotIdempotent):
		r.unknown.Add(1)
	default:
		r.failed.Add(1)
	}
	if e, ok := errors.AsType[*lull.Error](err); ok {
		r.attempts.Add(int64(e.Attempts))
	} else {
		r.attempts.Add(1)
	}
	return err
}

// check compares what was reported with the rows.
func (r *tally) check(t *testing.T, db *sql.DB) {
	t.Helper()
	rows, err := db.Query("SELECT id, count(*) FROM writes GROUP BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	twice, there := 0, map[int]bool{}
	for rows.Next() {
		var id, n int
		if err := rows.Scan(&id, &n); err != nil {
			t.Fatal(err)
		}
		there[id] = true
		if n > 1 {
			twice++
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	lost := 0
	for id := range r.reported {
		if !there[id] {
			lost++
		}
	}
	t.Logf("%d writes reported as done, %d of unknown outcome, %d failed; %d rows; carried out twice: %d; reported and lost: %d",
		r.done.Load(), r.unknown.Load(), r.failed.Load(), len(there), twice, lost)
	if twice > 0 || lost > 0 {
		t.Errorf("%d writes were carried out twice, and %d that were reported as done are not there", twice, lost)
	}
	// Only a write of unknown outcome may be there although nobody knows.
	if extra := len(there) - int(r.done.Load()); extra > int(r.unknown.Load()) {
		t.Errorf("%d writes are there that were reported as failed, of which %d are of unknown outcome", extra, r.unknown.Load())
	}
}

// About a fifth of the connections is cut, anywhere between the first byte of the handshake and
// the last answer. No write is carried out twice, and most are not lost.
func TestNoWriteIsCarriedOutTwice(t *testing.T) {
	writes := 10_000
	if testing.Short() {
		writes = 2_000
	}
	each(t, func(t *testing.T, k *kind) {
		s := k.run(t)
		table(t, opened(t, sql.OpenDB(k.connector(s.Addr()))), "writes", "id INTEGER")
		p := newProxy(t, s.Addr(), 0.3, 1_500) // a third of those is over before that many bytes
		d := newDependency(t, lull.Policy{})
		db := k.open(t, p.addr(), d)
		db.SetMaxOpenConns(8)
		db.SetMaxIdleConns(8)
		r := &tally{reported: map[int]bool{}}
		numbers := make(chan int)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for n := range numbers {
					r.write(t.Context(), d, db, k.insert, n)
					if n%10 == 0 {
						discard(t, db)
					}
				}
			})
		}
		for n := range writes {
			numbers <- n
		}
		close(numbers)
		wg.Wait()
		t.Logf("%d connections, of which %d were cut", p.dials.Load(), p.cuts.Load())
		r.check(t, opened(t, sql.OpenDB(k.connector(s.Addr()))))
		if cut, of := p.cuts.Load(), p.dials.Load(); cut*7 < of {
			t.Errorf("%d of %d connections were cut, want a fifth", cut, of)
		}
		if done := r.done.Load(); done < int64(writes)*95/100 {
			t.Errorf("only %d of %d writes were done", done, writes)
		}
	})
}

// discard closes a connection of the pool, so that another is dialled.
func discard(t *testing.T, db *sql.DB) {
	conn, err := db.Conn(t.Context())
	if err != nil {
		return
	}
	conn.Raw(func(any) error { return driver.ErrBadConn })
	conn.Close()
}

// The server is stopped in order, killed, and frozen while writes are made. Afterwards they
// succeed again, and none was carried out twice.
func TestStoppedFrozenAndKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("it is not short to stop servers")
	}
	each(t, func(t *testing.T, k *kind) {
		s := k.run(t)
		table(t, opened(t, sql.OpenDB(k.connector(s.Addr()))), "writes", "id INTEGER")
		d := newDependency(t, lull.Policy{AttemptTimeout: 300 * time.Millisecond, Deadline: time.Second, Budget: budget.Config{Stock: 20}})
		db := k.open(t, s.Addr(), d)
		db.SetMaxOpenConns(8)
		r := &tally{reported: map[int]bool{}}
		var next atomic.Int64
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for ctx.Err() == nil {
					if err := r.write(context.WithoutCancel(ctx), d, db, k.insert, int(next.Add(1))); err != nil {
						time.Sleep(time.Millisecond)
					}
				}
			})
		}
		await := func(what string, counter *atomic.Int64) {
			t.Helper()
			from := counter.Load()
			for end := time.Now().Add(time.Minute); counter.Load() < from+100; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("%s: only %d within a minute", what, counter.Load()-from)
				}
			}
		}
		restart := func(what string, end func()) {
			t.Helper()
			end()
			await(what+": failures", &r.failed)
			if err := s.Start(); err != nil {
				t.Fatal(what, err)
			}
			await(what+": writes afterwards", &r.done)
		}
		await("writes", &r.done)
		restart("stopped", s.Stop)
		restart("killed", s.Kill)
		if !k.deaf {
			s.Freeze()
			await("frozen: failures", &r.failed)
			s.Thaw()
			await("frozen: writes afterwards", &r.done)
		}
		stop()
		wg.Wait()
		r.check(t, opened(t, sql.OpenDB(k.connector(s.Addr()))))
	})
}
