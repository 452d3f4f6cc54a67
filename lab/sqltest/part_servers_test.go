//go:build servers

package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/integrations/lullsql"
	"github.com/lullgo/lull/internal/must"
)

// The locked row is in the way of each query at its end. What Exec repeats when it is free is there once, and so is
// what it does not repeat.
func TestNothingIsRepeatedInPart(t *testing.T) {
	const (
		lock    = "SELECT n FROM acc WHERE id=2 FOR UPDATE"
		blocked = "SELECT n FROM acc WHERE id=2 FOR UPDATE NOWAIT"
	)
	type query struct {
		name, text string
		want       error // nil: it is repeated
	}
	setup := map[bool][]string{ // by: is it MariaDB
		false: {
			"CREATE PROCEDURE pay() LANGUAGE plpgsql AS $$ BEGIN INSERT INTO ledger VALUES (1); COMMIT; PERFORM n FROM acc WHERE id=2 FOR UPDATE NOWAIT; END $$",
			"CREATE FUNCTION paid() RETURNS int LANGUAGE plpgsql AS $$ BEGIN INSERT INTO ledger VALUES (1); PERFORM n FROM acc WHERE id=2 FOR UPDATE NOWAIT; RETURN 1; END $$",
		},
		true: {
			"SET GLOBAL innodb_lock_wait_timeout=1", // there is no NOWAIT in procedures
			"CREATE PROCEDURE pay() BEGIN INSERT INTO ledger VALUES (1); SELECT n INTO @n FROM acc WHERE id=2 FOR UPDATE; END",
			"CREATE FUNCTION paid() RETURNS INT MODIFIES SQL DATA BEGIN INSERT INTO ledger VALUES (1); RETURN (SELECT n FROM acc WHERE id=2 FOR UPDATE); END",
			"CREATE FUNCTION kept() RETURNS INT MODIFIES SQL DATA BEGIN INSERT INTO myisam VALUES (1); RETURN (SELECT n FROM acc WHERE id=2 FOR UPDATE); END",
			"CREATE TABLE myisam (id INT) ENGINE=MyISAM", "CREATE TABLE aria (id INT) ENGINE=Aria",
			"CREATE TABLE target (id INT) ENGINE=InnoDB", "CREATE TRIGGER audit AFTER INSERT ON target FOR EACH ROW INSERT INTO aria VALUES (1)",
		},
	}
	queries := map[bool][]query{
		false: {
			{"one statement", "WITH l AS (INSERT INTO ledger VALUES (1)) " + blocked, nil},
			{"one statement with a comment", " /* pay */ -- now\n WITH l AS (INSERT INTO ledger VALUES (1)) " + blocked + " ; ", nil},
			{"a function", "SELECT paid()", nil},
			{"a procedure", "CALL pay()", lull.ErrNotIdempotent},
			{"a procedure in a comment's shadow", "/* INSERT */ CALL pay()", lull.ErrNotIdempotent},
			{"a nested comment", "/* /* */ SELECT */ CALL pay()", lull.ErrNotIdempotent},
			{"a block", "DO $$ BEGIN INSERT INTO ledger VALUES (1); COMMIT; PERFORM n FROM acc WHERE id=2 FOR UPDATE NOWAIT; END $$", lull.ErrNotIdempotent},
			{"several statements", "BEGIN; INSERT INTO ledger VALUES (1); COMMIT; " + blocked, lull.ErrNotIdempotent},
			{"several, the first one of rows", "INSERT INTO ledger VALUES (1); COMMIT; " + blocked, lull.ErrNotIdempotent},
		},
		true: {
			{"one statement", "INSERT INTO ledger SELECT n FROM acc ORDER BY id FOR UPDATE NOWAIT", nil},
			{"a function", "SELECT paid()", nil},
			{"a procedure", "CALL pay()", lull.ErrNotIdempotent},
			{"a procedure in a comment", "/*! CALL */ /*M! pay() */", lull.ErrNotIdempotent},
			{"several statements", "INSERT INTO ledger VALUES (1); " + blocked, lull.ErrNotIdempotent},
			{"a table without transactions", "INSERT INTO myisam SELECT n FROM acc ORDER BY id FOR UPDATE NOWAIT", lullsql.ErrOutcomeUnknown},
			{"a trigger into one", "INSERT INTO target SELECT n FROM acc ORDER BY id FOR UPDATE NOWAIT", lullsql.ErrOutcomeUnknown},
			{"a function that writes into one", "SELECT kept()", lullsql.ErrOutcomeUnknown},
		},
	}
	each(t, func(t *testing.T, k *kind) {
		s := k.server.Own(t)
		maria := k.name == "MariaDB"
		exec(t, opened(t, sql.OpenDB(k.connector(s.Addr()))), "CREATE DATABASE app") // in MariaDB's own one there are no triggers
		connector := k.to(s.Addr(), k.user, "app")
		direct := opened(t, sql.OpenDB(connector))
		exec(t, direct, append([]string{"CREATE TABLE ledger (id INT)", "CREATE TABLE acc (id INT PRIMARY KEY, n INT)", "INSERT INTO acc VALUES (1, 0), (2, 0)"}, setup[maria]...)...)
		tables := []string{"ledger"}
		if maria {
			tables = []string{"ledger", "myisam", "aria"}
		}
		// try makes a call while the row is locked, until a retry waits, and returns how often it is in the tables.
		try := func(t *testing.T, call func(*lull.Dependency, *sql.DB) error) (int, error) {
			for _, table := range tables {
				exec(t, direct, "DELETE FROM "+table)
			}
			tx := must.Have(direct.Begin())
			defer tx.Rollback()
			exec(t, tx, lock)
			d := newDependency(t, patient, lull.WithObserver(onRetry(func() { tx.Rollback() })))
			c := must.Have(lullsql.NewConnector(connector, d, lullsql.Config{}))
			err := call(d, opened(t, sql.OpenDB(c)))
			tx.Rollback()
			there := 0
			for _, table := range tables {
				n := 0
				must.Succeed(direct.QueryRow("SELECT COUNT(*) FROM " + table).Scan(&n))
				there += n
			}
			return there, err
		}
		for _, q := range queries[maria] {
			t.Run(q.name, func(t *testing.T) {
				n, err := try(t, func(d *lull.Dependency, db *sql.DB) error {
					_, err := lullsql.Exec(t.Context(), d, db, q.text)
					return err
				})
				rows := 1
				if maria && q.want == nil && strings.HasPrefix(q.text, "INSERT") {
					rows = 2
				}
				if n != rows || !errors.Is(err, q.want) || (err == nil) != (q.want == nil) {
					t.Errorf("%d rows, want %d; %v, want %v", n, rows, err, q.want)
				}
			})
		}
		for _, x := range []struct {
			name, insert string
			opts         []lull.CallOption
			want         error
			runs, rows   int
		}{
			{"Tx", "INSERT INTO ledger VALUES (1)", nil, nil, 3, 1}, // the second run follows at once
			{"Tx, once", "INSERT INTO ledger VALUES (1)", []lull.CallOption{lull.Once()}, lull.ErrAttemptsExhausted, 1, 0},
			{"Tx, a table without transactions", "INSERT INTO myisam VALUES (1)", nil, lullsql.ErrOutcomeUnknown, 1, 1},
			{"Tx, the same, idempotent", "INSERT INTO myisam VALUES (1)", []lull.CallOption{lull.Idempotent()}, nil, 3, 3},
		} {
			if !maria && strings.Contains(x.insert, "myisam") {
				continue
			}
			t.Run(x.name, func(t *testing.T) {
				runs := 0
				n, err := try(t, func(d *lull.Dependency, db *sql.DB) error {
					return lullsql.Tx(t.Context(), d, db, nil, func(ctx context.Context, tx *sql.Tx) error {
						runs++
						if _, err := tx.ExecContext(ctx, x.insert); err != nil {
							return err
						}
						_, err := tx.ExecContext(ctx, blocked)
						return err
					}, x.opts...)
				})
				if runs != x.runs || n != x.rows || !errors.Is(err, x.want) || (err == nil) != (x.want == nil) {
					t.Errorf("%d runs, %d rows, %v; want %d, %d, %v", runs, n, err, x.runs, x.rows, x.want)
				}
			})
		}
		t.Run("Read that is not idempotent", func(t *testing.T) {
			n, err := try(t, func(d *lull.Dependency, db *sql.DB) error {
				_, err := lullsql.Read(t.Context(), d, db, func(ctx context.Context, c *sql.Conn) (int, error) {
					if _, err := c.ExecContext(ctx, "INSERT INTO ledger VALUES (1)"); err != nil {
						return 0, err
					}
					_, err := c.ExecContext(ctx, blocked)
					return 0, err
				}, lull.NotIdempotent())
				return err
			})
			if n != 1 || !errors.Is(err, lull.ErrNotIdempotent) {
				t.Errorf("%d rows, %v", n, err)
			}
		})
	})
}
