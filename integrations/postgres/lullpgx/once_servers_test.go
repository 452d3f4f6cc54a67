//go:build servers

package lullpgx_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/integrations/postgres/lullpgx"
	"github.com/lullgo/lull/internal/dbserver"
)

// tally returns the writes by pool: half of them by Exec, half by Tx.
func tally(t *testing.T, s *dbserver.Server, d *lull.Dependency, pool *pgxpool.Pool) *dbserver.Tally {
	direct := open(t, url(s.Addr()), nil, lullpgx.Config{})
	exec(t, direct, "DROP TABLE IF EXISTS writes")
	exec(t, direct, "CREATE TABLE writes (id INTEGER)")
	const insert = "INSERT INTO writes VALUES ($1)"
	return &dbserver.Tally{
		Write: func(ctx context.Context, n int) (err error) {
			if n%2 == 0 {
				_, err = lullpgx.Exec(ctx, d, pool, insert, n)
				return err
			}
			return lullpgx.Tx(ctx, d, pool, pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error {
				_, err := tx.Exec(ctx, insert, n)
				return err
			})
		},
		Rows: func() (map[int]int, error) {
			direct.Reset() // its connections may be of a server that is gone
			rows, err := direct.Query(context.Background(), "SELECT id, count(*) FROM writes GROUP BY id")
			if err != nil {
				return nil, err
			}
			there := map[int]int{}
			var id, n int
			_, err = pgx.ForEachRow(rows, []any{&id, &n}, func() error { there[id] = n; return nil })
			return there, err
		},
	}
}

// About a fifth of the connections is cut, anywhere between the first byte of the handshake and
// the last answer. No write is carried out twice, and most are not lost. There are 10,000 writes if
// LULLPGX_ALL is set.
func TestNoWriteIsCarriedOutTwice(t *testing.T) {
	t.Parallel()
	writes := 2_000
	if os.Getenv("LULLPGX_ALL") != "" {
		writes = 10_000
	}
	s := server.Own(t)
	p := dbserver.NewProxy(t, s.Addr(), 0.3, 1_500) // a third of those is over before that many bytes
	d := newDependency(t, lull.Policy{})
	pool := open(t, url(p.Addr()), d, lullpgx.Config{})
	tally(t, s, d, pool).Cut(t, p, writes, func() {
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			return
		}
		conn.Conn().Close(t.Context())
		conn.Release()
	})
}

// The server is stopped in order, killed, and frozen while writes are made. Afterwards they
// succeed again, and none was carried out twice.
func TestStoppedFrozenAndKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("it is not short to stop servers")
	}
	t.Parallel()
	s := server.Own(t)
	d := newDependency(t, lull.Policy{AttemptTimeout: 300 * time.Millisecond, Deadline: time.Second, Budget: budget.Config{Stock: 20}})
	pool := open(t, url(s.Addr()), d, lullpgx.Config{})
	tally(t, s, d, pool).Restarts(t, s, false)
}
