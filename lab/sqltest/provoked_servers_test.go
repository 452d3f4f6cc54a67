//go:build servers

package sqltest

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	sqlite "github.com/ncruces/go-sqlite3/driver"

	"github.com/lullgo/lull/integrations/lullsql"
	"github.com/lullgo/lull/internal/must"
)

// provoked is a code of docs/protocols.md that a server answers with: to the statement do, after those of before in its
// session, and those of other in another one. A statement that begins with & waits for a lock.
type provoked struct {
	code          string
	before, other []string
	do, kind      string // the kind of the verdict, or timeout
	as, database  string // whose session it is, and where, if not that of all others
}

var onPostgres = []provoked{
	{"40001", []string{"BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT * FROM p"}, []string{"UPDATE p SET n=n+1"}, "UPDATE p SET n=n+1", "transient", "", ""},
	{"40P01", []string{"SET deadlock_timeout=50", "BEGIN", "UPDATE p SET n=n+1 WHERE id=1"}, []string{"SET deadlock_timeout='1h'", "BEGIN", "UPDATE p SET n=n+1 WHERE id=2", "&UPDATE p SET n=n+1 WHERE id=1"}, "UPDATE p SET n=n+1 WHERE id=2", "transient", "", ""},
	{"55P03", nil, []string{"BEGIN", "UPDATE p SET n=n+1"}, "SELECT * FROM p FOR UPDATE NOWAIT", "transient", "", ""},
	{"0A000", []string{"PREPARE star AS SELECT * FROM w"}, []string{"ALTER TABLE w ADD m INT"}, "EXECUTE star", "transient", "", ""},
	{"25006", []string{"SET default_transaction_read_only=on"}, nil, "UPDATE p SET n=1", "transient", "", ""},
	{"25P03", []string{"SET idle_in_transaction_session_timeout=50", "BEGIN"}, []string{"SELECT pg_sleep(1)"}, "SELECT 1", "transient", "", ""},
	{"57P01", nil, nil, "SELECT pg_terminate_backend(pg_backend_pid())", "transient", "", ""},
	{"57014", []string{"SET statement_timeout=50"}, nil, "SELECT pg_sleep(60)", "timeout", "", ""},
	{"28000", nil, nil, "SELECT 1", "unclassified", "nobody", ""},
	{"3D000", nil, nil, "SELECT 1", "unclassified", "", "missing"},
	{"42501", []string{"SET ROLE guest"}, nil, "SELECT * FROM p", "unclassified", "", ""},
	{"42P01", nil, nil, "SELECT * FROM missing", "unclassified", "", ""},
	{"42703", nil, nil, "SELECT missing FROM p", "unclassified", "", ""},
	{"42883", nil, nil, "SELECT missing(1)", "unclassified", "", ""},
	{"3F000", nil, nil, "CREATE TABLE missing.p (n INT)", "unclassified", "", ""},
	{"26000", nil, nil, "EXECUTE missing", "unclassified", "", ""},
	{"23505", nil, nil, "INSERT INTO p VALUES (1, 1)", "permanent", "", ""},
	{"23502", nil, nil, "INSERT INTO p VALUES (NULL, 1)", "permanent", "", ""},
	{"22003", nil, nil, "INSERT INTO p VALUES (3, 99999999999)", "permanent", "", ""},
	{"22P02", nil, nil, "INSERT INTO p VALUES (3, 'x')", "permanent", "", ""},
}

var onMariaDB = []provoked{
	{"1205", []string{"SET innodb_lock_wait_timeout=1"}, []string{"BEGIN", "UPDATE p SET n=n+1"}, "UPDATE p SET n=n+1", "transient", "", ""},
	// The transaction that has changed less is rolled back.
	{"1213", []string{"BEGIN", "UPDATE p SET n=n+1 WHERE id=1"}, []string{"BEGIN", "INSERT INTO w VALUES (1), (2), (3), (4)", "UPDATE p SET n=n+1 WHERE id=2", "&UPDATE p SET n=n+1 WHERE id=1"}, "UPDATE p SET n=n+1 WHERE id=2", "transient", "", ""},
	{"1020", []string{"SET innodb_snapshot_isolation=ON", "BEGIN", "SELECT * FROM p"}, []string{"UPDATE p SET n=n+1"}, "UPDATE p SET n=n+1", "transient", "", ""},
	{"1412", []string{"BEGIN", "SELECT * FROM p"}, []string{"ALTER TABLE w ADD m INT, ALGORITHM=COPY"}, "SELECT * FROM w", "transient", "", ""},
	{"1792", []string{"SET SESSION TRANSACTION READ ONLY", "BEGIN"}, nil, "UPDATE p SET n=1", "transient", "", ""},
	{"1969", []string{"SET max_statement_time=0.05"}, nil, "SELECT SLEEP(60) FROM p", "timeout", "", ""},
	{"1045", nil, nil, "SELECT 1", "unclassified", "nobody", ""},
	{"1049", nil, nil, "SELECT 1", "unclassified", "", "missing"},
	{"1142", nil, nil, "SELECT * FROM p", "unclassified", "guest", ""},
	{"1044", nil, nil, "CREATE DATABASE other", "unclassified", "guest", ""},
	{"1146", nil, nil, "SELECT * FROM missing", "unclassified", "", ""},
	{"1054", nil, nil, "SELECT missing FROM p", "unclassified", "", ""},
	{"1305", nil, nil, "SELECT missing(1)", "unclassified", "", ""},
	{"1364", nil, nil, "INSERT INTO p (n) VALUES (1)", "unclassified", "", ""},
	{"1064", nil, nil, "SELEC 1", "unclassified", "", ""},
	{"1062", nil, nil, "INSERT INTO p VALUES (1, 1)", "permanent", "", ""},
	{"1452", nil, nil, "INSERT INTO child VALUES (99)", "permanent", "", ""},
	{"1264", nil, nil, "INSERT INTO p VALUES (3, 99999999999)", "permanent", "", ""},
	{"1366", nil, nil, "INSERT INTO p VALUES (3, 'x')", "permanent", "", ""},
	{"1290", nil, []string{"SET GLOBAL read_only=ON"}, "INSERT INTO w (n) VALUES (1)", "transient", "guest", ""},
}

