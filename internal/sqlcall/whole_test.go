package sqlcall

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

type state string

func (s state) Error() string    { return "state " + string(s) }
func (s state) SQLState() string { return string(s) }

type safe struct{}

func (safe) Error() string     { return "safe" }
func (safe) SafeToRetry() bool { return true }

// rewriter makes another statement of a query.
type rewriter struct{}

func (*rewriter) RewriteQuery() {}

// Which queries a database carries out as a whole, as far as it is certain.
func TestWhole(t *testing.T) {
	for query, want := range map[string]bool{
		"": true, " \n": true,
		"SELECT 1": true, "select f()": true, "SELECT(1)": true, "Insert\tINTO t VALUES (1)": true, "UPDATE t SET n=1": true, "DELETE\nFROM t": true,
		"MERGE INTO t": true, "REPLACE INTO t VALUES (1)": true, "VALUES (1)": true, "WITH x AS (SELECT 1) SELECT 1": true,
		"SELECT 1;": true, "SELECT 1 ; \r\n;": true,
		"-- why\nSELECT 1": true, "-- why\r\nSELECT 1": true, "/* a */ /* b */\n-- c\n  SELECT 1": true, "SELECT 1 /* trace */": true,

		"SELECT 1; SELECT 2": false, "INSERT INTO t VALUES (1);CALL p()": false, "SELECT ';'": false, "SELECT 1; -- end": false,
		"CALL p()": false, "DO $$ $$": false, "EXECUTE s": false, "EXEC p": false, "COPY t FROM STDIN": false, "LOAD DATA INFILE ''": false,
		"CREATE INDEX CONCURRENTLY i ON t (n)": false, "ALTER TABLE t ADD n INT": false, "TRUNCATE t": false, "VACUUM": false, "REFRESH MATERIALIZED VIEW v": false,
		"BEGIN": false, "COMMIT": false, "SET x=1": false, "LOCK TABLES t WRITE": false, "EXPLAIN ANALYZE INSERT INTO t VALUES (1)": false, "(SELECT 1)": false,
		"SELECT": false, "select_name": false, "selected 1": false, "insertion (1)": false, "update-account": false,
		"/*! CALL p() */ SELECT 1": false, "/*M! CALL p() */ SELECT 1": false, "/* /* */ SELECT 1 */ CALL p()": false, "/* SELECT 1": false,
		"\ufeffSELECT 1": false, "\u00a0SELECT 1": false, "SELECT\u00a01": false, "\vSELECT 1": false, "SELECT 1;\u00a0": false, "SELECT 1;\x00": false, "SELECT/**/1": false,
		"TABLE t": false, "INSERT INTO t VALUES (1); -- end": false, `INSERT INTO t VALUES ('\'; CALL p(); -- ')`: false, "SELECT $$;$$": false,
		"DELIMITER //\nINSERT INTO t VALUES (1)//": false, "HANDLER t OPEN": false, "IF 1=1 INSERT INTO t VALUES (1)": false, "DECLARE @n INT": false,
		"-- SELECT 1": false, "-- a\rCALL p()\nSELECT 1": false, "# a\nSELECT 1": false,
	} {
		check.Equal(t, isAtomic(query, nil), want, "%q", query)
	}
	for _, args := range [][]any{{1, nil, "SELECT 1; SELECT 2"}, {sql.Named("a", 1)}} {
		if !isAtomic("SELECT 1", args) {
			t.Errorf("not with %v", args)
		}
	}
	for _, query := range []string{"", "SELECT 1"} {
		if isAtomic(query, []any{1, &rewriter{}}) {
			t.Errorf("%q although it is rewritten", query)
		}
	}
}

// What proves that a statement, or several of them, had no effect.
func TestWhatProvesThatNothingWasDone(t *testing.T) {
	const one, many = "INSERT INTO t VALUES (1)", "CALL p()"
	dial := func(err error) error { return &DialError{err} }
	for _, x := range []struct {
		err                error
		one, many, several bool
	}{
		{state("40001"), true, false, false},
		{state("53300"), true, false, false},
		{state("25006"), true, false, false},
		{state("57P05"), true, true, false},
		{safe{}, true, true, false},
		{lull.NeverSent(errors.New("x")), true, true, false},
		{driver.ErrBadConn, false, false, false},
		{fmt.Errorf("exec: %w", driver.ErrBadConn), false, false, false},
		{state("08006"), false, false, false},
		{state("40003"), false, false, false},
		{state("57014"), false, false, false},
		{errors.Join(state("40001"), errors.New("x")), false, false, false},
		{dial(state("53300")), true, true, true},
		{dial(state("40001")), true, true, true},
		{dial(driver.ErrBadConn), true, true, true},
		{dial(errors.New("x")), true, true, true},
	} {
		v := Classify(x.err)
		for query, want := range map[string]bool{one: x.one, many: x.many} {
			if got := VerdictOnStatement(v, x.err, query, nil); got.NeverSent != want || got.Kind != v.Kind || got.Code != v.Code {
				t.Errorf("%v, %s: %+v, want %t", x.err, query, got, want)
			}
		}
		if got := VerdictOnSeveral(v, x.err); got.NeverSent != x.several || got.Kind != v.Kind {
			t.Errorf("%v, several: %+v, want %t", x.err, got, x.several)
		}
	}
}

