// Package sqlerr classifies the errors of SQL databases: those of database/sql and of its
// drivers, by their types and codes and never by their texts. The drivers themselves are not
// imported. Their errors are recognised by their form:
//
//	SQLState() string                 pgx, lib/pq, and what else reports an SQLSTATE
//	SafeToRetry() bool                pgx, but for its connLockError
//	struct with Number and SQLState   go-sql-driver/mysql
//	Code() or Code, in a package of   modernc.org/sqlite, ncruces/go-sqlite3, mattn/go-sqlite3
//	  SQLite
package sqlerr

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"reflect"
	"strconv"
	"strings"

	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/neterr"
)

// A Class is what an error means.
type Class struct {
	engine.Verdict
	// Conflict: another transaction was in the way of this one, which was rolled back, or has to
	// be. The database is well.
	Conflict bool
	// Answered: the database has answered with this error, so nothing about it is unknown.
	Answered bool
}

// OutcomeUnknown is the code of an error after which nobody knows whether the statement was
// carried out. It is never repeated, whatever else is known.
const OutcomeUnknown = "outcome_unknown"

// Classify returns the class of err, and whether anything is known of it. A verdict with
// NeverSent means that the statement provably had no effect. An error that joins several is about
// several statements, of which one may have had an effect.
func Classify(err error) (c Class, known bool) {
	c, known = classify(err)
	c.NeverSent = c.NeverSent && !neterr.Joined(err)
	return c, known
}

func classify(err error) (c Class, known bool) {
	if code := state(err); code != "" {
		return byState(code), true
	}
	if safe(err) || errors.Is(err, driver.ErrBadConn) {
		return Class{Verdict: engine.Verdict{Kind: transient, NeverSent: !neterr.AnyOf(err, locked), Code: "bad_connection"}}, true
	}
	if errors.Is(err, sql.ErrNoRows) {
		return Class{Verdict: engine.Verdict{Kind: engine.KindSuccess}, Answered: true}, true
	}
	neterr.AnyOf(err, func(e error) bool {
		c, known = byForm(e)
		return known
	})
	return c, known
}

// state is the SQLSTATE of err, if its server has given it one.
func state(err error) string {
	var e interface{ SQLState() string }
	if errors.As(err, &e) {
		return e.SQLState()
	}
	return ""
}

// safe reports whether the driver knows that nothing was sent.
func safe(err error) bool {
	var e interface{ SafeToRetry() bool }
	return errors.As(err, &e) && e.SafeToRetry()
}

// locked reports whether err is pgx's "conn closed". Pgx promises that nothing was sent, but it
// returns this error also when the connection broke before the answer: to a read that follows the
// one that failed.
func locked(err error) bool {
	t := reflect.TypeOf(err)
	return t.Kind() == reflect.Pointer && t.Elem().Name() == "connLockError"
}

// byForm classifies an error of MySQL or SQLite by the form of its type.
func byForm(err error) (Class, bool) {
	v := reflect.ValueOf(err)
	t := v.Type()
	for t.Kind() == reflect.Pointer {
		if v.IsNil() {
			return Class{}, false
		}
		v, t = v.Elem(), t.Elem()
	}
	switch {
	case t.Name() == "MySQLError" && t.Kind() == reflect.Struct:
		if n := v.FieldByName("Number"); n.IsValid() && n.CanUint() {
			return byNumber(uint16(n.Uint())), true
		}
	case strings.Contains(t.PkgPath(), "sqlite"):
		if code, ok := codeOf(err, v); ok {
			return bySQLite(code), true
		}
	}
	return Class{}, false
}

// codeOf returns the result code of an error of SQLite, from its method or field Code, or from
// itself if it is a number.
func codeOf(err error, v reflect.Value) (int, bool) {
	code := v
	if m := reflect.ValueOf(err).MethodByName("Code"); m.IsValid() && m.Type().NumIn() == 0 && m.Type().NumOut() == 1 {
		code = m.Call(nil)[0]
	} else if v.Kind() == reflect.Struct {
		if code = v.FieldByName("Code"); !code.IsValid() {
			return 0, false
		}
	}
	switch {
	case code.CanInt():
		return int(code.Int()), true
	case code.CanUint():
		return int(code.Uint()), true
	}
	return 0, false
}

const (
	transient    = engine.KindTransient
	permanent    = engine.KindPermanent
	unclassified = engine.KindUnclassified
)

// byState classifies an SQLSTATE. Those that are not here the server has answered with, and
// would again.
func byState(code string) Class {
	c := Class{Verdict: engine.Verdict{Kind: permanent, Code: code}, Answered: true}
	switch code {
	case "40001", "40P01", "55P03": // serialization failure, deadlock, a lock that was not free
		c.Kind, c.NeverSent, c.Conflict = transient, true, true
	case "08001", "08004", // the connection was not established
		"53000", "53200", "53300", "53400", // out of resources: memory, connections
		"57P03", // the server is starting or ending
		"57P05": // the connection was idle for too long
		c.Kind, c.NeverSent = transient, true
	case "57014": // canceled, by statement_timeout if not by the caller
		c.Kind, c.Code = transient, engine.CodeTimeout
	case "40003", "08007": // nobody knows whether it was carried out: never repeated
		c.Kind, c.Answered, c.Code = unclassified, false, OutcomeUnknown
	case "57P01", "57P02": // the server ends, or has crashed
		c.Kind, c.Answered = transient, false
	default:
		switch code[:min(2, len(code))] {
		case "08": // the connection broke
			c.Kind, c.Answered = transient, false
		case "58", "XX", "F0": // errors of the system and in the server: not an answer that it is well
			c.Kind, c.Answered = unclassified, false
		}
	}
	return c
}

// byNumber classifies an error number of MySQL and MariaDB.
func byNumber(n uint16) Class {
	c := Class{Verdict: engine.Verdict{Kind: permanent, Code: "mysql_" + strconv.Itoa(int(n))}, Answered: true}
	switch n {
	case 1205, 1213, 3572: // lock wait timeout, deadlock, a lock that was not free (NOWAIT)
		c.Kind, c.NeverSent, c.Conflict = transient, true, true
	case 1040, 1203, // too many connections
		1047,       // a node of a Galera cluster that is not ready
		2002, 2003: // no connection
		c.Kind, c.NeverSent = transient, true
	case 1317, 1969, 3024: // interrupted, by max_execution_time or max_statement_time
		c.Kind, c.Code = transient, engine.CodeTimeout
	case 1053, // the server ends
		1158, 1159, 1160, 1161, 1927, 2006, 2013, 2055: // the connection broke
		c.Kind, c.Answered = transient, false
	}
	return c
}

// bySQLite classifies a result code of SQLite, extended or not.
func bySQLite(code int) Class {
	c := Class{Verdict: engine.Verdict{Kind: permanent, Code: "sqlite_" + strconv.Itoa(code&0xff)}, Answered: true}
	switch code & 0xff {
	case 5, 6: // busy, locked
		c.Kind, c.NeverSent, c.Conflict = transient, true, true
	case 7, 9, 10, 14, 26: // memory, interrupted, input and output, cannot open, not a database
		c.Kind, c.Answered = unclassified, false
	}
	return c
}
