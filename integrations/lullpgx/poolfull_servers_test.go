//go:build servers

package lullpgx_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/integrations/lullpgx"
)

// The caller's own limit of connections shows nothing of the database: who waits for one in vain opens no circuit.
func TestRule23ThePoolIsFull(t *testing.T) {
	t.Parallel()
	d := newDependency(t, lull.Policy{AttemptTimeout: 50 * time.Millisecond, Breaker: breaker.Config{Consecutive: 2}})
	pool := open(t, url(at(t)), d, lullpgx.Config{}, func(c *pgxpool.Config) { c.MaxConns = 1 })
	conn, err := pool.Acquire(t.Context())
	if err != nil {
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
	if d.Breaker().State(d.Now()) != breaker.Closed {
		t.Error("the circuit is not closed")
	}
	if _, err := lullpgx.Exec(t.Context(), d, pool, "SELECT 1"); err != nil {
		t.Error(err)
	}
}
