package lullpostgres

import (
	"database/sql"
	"fmt"
	"regexp"
	"strings"

	"github.com/lullgo/lull/internal/problem"
)

// DefaultTable is the default of Config.Table.
const DefaultTable = "lull_idempotency"

// A Config names the parts of the database that a Store uses. It is plain, comparable data; the
// zero Config is the recommended one.
type Config struct {
	// Table is the name of the table, optionally after the name of its schema and a point. Each has
	// 1 to 50 letters (a to z, A to Z), digits and underscores, and does not begin with a digit. It
	// is quoted, so capitals matter. Without a schema it is found by the connection's search_path.
	// Write it in the same way in all processes: locks depend on it. Zero: lull_idempotency.
	Table string

	// Isolation is the level of the transactions in which Transact runs the handler. Zero
	// (sql.LevelDefault): the server's default, which is read committed. Or sql.LevelReadCommitted,
	// sql.LevelRepeatableRead, sql.LevelSerializable. docs/servers.md compares them under "Once and
	// no more".
	Isolation sql.IsolationLevel
}

var tableName = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]{0,49}\.)?[A-Za-z_][A-Za-z0-9_]{0,49}$`)

// Validate reports everything that is wrong with c at once. Each problem names its field, the value
// and what is allowed. It returns nil if nothing is wrong.
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

func (c Config) quoted() string { return `"` + strings.ReplaceAll(c.Table, ".", `"."`) + `"` }