// After some errors of COMMIT the outcome of the transaction is known.
func TestUnanswered(t *testing.T) {
	for _, x := range []struct {
		err        error
		busy, idle bool // known, by what PostgreSQL has said of the connection
	}{
		{errors.New("commit resulted in rollback"), false, true},
		{state("40001"), true, true},
		{state("23505"), true, true},
		{state("25P03"), true, true}, // before COMMIT was read
		{safe{}, true, true},
		{sql.ErrTxDone, true, true},
		{driver.ErrBadConn, false, false},
		{state("57P01"), false, false},
		{state("40003"), false, false},
		{state("XX000"), false, false},
	} {
		for idle, known := range map[bool]bool{false: x.busy, true: x.idle} {
			err := CommitError(x.err, idle)
			if errors.Is(err, ErrOutcomeUnknown) == known || !errors.Is(err, x.err) {
				t.Errorf("%v, idle %t: %v", x.err, idle, err)
			}
		}
	}
}

// A connection is given up if another one may reach a server that takes the statement.
func TestGiveUp(t *testing.T) {
	for _, x := range []struct {
		err      error
		readOnly bool
		want     bool
	}{
		{state("25006"), false, true},
		{state("25006"), true, false}, // the program has asked for that
		{state("40001"), false, false},
		{state("40001"), true, false},
		{state("53300"), false, false},
	} {
		err := OfCaller(x.err, x.readOnly)
		if v := Classify(err); ShouldClose(v, err) != x.want || (v.Kind == lull.KindTransient) != (x.want || x.err != state("25006")) {
			t.Errorf("%v, read-only %t: %+v", x.err, x.readOnly, v)
		}
	}
}

// What is set up on a server says nothing about what was sent, on a dial as on a connection that has ended with it.
func TestSetup(t *testing.T) {
	broken := func() bool { return true }
	for _, x := range []struct {
		err  error
		kind engine.VerdictKind
		sent bool
	}{
		{state("28P01"), lull.KindUnclassified, true},
		{&DialError{state("28P01")}, lull.KindUnclassified, false},
		{NoConn(fmt.Errorf("connect: %w", state("3D000"))), lull.KindUnclassified, false},
		{&DialError{lull.Transient(state("28P01"))}, lull.KindTransient, false},
		{&DialError{lull.Permanent(state("28P01"))}, lull.KindPermanent, false},
		{lull.Transient(&DialError{state("28P01")}), lull.KindTransient, false},
		{&DialError{state("53300")}, lull.KindTransient, false},
		{&DialError{state("XX000")}, lull.KindTransient, false},
		{state("XX000"), lull.KindTransient, true}, // the connection has ended
		{state("23505"), lull.KindPermanent, true},
	} {
		if v := VerdictOn(x.err, broken); v.Kind != x.kind || v.NeverSent == x.sent {
			t.Errorf("%v: %+v", x.err, v)
		}
	}
}

// What a pool says when it has no connection to give is about a dial if it is known at all.
func TestNoConn(t *testing.T) {
	for _, x := range []struct {
		err  error
		dial bool
	}{{state("53300"), true}, {state("28P01"), true}, {&DialError{state("53300")}, true}, {errors.New("database is closed"), false}} {
		err := NoConn(x.err)
		if isDialError(err) != x.dial || !errors.Is(err, x.err) || strings.Contains(err.Error(), "dial: dial") {
			t.Errorf("%v: %v", x.err, err)
		}
	}
}

// MySQLError has the form of go-sql-driver's.
type MySQLError struct{ Number uint16 }

func (e *MySQLError) Error() string { return fmt.Sprint("error ", e.Number) }

// warnings is a connection to MySQL that has warnings after the last statement. Of those, only kept are sent. What real servers
// send is tested in lullsql/sqltest.
type warnings struct {
	all              int
	kept             []driver.Value
	fails            int  // the number of the query that fails; 0: none
	cut              bool // after the last row
	asked, rowsLeft  int
	driver.Conn      // which is not used
	driver.Connector // likewise
}

