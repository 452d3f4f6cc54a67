package sqlerr

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/must"
)

type stateError string

func (e stateError) Error() string    { return "state " + string(e) }
func (e stateError) SQLState() string { return string(e) }

type safeError bool

func (e safeError) Error() string     { return "safe" }
func (e safeError) SafeToRetry() bool { return bool(e) }

// connLockError has the form of pgx's.
type connLockError struct{ status string }

func (e *connLockError) Error() string     { return e.status }
func (e *connLockError) SafeToRetry() bool { return true }

// MySQLError has the form of go-sql-driver's.
type MySQLError struct {
	Number   uint16
	SQLState [5]byte
	Message  string
}

func (e *MySQLError) Error() string { return e.Message }

// pgError has the form of pgx's and lib/pq's.
type pgError struct{ Code, Routine string }

func (e *pgError) Error() string    { return e.Code }
func (e *pgError) SQLState() string { return e.Code }

// What is known after each kind of answer. The codes themselves are in docs/protocols.md.
func TestClassify(t *testing.T) {
	const (
		transient, permanent, nothing = engine.KindTransient, engine.KindPermanent, engine.KindUnclassified
		yes, no                       = true, false
	)
	for _, x := range []struct {
		err       error
		kind      engine.VerdictKind
		noEffect  bool
		code      string
		conflict  bool
		answered  bool
		elsewhere bool
	}{
		{stateError("40001"), transient, yes, "40001", yes, yes, no},
		{stateError("40P01"), transient, yes, "40P01", yes, yes, no},
		{stateError("40002"), permanent, no, "40002", no, yes, no},
		{stateError("40003"), nothing, no, engine.CodeOutcomeUnknown, no, no, no},
		{stateError("08006"), transient, no, "08006", no, no, no},
		{stateError("08004"), transient, yes, "08004", no, yes, no},
		{stateError("53300"), transient, yes, "53300", no, yes, no},
		{stateError("53100"), transient, yes, "53100", no, yes, no},
		{stateError("57P01"), transient, no, "57P01", no, no, no},
		{stateError("57P03"), transient, yes, "57P03", no, yes, no},
		{stateError("57P05"), transient, yes, "57P05", no, no, no},
		{stateError("25P03"), transient, yes, "25P03", no, no, no},
		{stateError("57014"), transient, no, "timeout", no, yes, no},
		{stateError("25006"), transient, yes, "25006", no, yes, yes},
		{stateError("25P02"), permanent, no, "25P02", no, yes, no},
		{stateError("23505"), permanent, no, "23505", no, yes, no},
		{stateError("XX000"), nothing, no, "XX000", no, no, no},
		{stateError("28P01"), nothing, no, "28P01", no, yes, no},
		{stateError("42501"), nothing, no, "42501", no, yes, no},
		{stateError("22003"), permanent, no, "22003", no, yes, no},
		{stateError("4"), permanent, no, "4", no, yes, no},
		{stateError("0A000"), permanent, no, "0A000", no, yes, no},
		{&pgError{"0A000", "transformLockingClause"}, permanent, no, "0A000", no, yes, no},
		{&pgError{"0A000", "RevalidateCachedQuery"}, transient, yes, "0A000", yes, yes, no},
		{&MySQLError{Number: 1213}, transient, yes, "mysql_1213", yes, yes, no},
		{&MySQLError{Number: 1040}, transient, yes, "mysql_1040", no, yes, no},
		{&MySQLError{Number: 1290}, transient, yes, "mysql_1290", no, yes, yes},
		{&MySQLError{Number: 4031}, transient, yes, "mysql_4031", no, no, no},
		{&MySQLError{Number: 1317}, transient, no, "timeout", no, yes, no},
		{&MySQLError{Number: 2006}, transient, no, "mysql_2006", no, no, no},
		{&MySQLError{Number: 1180}, nothing, no, engine.CodeOutcomeUnknown, no, no, no},
		{&MySQLError{Number: 1045}, nothing, no, "mysql_1045", no, yes, no},
		{&MySQLError{Number: 1146}, nothing, no, "mysql_1146", no, yes, no},
		{&MySQLError{Number: 1114}, nothing, no, "mysql_1114", no, no, no},
		{&MySQLError{Number: 1062}, permanent, no, "mysql_1062", no, yes, no},
		{driver.ErrBadConn, transient, yes, "bad_connection", no, no, no},
		{safeError(true), transient, yes, "bad_connection", no, no, no},
		{&connLockError{"conn closed"}, transient, no, "bad_connection", no, no, no},
		{sql.ErrNoRows, engine.KindSuccess, no, "", no, yes, no},
		{(*MySQLError)(nil), nothing, no, "", no, no, no},
		{safeError(false), nothing, no, "", no, no, no},
		{errors.New("x"), nothing, no, "", no, no, no},
	} {
		_, mysql := x.err.(*MySQLError)
		for _, err := range []error{x.err, fmt.Errorf("query: %w", x.err), errors.Join(errors.New("y"), x.err)} {
			want := Class{engine.Verdict{Kind: x.kind, NeverSent: x.noEffect, Code: x.code}, x.conflict, x.answered, x.elsewhere, mysql && x.code != ""}
			if _, several := err.(interface{ Unwrap() []error }); several {
				want.NeverSent = false
			}
			c, known := Classify(err)
			if c != want || known != (x.code != "" || x.answered) {
				t.Errorf("%v: %+v %t, want %+v", err, c, known, want)
			}
		}
	}
}

