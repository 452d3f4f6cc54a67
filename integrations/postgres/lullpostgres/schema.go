package lullpostgres

import (
	"context"
	"errors"
	"fmt"
)

// Schema makes the table for a zero Config, for programs that keep their migrations in files. For
// another table replace its name in it, in double quotes if it has capitals or is a keyword, and
// give the index a name without a schema. It may be run again. The roles that use the store need
// SELECT, INSERT, UPDATE and DELETE.
//
// A key is text that is compared byte by byte. record is null as long as the key is owned. All
// later versions of this package can read the data of this one.
const Schema = createTable + DefaultTable + columns + ";\n\n" +
	"CREATE INDEX IF NOT EXISTS " + DefaultTable + "_forget_at ON " + DefaultTable + indexed + ";\n"

// The parts of Schema around the names. A name is put between them, and nothing is replaced in text.
const (
	createTable = "CREATE TABLE IF NOT EXISTS "
	columns     = ` (
	key         text COLLATE "C" PRIMARY KEY,
	fingerprint bytea NOT NULL,
	token       bytea NOT NULL,
	resumed     boolean NOT NULL,
	lease_end   timestamptz NOT NULL,
	forget_at   timestamptz NOT NULL,
	record      bytea
)`
	indexed = " (forget_at)"
)

// ErrNoTable is the error of a Store whose table does not exist, or has another form.
var ErrNoTable = errors.New("lullpostgres: the table is missing, or has other columns: run Schema, or call Store.Migrate; and look at the connection's search_path")

// migrating is the number of the advisory lock for making a table.
const migrating int64 = 0x6c756c6c_69646d70

// Migrate makes the table and its index if they do not exist, and checks that the table has the
// form of Schema. It is for programs without files of migrations. Several processes may call it at
// once. If the table exists already, it needs no right to create one.
func (s *Store) Migrate(ctx context.Context) error {
	err := s.Check(ctx)
	if !errors.Is(err, ErrNoTable) {
		return err
	}
	if err := s.migrate(ctx); err != nil {
		return s.explain(ctx, "Migrate", err)
	}
	return s.Check(ctx)
}

func (s *Store) migrate(ctx context.Context) error {
	tx, err := s.db.begin(ctx, 0)
	if err != nil {
		return err
	}
	defer rollBack(context.WithoutCancel(ctx), tx, defaultCommitTimeout)
	// Two processes that make a table at once would fail, even with IF NOT EXISTS.
	table, missing := s.config.quoted(), false
	if err := tx.row(ctx, fmt.Sprint("SELECT pg_advisory_xact_lock(", migrating, ") IS NULL"), nil, []any{&missing}); err != nil {
		return err
	}
	if err := tx.row(ctx, "SELECT to_regclass($1::text) IS NULL", []any{table}, []any{&missing}); err != nil || !missing {
		return err
	}
	// The server names the index: a name of ours could be somebody's table.
	for _, q := range []string{createTable + table + columns, "CREATE INDEX ON " + table + indexed} {
		if err := exec(ctx, tx, q); err != nil {
			return err
		}
	}
	return tx.commit(ctx)
}

// Check asks the server whether the table exists and has the right columns. If not, it returns
// ErrNoTable. Call it when a program starts.
func (s *Store) Check(ctx context.Context) error {
	return s.explain(ctx, "Check", exec(ctx, s.db, s.sql.check))
}