var errCut = errors.New("the connection broke")

func (w *warnings) Connect(context.Context) (driver.Conn, error) { return w, nil }
func (w *warnings) Close() error                                 { return nil }

func (w *warnings) QueryContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Rows, error) {
	if w.asked++; w.asked == w.fails {
		return nil, errCut
	}
	w.rowsLeft++
	if query == "SHOW COUNT(*) WARNINGS" {
		return &rows{w: w, columns: 1, values: []driver.Value{int64(w.all)}}, nil
	}
	return &rows{w: w, columns: 3, values: w.kept, cut: w.cut}, nil
}

// rows have a value each, beside texts.
type rows struct {
	w       *warnings
	columns int
	values  []driver.Value
	cut     bool
}

func (r *rows) Columns() []string { return make([]string, r.columns) }
func (r *rows) Close() error      { r.w.rowsLeft--; return nil }

func (r *rows) Next(to []driver.Value) error {
	if len(r.values) == 0 {
		return map[bool]error{true: errCut, false: io.EOF}[r.cut]
	}
	to[0], to[len(to)-1] = "Warning", "text"
	to[len(to)/2], r.values = r.values[0], r.values[1:]
	return nil
}

// After a transient answer of MySQL nothing is known to be undone unless all of its warnings are seen, and none is that a table
// has kept a change.
func TestKept(t *testing.T) {
	deadlock := &MySQLError{1213}
	for _, x := range []struct {
		name    string
		w       warnings
		err     error
		asked   int
		unknown bool
	}{
		{"none", warnings{}, deadlock, 2, false},
		{"others", warnings{all: 2, kept: []driver.Value{int64(1213), int64(1265)}}, deadlock, 2, false},
		{"a change is kept", warnings{all: 2, kept: []driver.Value{int64(1213), int64(1196)}}, deadlock, 2, true},
		{"not all are there", warnings{all: 2, kept: []driver.Value{int64(1213)}}, deadlock, 2, true},
		{"none of them is there", warnings{all: 1}, deadlock, 2, true},
		{"no count", warnings{fails: 1}, deadlock, 1, true},
		{"no rows", warnings{fails: 2}, deadlock, 2, true},
		{"cut off", warnings{all: 1, kept: []driver.Value{int64(1213)}, cut: true}, deadlock, 2, true},
		{"an odd row", warnings{all: 2, kept: []driver.Value{int64(1213), "no number"}}, deadlock, 2, true},
		{"a constraint", warnings{all: 1, kept: []driver.Value{int64(1196)}}, &MySQLError{1062}, 0, false},
		{"no answer", warnings{all: 1, kept: []driver.Value{int64(1196)}}, &MySQLError{2006}, 0, false},
		{"a timeout", warnings{all: 1, kept: []driver.Value{int64(1196)}}, &MySQLError{1317}, 2, true},
		{"PostgreSQL", warnings{all: 1, kept: []driver.Value{int64(1196)}}, state("40001"), 0, false},
	} {
		db := sql.OpenDB(&x.w)
		defer db.Close()
		conn := must.Have(db.Conn(t.Context()))
		err := CheckRolledBack(t.Context(), conn, x.err)
		if errors.Is(err, ErrOutcomeUnknown) != x.unknown || !errors.Is(err, x.err) || x.w.asked != x.asked || x.w.rowsLeft != 0 {
			t.Errorf("%s: %v, after %d queries; %d are open", x.name, err, x.w.asked, x.w.rowsLeft)
		}
		if x.w.rowsLeft == 0 {
			conn.Close() // it waits for open rows
		}
	}
}

// Another statement before or after a query, or what some database does not take for a space, is never overlooked.
func FuzzWhole(f *testing.F) {
	for _, q := range []string{"", "SELECT 1", "INSERT INTO t VALUES (';')", "-- a;\nWITH x AS (SELECT 1) SELECT 1", "/* ; */ UPDATE t SET n=1;", "SELECT 1 -- a", `SELECT '\'; CALL p()'`, "SELECT $$;$$", "SELECT 1 /*", "/*"} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, query string) {
		for _, q := range []string{
			query + "; CALL p()", query + ";CALL p() -- end", query + ";--", query + "\n;\u00a0", "CALL p(); " + query, "CALL p()\n" + query, "EXPLAIN ANALYZE " + query,
			"\ufeff" + query, "\u00a0" + query, "\x00" + query, "(" + query, "/*!" + query, "/*M!" + query, "/* /* */" + query, "--\rCALL p()\n" + query, "DELIMITER //\n" + query,
		} {
			if isAtomic(q, nil) {
				t.Errorf("%q", q)
			}
		}
	})
}