var onSQLite = []provoked{
	{"SQLite 5", nil, []string{"BEGIN IMMEDIATE"}, "UPDATE p SET n=1", "transient", "", ""},
	{"SQLite 1", nil, nil, "SELECT * FROM missing", "unclassified", "", ""},
	{"SQLite 8", []string{"PRAGMA query_only=ON"}, nil, "UPDATE p SET n=1", "unclassified", "", ""},
	{"SQLite 19", nil, nil, "INSERT INTO p VALUES (1, 1)", "permanent", "", ""},
}

// These codes mean what docs/protocols.md says, which has their number.
func TestProvoked(t *testing.T) {
	text := must.Have(os.ReadFile("../../docs/protocols.md"))
	want := fmt.Sprintf("provoke %d of these codes", len(onPostgres)+len(onMariaDB)+len(onSQLite))
	if !strings.Contains(string(text), want) {
		t.Errorf("docs/protocols.md does not say that tests %s", want)
	}
	file := "file:" + t.TempDir() + "/db"
	t.Run("SQLite", func(t *testing.T) {
		provokeAll(t, onSQLite, "sqlite_", nil, func(string, string) *sql.DB {
			return must.Have(sqlite.Open(file + "?_pragma=busy_timeout(0)"))
		})
	})
	each(t, func(t *testing.T, k *kind) {
		addr := k.server.Own(t).Addr()
		all, prefix, setup := onPostgres, "", []string{"CREATE ROLE guest"}
		if k.name == "MariaDB" {
			all, prefix, setup = onMariaDB, "mysql_", []string{
				"CREATE TABLE child (id INT, FOREIGN KEY (id) REFERENCES p (id))",
				"CREATE USER nobody@'127.0.0.1' IDENTIFIED BY 'x'", "CREATE USER guest@'127.0.0.1'", "GRANT INSERT ON mysql.w TO guest@'127.0.0.1'",
			}
		}
		provokeAll(t, all, prefix, setup, func(user, database string) *sql.DB {
			return sql.OpenDB(k.to(addr, cmp.Or(user, k.user), cmp.Or(database, k.own)))
		})
	})
}

func provokeAll(t *testing.T, all []provoked, prefix string, setup []string, open func(user, database string) *sql.DB) {
	root := opened(t, open("", ""))
	exec(t, root, append([]string{"CREATE TABLE p (id INT PRIMARY KEY, n INT)", "INSERT INTO p VALUES (1, 0), (2, 0)", "CREATE TABLE w (n INT)"}, setup...)...)
	for _, x := range all {
		t.Run(x.code, func(t *testing.T) {
			beside := must.Have(root.Conn(t.Context()))
			defer beside.Close()
			defer beside.ExecContext(context.Background(), "ROLLBACK")
			err := x.provoke(t, root, beside, opened(t, open(x.as, x.database)), waiting[prefix])
			v := lullsql.Classify(err)
			if err == driver.ErrBadConn { // of lib/pq, for each answer after which the server closes the connection
				v.Code = x.code
			}
			code := prefix + strings.TrimPrefix(x.code, "SQLite ")
			if err == nil || (v.Kind.String() != x.kind || v.Code != code) && v.Code != x.kind {
				t.Errorf("%+v, want %s, %s", v, code, x.kind)
			}
		})
	}
}

// provoke returns with what do ends in a session of db.
func (x provoked) provoke(t *testing.T, root *sql.DB, beside *sql.Conn, db *sql.DB, waiting string) error {
	ctx := t.Context()
	in, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer in.Close()
	exec := func(c *sql.Conn, q string) {
		if _, err := c.ExecContext(ctx, q); err != nil {
			t.Error(q, err)
		}
	}
	for _, q := range x.before {
		exec(in, q)
	}
	for _, q := range x.other {
		q, waits := strings.CutPrefix(q, "&")
		if !waits {
			exec(beside, q)
			continue
		}
		ended := make(chan struct{})
		defer func() { <-ended }()
		go func() { defer close(ended); exec(beside, q) }()
		for blocked := 0; blocked == 0; time.Sleep(150 * time.Millisecond) { // MariaDB looks again if it was not asked for 100 ms
			must.Succeed(root.QueryRow(waiting).Scan(&blocked))
		}
	}
	defer in.ExecContext(context.Background(), "ROLLBACK") // for which the other one may wait
	_, err = in.ExecContext(ctx, x.do)
	return err
}

// waiting counts the statements that wait for a lock.
var waiting = map[string]string{
	"":       "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type='Lock'",
	"mysql_": "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state='LOCK WAIT'",
}
