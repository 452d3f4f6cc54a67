package sqlcall

import (
	"context"
	"database/sql"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/sqlerr"
)

// VerdictOnStatement returns the verdict on an attempt that sent query outside of a transaction and ended with err; v is that
// on err alone. NeverSent stays set in two cases: query was not sent, or the database has undone it as a whole.
func VerdictOnStatement(v lull.Verdict, err error, query string, args []any) lull.Verdict {
	if !v.NeverSent {
		return v
	}
	c, _ := sqlerr.Classify(err)
	if c.NeverSent && !isDialError(err) && !nothingSent(c, err) && !(c.Answered && isAtomic(query, args)) {
		v.NeverSent = false
	}
	return v
}

// VerdictOnSeveral returns the verdict on an attempt that may have sent several statements and ended with err; v is that on
// err alone, and so on the last of them. NeverSent stays set only if there was no connection.
func VerdictOnSeveral(v lull.Verdict, err error) lull.Verdict {
	v.NeverSent = v.NeverSent && isDialError(err)
	return v
}

// isDialError reports whether there was no connection to send anything on.
func isDialError(err error) bool {
	_, yes := errors.AsType[*DialError](err)
	return yes
}

// isAtomic reports whether a database carries out query as a whole or not at all: it is a single statement
// that reads or changes rows. What it calls cannot commit. isAtomic returns false if that is not certain:
// lull does not parse SQL.
func isAtomic(query string, args []any) bool {
	if slices.ContainsFunc(args, rewrites) {
		return false
	}
	query, ok := afterComments(query)
	if !ok || query == "" {
		return ok // an empty one does nothing
	}
	if i := strings.IndexByte(query, ';'); i >= 0 && strings.Trim(query[i:], "; \t\r\n") != "" {
		return false
	}
	end := strings.IndexAny(query, " \t\r\n(")
	if end < 0 {
		return false // the name of a prepared statement
	}
	switch strings.ToUpper(query[:end]) {
	case "SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE", "VALUES", "WITH":
		return true
	}
	return false
}

// afterComments returns query without the comments and spaces at its start, and whether all databases
// see the same comments: MySQL executes /*! */, and in PostgreSQL comments can be nested.
func afterComments(query string) (string, bool) {
	for {
		query = strings.TrimLeft(query, " \t\r\n")
		var comment string
		var ended bool
		switch {
		case strings.HasPrefix(query, "--"):
			comment, query, ended = strings.Cut(query[2:], "\n")
			ended = ended && !strings.Contains(strings.TrimSuffix(comment, "\r"), "\r")
		case strings.HasPrefix(query, "/*"):
			comment, query, ended = strings.Cut(query[2:], "*/")
			ended = ended && !strings.HasPrefix(comment, "!") && !strings.HasPrefix(comment, "M!") && !strings.Contains(comment, "/*")
		default:
			return query, true
		}
		if !ended {
			return "", false
		}
	}
}

// rewrites reports whether arg is a pgx.QueryRewriter, which may make another statement of the query.
// Those of pgx only give the arguments names.
func rewrites(arg any) bool {
	t := reflect.TypeOf(arg)
	if t == nil || t.PkgPath() == "github.com/jackc/pgx/v5" {
		return false
	}
	_, ok := t.MethodByName("RewriteQuery")
	return ok
}

// notRolledBack is the warning of MySQL and MariaDB that a table which has no transactions (MyISAM, Aria,
// MEMORY) keeps its changes.
const notRolledBack = 1196

// CheckRolledBack returns the error of statements on conn that ended with err. MySQL and MariaDB do not roll back changes of
// tables without transactions, which a trigger can make, too. They then send a warning, and the error contains
// ErrOutcomeUnknown.
func CheckRolledBack(ctx context.Context, conn *sql.Conn, err error) error {
	c, _ := sqlerr.Classify(err)
	if c.MySQL && c.Answered && c.Kind == lull.KindTransient && !allRolledBack(ctx, conn) {
		return &unknownOutcome{"tables without transactions are not rolled back: whether a part is still there is not known", err}
	}
	return err
}

// allRolledBack reports whether the last answer on conn had no such warning.
func allRolledBack(ctx context.Context, conn *sql.Conn) bool {
	var all, seen, code int
	if conn.QueryRowContext(ctx, "SHOW COUNT(*) WARNINGS").Scan(&all) != nil {
		return false
	}
	rows, err := conn.QueryContext(ctx, "SHOW WARNINGS")
	if err != nil {
		return false
	}
	defer rows.Close()
	for ; rows.Next(); seen++ {
		if rows.Scan(new(string), &code, new(string)) != nil || code == notRolledBack {
			return false
		}
	}
	return rows.Err() == nil && seen == all // max_error_count of them are kept
}
