package sqlerr

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"testing"

	"github.com/lullgo/lull/engine"
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

func TestClassify(t *testing.T) {
	const (
		transient, permanent, nothing = engine.KindTransient, engine.KindPermanent, engine.KindUnclassified
	)
	for _, x := range []struct {
		err      error
		kind     engine.Kind
		noEffect bool
		code     string
		conflict bool
		answered bool
		known    bool
	}{
		{stateError("40001"), transient, true, "40001", true, true, true},
		{stateError("40P01"), transient, true, "40P01", true, true, true},
		{stateError("40003"), nothing, false, OutcomeUnknown, false, false, true},
		{stateError("08006"), transient, false, "08006", false, false, true},
		{stateError("08004"), transient, true, "08004", false, true, true},
		{stateError("53300"), transient, true, "53300", false, true, true},
		{stateError("57P01"), transient, false, "57P01", false, false, true},
		{stateError("57P02"), transient, false, "57P02", false, false, true},
		{stateError("57P03"), transient, true, "57P03", false, true, true},
		{stateError("57014"), transient, false, "timeout", false, true, true},
		{stateError("23505"), permanent, false, "23505", false, true, true},
		{stateError("XX000"), nothing, false, "XX000", false, false, true},
		{stateError("4"), permanent, false, "4", false, true, true},
		{&MySQLError{Number: 1213}, transient, true, "mysql_1213", true, true, true},
		{&MySQLError{Number: 1205}, transient, true, "mysql_1205", true, true, true},
		{&MySQLError{Number: 1040}, transient, true, "mysql_1040", false, true, true},
		{&MySQLError{Number: 2006}, transient, false, "mysql_2006", false, false, true},
		{&MySQLError{Number: 2013}, transient, false, "mysql_2013", false, false, true},
		{&MySQLError{Number: 1062}, permanent, false, "mysql_1062", false, true, true},
		{(*MySQLError)(nil), nothing, false, "", false, false, false},
		{driver.ErrBadConn, transient, true, "bad_connection", false, false, true},
		{safeError(true), transient, true, "bad_connection", false, false, true},
		{&connLockError{"conn closed"}, transient, false, "bad_connection", false, false, true},
		{safeError(false), nothing, false, "", false, false, false},
		{sql.ErrNoRows, engine.KindSuccess, false, "", false, true, true},
		{errors.New("x"), nothing, false, "", false, false, false},
	} {
		for _, err := range []error{x.err, fmt.Errorf("query: %w", x.err), errors.Join(errors.New("y"), x.err)} {
			want := Class{engine.Verdict{Kind: x.kind, NeverSent: x.noEffect, Code: x.code}, x.conflict, x.answered}
			if _, several := err.(interface{ Unwrap() []error }); several {
				want.NeverSent = false
			}
			c, known := Classify(err)
			if c != want || known != x.known {
				t.Errorf("%v: %+v %t, want %+v %t", err, c, known, want, x.known)
			}
		}
	}
}

func TestSQLite(t *testing.T) {
	for code, want := range map[int]engine.Kind{5: engine.KindTransient, 6: engine.KindTransient, 517: engine.KindTransient, 19: engine.KindPermanent, 10: engine.KindUnclassified} {
		c := bySQLite(code)
		if c.Kind != want || c.Conflict != (want == engine.KindTransient) || c.Conflict != c.NeverSent {
			t.Errorf("%d: %+v, want %v", code, c, want)
		}
	}
}

// Errors of the drivers of SQLite are recognised by the path of their package, so their forms are
// tested in lullsql/sqltest with one driver, and here as codeOf sees them.
func TestNoErrorPanics(t *testing.T) {
	for _, err := range []error{oddCode{}, &oddCode{}, methodCode{}, numberCode(5), structCode{5}} {
		byForm(err)
		Classify(err)
	}
}

type oddCode struct{ Code string }

func (oddCode) Error() string { return "odd" }

type methodCode struct{}

func (methodCode) Error() string  { return "method" }
func (methodCode) Code(x int) int { return x }

type numberCode int

func (numberCode) Error() string { return "number" }

type structCode struct{ Code int }

func (structCode) Error() string { return "struct" }