// The tables of docs/protocols.md are those of the code.
func TestTablesOfTheDocs(t *testing.T) {
	text := must.Have(os.ReadFile("../../docs/protocols.md"))
	_, tables, found := strings.Cut(string(text), "\n### Codes\n")
	if !found {
		t.Fatal("docs/protocols.md has no section of codes")
	}
	inDocs := map[string]effect{}
	effects := map[string]effect{"conflict": conflict, "undone": undone, "elsewhere": otherServer, "unread": notRead, "timeout": timedOut, "cut": sessionLost, "unknown": unknown, "ill": serverFault, "setup": setupError}
	for _, row := range regexp.MustCompile(`(?m)^\| (\x60.*?) \| .* \| (\w+) \|`).FindAllStringSubmatch(tables, -1) {
		e, ok := effects[row[2]]
		if !ok {
			t.Errorf("%q is no effect", row[2])
		}
		for _, code := range regexp.MustCompile("`(.*?)`").FindAllStringSubmatch(row[1], -1) {
			inDocs[code[1]] = e
		}
	}
	inCode := map[string]effect{"0A000 of a cached plan": conflict}
	for code, e := range states {
		if len(code) == 2 {
			code += "xxx"
		}
		inCode[code] = e
	}
	for n, e := range numbers {
		inCode[fmt.Sprint(n)] = e
	}
	for n, e := range results {
		inCode[fmt.Sprint("SQLite ", n)] = e
	}
	for code, e := range inCode {
		if of, ok := inDocs[code]; !ok || of != e {
			t.Errorf("%s is not in docs/protocols.md, or with another meaning", code)
		}
		delete(inDocs, code)
	}
	for code := range inDocs {
		t.Errorf("%s is in docs/protocols.md and not in the code", code)
	}
}

// A connection of an unknown form is not idle.
func TestIdleIsNeverGuessed(t *testing.T) {
	for _, conn := range []any{nil, 5, "I", struct{ txnStatus byte }{'I'}, &struct{ txnStatus byte }{'I'}, (*pgError)(nil), oddConn{}} {
		if Idle(conn) {
			t.Errorf("%#v is idle", conn)
		}
	}
}

// An error is MySQL's only if it has the name and the form of go-sql-driver's.
func TestErrorsThatAreNotOfMySQL(t *testing.T) {
	type other struct {
		error
		Number uint16
	}
	type MySQLError struct {
		error
		Number string
	}
	type empty struct{ error }
	x := errors.New("x")
	for _, err := range []error{other{x, 1213}, &other{x, 1213}, MySQLError{x, "1213"}, &MySQLError{x, "1213"}, empty{x}} {
		if c, known := Classify(err); known {
			t.Errorf("%T: %+v", err, c)
		}
	}
}

// oddConn has a method of pgx's connection.
type oddConn struct{}

func (oddConn) TxStatus() byte { return 'I' }
