//go:build servers

package sqltest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"os"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/integrations/lullsql"
	"github.com/lullgo/lull/internal/dbserver"
)

// tally returns the writes of k by db: half of them by Exec, half by Tx.
func (k *kind) tally(t *testing.T, s *dbserver.Server, d *lull.Dependency, db *sql.DB) *dbserver.Tally {
	direct := opened(t, sql.OpenDB(k.connector(s.Addr())))
	table(t, direct, "writes", "id INTEGER")
	return &dbserver.Tally{
		Write: func(ctx context.Context, n int) (err error) {
			if n%2 == 0 {
				_, err = lullsql.Exec(ctx, d, db, k.insert, n)
				return err
			}
			return lullsql.Tx(ctx, d, db, nil, func(ctx context.Context, tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, k.insert, n)
				return err
			})
		},
		Rows: func() (map[int]int, error) {
			rows, err := direct.Query("SELECT id, count(*) FROM writes GROUP BY id")
			if err != nil {
				return nil, err
			}
			defer rows.Close()
			there := map[int]int{}
			for rows.Next() {
				var id, n int
				if err := rows.Scan(&id, &n); err != nil {
					return nil, err
				}
				there[id] = n
			}
			return there, rows.Err()
		},
	}
}

// About a fifth of the connections is cut, anywhere between the first byte of the handshake and
// the last answer. No write is carried out twice, and most are not lost. There are 10,000 writes if
// LULLSQL_ALL is set.
func TestNoWriteIsCarriedOutTwice(t *testing.T) {
	writes := 3_000
	switch {
	case os.Getenv("LULLSQL_ALL") != "":
		writes = 10_000
	case testing.Short():
		writes = 1_500
	}
	each(t, func(t *testing.T, k *kind) {
		s := k.server.Own(t)
		p := dbserver.NewProxy(t, s.Addr(), 0.3, 1_500) // a third of those is over before that many bytes
		d := newDependency(t, lull.Policy{})
		db := k.open(t, p.Addr(), d)
		db.SetMaxOpenConns(8)
		db.SetMaxIdleConns(8)
		k.tally(t, s, d, db).Cut(t, p, writes, func() { discard(t, db) })
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
		s := k.server.Own(t)
		d := newDependency(t, lull.Policy{AttemptTimeout: 300 * time.Millisecond, Deadline: time.Second, Budget: budget.Config{Stock: 20}})
		db := k.open(t, s.Addr(), d)
		db.SetMaxOpenConns(8)
		k.tally(t, s, d, db).Restarts(t, s, k.deaf)
	})
}
