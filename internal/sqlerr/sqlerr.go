// Package sqlerr classifies the errors of SQL databases: those of database/sql and of its
// drivers, by their types and codes and never by their texts. The drivers themselves are not
// imported. Their errors are recognised by their form:
//
//	SQLState() string                 pgx, lib/pq, and what else reports an SQLSTATE
//	SafeToRetry() bool                pgx, except its connLockError
//	struct with Number and SQLState   go-sql-driver/mysql
//	Code() or Code, in a package of   modernc.org/sqlite, ncruces/go-sqlite3, mattn/go-sqlite3
//	  SQLite
package sqlerr

import (
	"cmp"
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
	// Answered: the database has answered the statement with this error. With NeverSent it has
	// undone the statement. That is a proof only for a statement that it carries out as a whole.
	Answered bool
	// OtherServer: the server behind this connection does not take the statement, and another one
	// may take it. The connection is to be closed.
	OtherServer bool
	// MySQL: the server is MySQL or MariaDB, which has tables that are not rolled back.
	MySQL bool
}

// Classify returns the class of err, and whether anything is known of it. A verdict with
// NeverSent means that the statement provably had no effect. An error that joins several is about
// several statements: one of them may have had an effect.
func Classify(err error) (c Class, known bool) {
	c, known = classify(err)
	c.NeverSent = c.NeverSent && !neterr.Joined(err)
	return c, known
}

func classify(err error) (c Class, known bool) {
	switch code := State(err); {
	case code == "0A000" && resultTypeChanged(err):
		return conflict.class(code), true
	case code != "":
		return classifyState(code), true
	}
	var safe interface{ SafeToRetry() bool } // the driver knows that nothing was sent
	if errors.As(err, &safe) && safe.SafeToRetry() || errors.Is(err, driver.ErrBadConn) {
		return Class{Verdict: engine.Verdict{Kind: engine.KindTransient, NeverSent: !neterr.AnyOf(err, isConnLockError), Code: "bad_connection"}}, true
	}
	if errors.Is(err, sql.ErrNoRows) {
		return Class{Verdict: engine.Verdict{Kind: engine.KindSuccess}, Answered: true}, true
	}
	neterr.AnyOf(err, func(e error) bool {
		c, known = classifyForm(e)
		return known
	})
	return c, known
}

// State is the SQLSTATE of err, if its server has given it one, for every driver.
func State(err error) string {
	var e interface{ SQLState() string }
	if errors.As(err, &e) {
		return e.SQLState()
	}
	return ""
}

// isConnLockError reports whether err is pgx's "conn closed". Pgx promises that nothing was sent, but it
// returns this error also when the connection broke before the answer: to a read that follows the
// one that failed.
func isConnLockError(err error) bool {
	t := reflect.TypeOf(err)
	return t.Kind() == reflect.Pointer && t.Elem().Name() == "connLockError"
}

