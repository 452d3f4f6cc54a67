//go:build servers

package lullpgx_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/integrations/postgres/lullpgx"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// Answers end a call, and an answer that there are no rows is no failure.
func TestAnswers(t *testing.T) {
	t.Parallel()
	d := newDependency(t, patient)
	pool := open(t, url(server.Addr(t)), d, lullpgx.Config{})
	exec(t, pool, "DROP TABLE IF EXISTS answers")
	exec(t, pool, "CREATE TABLE answers (n INTEGER CHECK (n > 0))")
	runs := 0
	own := errors.New("not enough money")
	tx := func(f func(context.Context, pgx.Tx) error) error {
		return lullpgx.Tx(t.Context(), d, pool, pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error { runs++; return f(ctx, tx) }, lull.Operation("pay"))
	}
	for _, x := range []struct {
		name, operation string
		call            func() error
		want            error
	}{
		{"constraint", "exec", func() error {
			runs++
			_, err := lullpgx.Exec(t.Context(), d, pool, "INSERT INTO answers VALUES ($1)", -1)
			return err
		}, lull.ErrPermanent},
		{"the caller's own", "pay", func() error {
			return tx(func(ctx context.Context, tx pgx.Tx) error {
				must.Have(tx.Exec(ctx, "INSERT INTO answers VALUES (1)"))
				return own
			})
		}, own},
		{"an error kept back", "pay", func() error {
			return tx(func(ctx context.Context, tx pgx.Tx) error {
				tx.Exec(ctx, "INSERT INTO answers VALUES (-1)")
				return nil
			})
		}, pgx.ErrTxCommitRollback},
	} {
		runs = 0
		err := x.call()
		e, ok := errors.AsType[*lull.Error](err)
		if !ok || !errors.Is(err, x.want) || errors.Is(err, lullpgx.ErrOutcomeUnknown) || runs != 1 || e.Operation != x.operation || e.Attempts != 1 {
			t.Errorf("%s: %v after %d runs", x.name, err, runs)
		}
	}
	n, err := lullpgx.Read(t.Context(), d, pool, func(ctx context.Context, c *pgxpool.Conn) (n int, err error) {
		err = c.QueryRow(ctx, "SELECT n FROM answers").Scan(&n)
		return n, err
	})
	if err != pgx.ErrNoRows {
		t.Errorf("%d, %v, want no rows and that error as it is", n, err)
	}
	if err := tx(func(context.Context, pgx.Tx) error { return pgx.ErrNoRows }); err != pgx.ErrNoRows {
		t.Errorf("%v, want that error as it is", err)
	}
	if s := pool.Stat(); s.AcquiredConns() != 0 || s.NewConnsCount() != 1 {
		t.Errorf("%d connections are kept, %d were made", s.AcquiredConns(), s.NewConnsCount())
	}
}

// cutAtCommit breaks the connection when COMMIT has been sent.
type cutAtCommit struct {
	net.Conn
	cuts *atomic.Int32 // how many are to come
}

func (c cutAtCommit) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if bytes.Contains(p, []byte("commit")) && c.cuts.Add(-1) >= 0 {
		c.Conn.Close()
	}
	return n, err
}

// A transaction whose COMMIT was not answered is not repeated, unless it may be carried out twice.
func TestACommitThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		opts []lull.CallOption
		want error
		runs int
	}{
		"once":       {nil, lullpgx.ErrOutcomeUnknown, 1},
		"idempotent": {[]lull.CallOption{lull.Idempotent()}, nil, 2},
	} {
		var cuts atomic.Int32
		cuts.Store(1)
		d := newDependency(t, patient)
		pool := open(t, url(server.Addr(t)), d, lullpgx.Config{}, func(c *pgxpool.Config) {
			wrapDials(c, func(conn net.Conn) net.Conn { return cutAtCommit{conn, &cuts} })
		})
		runs := 0
		err := lullpgx.Tx(t.Context(), d, pool, pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error {
			runs++
			_, err := tx.Exec(ctx, "SELECT 1")
			return err
		}, x.opts...)
		if runs != x.runs || !errors.Is(err, x.want) || (err == nil) != (x.want == nil) {
			t.Errorf("%s: %v after %d runs", name, err, runs)
		}
	}
}

// A transaction that reaches the end of its attempt before COMMIT is not committed. A panic of op
// gives the connection back.
func TestTheEndOfAnAttempt(t *testing.T) {
	t.Parallel()
	calm := newDependency(t, lull.Policy{})
	pool := open(t, url(server.Addr(t)), calm, lullpgx.Config{})
	exec(t, pool, "DROP TABLE IF EXISTS late")
	exec(t, pool, "CREATE TABLE late (n INTEGER)")
	short := newDependency(t, lull.Policy{AttemptTimeout: 100 * time.Millisecond, Attempts: 1})
	err := lullpgx.Tx(t.Context(), short, pool, pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error {
		tx.Exec(ctx, "INSERT INTO late VALUES (1)")
		<-ctx.Done()
		return nil
	})
	check.Is(t, err, context.DeadlineExceeded, "error")
	func() {
		defer func() { recover() }()
		lullpgx.Tx(t.Context(), calm, pool, pgx.TxOptions{}, func(context.Context, pgx.Tx) error { panic("x") })
	}()
	var n int
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM late").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d rows, %v", n, err)
	}
	check.Equal(t, pool.Stat().AcquiredConns(), 0, "connections that are kept")
}

// The caller's own limit of connections shows nothing of the database: a call that waits for one in vain opens no circuit.
func TestRule23ThePoolIsFull(t *testing.T) {
	t.Parallel()
	policy := lull.Policy{Breaker: breaker.Config{Consecutive: 2}}
	short := policy
	short.AttemptTimeout = 50 * time.Millisecond
	d := newDependency(t, policy)
	pool := open(t, url(server.Addr(t)), d, lullpgx.Config{}, func(c *pgxpool.Config) { c.MaxConns = 1 })
	conn := must.Have(pool.Acquire(t.Context()))
	if err := d.Update(short); err != nil { // a dial may take longer
		t.Fatal(err)
	}
	for name, call := range map[string]func() error{
		"exec": func() error { _, err := lullpgx.Exec(t.Context(), d, pool, "CREATE TABLE never ()"); return err },
		"read": func() error {
			_, err := lullpgx.Read(t.Context(), d, pool, func(context.Context, *pgxpool.Conn) (int, error) { return 0, nil })
			return err
		},
		"tx": func() error {
			return lullpgx.Tx(t.Context(), d, pool, pgx.TxOptions{}, func(context.Context, pgx.Tx) error { return nil })
		},
	} {
		for range 3 {
			e, ok := errors.AsType[*lull.Error](call())
			if !ok || !e.Verdict.CallerSide() || e.Attempts < 2 { // nothing was sent, so it may be repeated
				t.Errorf("%s: %v", name, e)
			}
		}
	}
	conn.Release()
	must.Succeed(d.Update(policy))
	if d.Breaker().State(d.Now()) != breaker.Closed {
		t.Error("the circuit is not closed")
	}
	must.Have(lullpgx.Exec(t.Context(), d, pool, "SELECT 1"))
}
