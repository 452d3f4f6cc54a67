package lullpostgres

import (
	"cmp"
	"database/sql"
	"fmt"
	"regexp"
	"strings"

	"github.com/lullgo/lull/internal/problem"
)

// DefaultTable is what a zero Config.Table means.
const DefaultTable = "lull_idempotency"

// A Config says what a Store uses in the database. It is plain, comparable data; the
// zero Config is the recommended one.
type Config struct {
	// Table is the name of the table, with or without that of its schema and a point
	// before it: each of 1 to 50 letters (a to z, A to Z), digits and underscores, with
	// no digit in front. It is quoted, so capitals matter. Without a schema it is found
	// by the connection's search_path. Write it in the same way in all processes: locks
	// are made of it. Zero: lull_idempotency.
	Table string

	// Isolation is that of the transactions in which Transact runs the handler. Zero
	// (sql.LevelDefault): the server's default, which is read committed. Or
	// sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable. See
	// "Isolation" in the package comment.
	Isolation sql.IsolationLevel
}

var tableName = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]{0,49}\.)?[A-Za-z_][A-Za-z0-9_]{0,49}$`)

// Validate reports everything that is wrong with c at once, each problem naming its
// field, the value and what is allowed; nil if nothing is.
func (c Config) Validate() error {
	var l problem.List
	l.Check(c.Table == "" || tableName.MatchString(c.Table), "Table", fmt.Sprintf("%q", c.Table),
		"a name, or schema.name, of letters, digits and underscores, or empty for the default of "+DefaultTable)
	switch c.Isolation {
	case sql.LevelDefault, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable:
	default:
		l.Add("Isolation", c.Isolation, "Read Committed, Repeatable Read or Serializable, or 0 for the server's default")
	}
	return l.Err()
}

// WithDefaults is c with every zero replaced by what it means.
func (c Config) WithDefaults() Config {
	c.Table = cmp.Or(c.Table, DefaultTable)
	return c
}

// quoted is the name of the table as SQL has it.
func (c Config) quoted() string {
	return `"` + strings.ReplaceAll(c.Table, ".", `"."`) + `"`
}