// classifyForm classifies an error of MySQL or SQLite by the form of its type.
func classifyForm(err error) (Class, bool) {
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
			c := numbers[uint16(n.Uint())].class("mysql_" + strconv.Itoa(int(uint16(n.Uint()))))
			c.MySQL = true
			return c, true
		}
	case strings.Contains(t.PkgPath(), "sqlite"):
		if code, ok := codeOf(err, v); ok {
			code &= 0xff // of an extended one, too
			return results[code].class("sqlite_" + strconv.Itoa(code)), true
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

// IdleStatus is the status of a connection to PostgreSQL that is in no transaction.
const IdleStatus = 'I'

// Idle reports whether conn, a driver's connection, is in no transaction, by PostgreSQL's last answer.
// It is false for drivers other than pgx and lib/pq.
func Idle(conn any) bool {
	c := reflect.ValueOf(conn)
	v := reflect.Indirect(c)
	if !v.IsValid() {
		return false
	}
	switch path := v.Type().PkgPath(); { // the names are constants, so that the linker can drop other methods
	case strings.HasSuffix(path, "/pgx/v5/stdlib"):
		v = callGetter(callGetter(callGetter(c.MethodByName("Conn")).MethodByName("PgConn")).MethodByName("TxStatus"))
	case strings.HasSuffix(path, "/lib/pq") && v.Kind() == reflect.Struct:
		v = v.FieldByName("txnStatus")
	default:
		return false
	}
	return v.IsValid() && v.CanUint() && v.Uint() == IdleStatus
}

// callGetter returns what getter returns, or a value without methods if getter is not one.
func callGetter(getter reflect.Value) reflect.Value {
	if !getter.IsValid() || getter.Type().NumIn() != 0 || getter.Type().NumOut() != 1 {
		return reflect.ValueOf(struct{}{})
	}
	return getter.Call(nil)[0]
}

// effect is what a code proves about the statement that was answered with it. docs/protocols.md has the
// codes with their sources.
type effect uint8

const (
	refused     effect = iota // an answer: it had no effect, and would fail again
	setupError                // refused for what is set up on the server: users, permissions, tables
	conflict                  // undone, since another transaction was in the way
	undone                    // undone, or refused before it began, and another attempt may succeed
	otherServer               // refused by this server
	notRead                   // not read: the server had ended the session
	timedOut                  // ended by a limit of time
	sessionLost               // the session ended meanwhile: not known
	unknown                   // the server says that it does not know
	serverFault               // an error in the server: not known, and another attempt may fail
)

var (
	maybeSent     = engine.Verdict{Kind: engine.KindTransient}
	refusedUnsent = engine.Verdict{Kind: engine.KindTransient, NeverSent: true}
	effects       = [...]Class{
		refused:     {Verdict: engine.Verdict{Kind: engine.KindPermanent}, Answered: true},
		setupError:  {Answered: true},
		conflict:    {Verdict: refusedUnsent, Answered: true, Conflict: true},
		undone:      {Verdict: refusedUnsent, Answered: true},
		otherServer: {Verdict: refusedUnsent, Answered: true, OtherServer: true},
		notRead:     {Verdict: refusedUnsent},
		timedOut:    {Verdict: engine.Verdict{Kind: engine.KindTransient, Code: engine.CodeTimeout}, Answered: true},
		sessionLost: {Verdict: maybeSent},
		unknown:     {Verdict: engine.Verdict{Code: engine.CodeOutcomeUnknown}},
		serverFault: {},
	}
)

func (e effect) class(code string) Class {
	c := effects[e]
	c.Code = cmp.Or(c.Code, code)
	return c
}

// states has the SQLSTATEs of PostgreSQL, and classes of two characters for all other codes.
var states = map[string]effect{
	"40001": conflict, "40P01": conflict, // serialization failure, deadlock
	"40000": conflict,                // rolled back
	"55P03": conflict,                // a lock that was not free in time
	"72000": conflict,                // the snapshot is too old
	"08001": undone, "08004": undone, // the connection was not established
	"53":    undone,                    // out of resources: memory, disk, connections
	"57P03": undone,                    // the server is starting or ending
	"25006": otherServer,               // read-only
	"57P05": notRead, "25P03": notRead, // the session was idle for too long, in a transaction or not
	"57014": timedOut,                          // canceled, by statement_timeout if not by the caller
	"25P04": timedOut,                          // by transaction_timeout
	"57P01": sessionLost, "57P02": sessionLost, // the server ends, or has crashed
	"08":    sessionLost, // the connection broke
	"40003": unknown, "08007": unknown,
	"28": setupError, "42": setupError, // the user or its permissions; the statement and the schema do not match
	"3D": setupError, "3F": setupError, // a database or schema that does not exist
	"26": setupError, "55": setupError, // a prepared statement that does not exist; an object in another state
	"57P04": setupError, "HV": setupError, // the database was dropped; a foreign server
	"58": serverFault, "XX": serverFault, "F0": serverFault, // errors of the system and in the server
}

// classifyState classifies an SQLSTATE. One that states does not have is refused: the server
// would answer the same again.
func classifyState(code string) Class {
	e, ok := states[code]
	if !ok {
		e = states[code[:min(2, len(code))]]
	}
	return e.class(code)
}

// resultTypeChanged reports whether err, an answer with 0A000, means that the result of a prepared
// statement has another type since a table was changed. Missing features have that SQLSTATE, too. The
// answer names the function of the server that has reported it.
func resultTypeChanged(err error) bool {
	return neterr.AnyOf(err, func(e error) bool {
		v := reflect.Indirect(reflect.ValueOf(e))
		if v.Kind() != reflect.Struct {
			return false
		}
		routine := v.FieldByName("Routine")
		return routine.Kind() == reflect.String && routine.String() == "RevalidateCachedQuery"
	})
}

// numbers has the errors of MySQL and MariaDB.
var numbers = map[uint16]effect{
	1205: conflict, 1213: conflict, // lock wait timeout, deadlock
	3572: conflict,                           // a lock that was not free (NOWAIT)
	1020: conflict,                           // a row has changed since it was read (MariaDB, snapshot isolation)
	1412: conflict,                           // the definition of a table has changed since
	3101: conflict,                           // rolled back by a plugin at COMMIT (group replication)
	1040: undone, 1203: undone, 1226: undone, // too many connections, or of a resource of the user
	1637: undone, 1461: undone, // too many transactions, prepared statements
	1615: undone,                             // a statement is to be prepared again
	1037: undone, 1041: undone, 1135: undone, // out of memory or threads
	2002: undone, 2003: undone, // no connection
	1290: otherServer, 1792: otherServer, 1836: otherServer, // read-only
	1047: otherServer,                              // a node of a Galera cluster that is not ready
	3032: otherServer,                              // offline
	4031: notRead,                                  // the session was idle for too long
	1317: timedOut, 1969: timedOut, 3024: timedOut, // interrupted, by max_execution_time or max_statement_time
	1053: sessionLost,                                                                                                                                      // the server ends
	1158: sessionLost, 1159: sessionLost, 1160: sessionLost, 1161: sessionLost, 1927: sessionLost, 2006: sessionLost, 2013: sessionLost, 2055: sessionLost, // the connection broke
	1180: unknown,                                                                                                                // an error during COMMIT
	1130: setupError, 1129: setupError, 1045: setupError, 1698: setupError, 1251: setupError, 1524: setupError, 1275: setupError, // host, user, password
	1820: setupError, 1862: setupError, 3118: setupError, 4151: setupError, // the password has expired, the account is locked
	1044: setupError, 1142: setupError, 1143: setupError, 1227: setupError, 1370: setupError, 3530: setupError, 1873: setupError, // permissions
	1046: setupError, 1049: setupError, 1051: setupError, 1146: setupError, 1109: setupError, 1356: setupError, 1347: setupError, // database, table, view
	1054: setupError, 1136: setupError, 1364: setupError, 1176: setupError, // columns, keys
	1305: setupError, 1318: setupError, 1449: setupError, 1243: setupError, // functions, their arguments and definer; a prepared statement
	1064: setupError, 1149: setupError, // syntax
	1021: serverFault, 1026: serverFault, 1030: serverFault, 1105: serverFault, 1114: serverFault, 1206: serverFault, // disk, storage engine, locks, any error
}

// results has the primary result codes of SQLite.
var results = map[int]effect{
	5: conflict, 6: conflict, // busy, locked
	15: conflict,                                                                       // a race for the locks of the write-ahead log
	17: conflict,                                                                       // the schema has changed
	7:  serverFault, 9: serverFault, 10: serverFault, 14: serverFault, 26: serverFault, // memory, interrupted, input and output, cannot open, not a database
	2: serverFault, 11: serverFault, 13: serverFault, // internal, corrupt, the disk is full
	1: setupError, 3: setupError, 8: setupError, 23: setupError, // any error, such as no table; permissions, read-only, authorization
}
