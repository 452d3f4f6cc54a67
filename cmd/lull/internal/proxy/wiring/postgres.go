package wiring

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lullgo/lull/integrations/postgres/lullpostgres"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/idempotency"
)

const (
	migrateTime = 10 * time.Second
	sweepEvery  = time.Minute
	trustedFor  = time.Second // a connection that was used lately is not pinged
)

// postgres connects database/sql to a server. It is all that the statements of lullpostgres need: pgx's pool would make the
// program 3 MB larger, with every type that PostgreSQL has.
type postgres struct {
	config      *pgconn.Config
	connections int // at most
}

// parsePostgres reads the URL. pgx's own error has the URL in it, so only the fault below is returned.
func parsePostgres(address string) (*postgres, error) {
	if _, err := parse(address); err != nil {
		return nil, err
	}
	c, err := pgconn.ParseConfig(address)
	if wrong, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
		err = cmp.Or(wrong.Unwrap(), errors.New("want postgres://USER@HOST/DATABASE"))
	}
	return &postgres{c, max(4, runtime.NumCPU())}, err
}

// open opens the store. It makes the table, if it is not there.
func (p *postgres) open(ctx context.Context) (idempotency.Store, func() error, error) {
	db := sql.OpenDB(p)
	db.SetMaxOpenConns(p.connections)
	db.SetMaxIdleConns(p.connections)
	db.SetConnMaxLifetime(time.Hour)
	db.SetConnMaxIdleTime(30 * time.Minute)
	s := must.Have(lullpostgres.NewSQL(db, lullpostgres.Config{}))
	migrating, cancel := context.WithTimeout(ctx, migrateTime)
	defer cancel()
	if err := s.Migrate(migrating); err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	sweeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	go s.SweepEvery(sweeping, sweepEvery, nil)
	return s, func() error { stop(); return db.Close() }, nil
}

// Connect implements driver.Connector.
func (p *postgres) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := pgconn.ConnectConfig(ctx, p.config)
	if err != nil {
		return nil, err
	}
	return &connection{c, time.Now()}, nil
}

// Driver implements driver.Connector.
func (p *postgres) Driver() driver.Driver { return nil }

// A connection has what database/sql needs for QueryRowContext and BeginTx.
type connection struct {
	pg   *pgconn.PgConn
	used time.Time
}

func (c *connection) ResetSession(ctx context.Context) error {
	const idle = 'I' // outside of transactions
	if c.pg.IsClosed() || c.pg.TxStatus() != idle || time.Since(c.used) > trustedFor && c.pg.Ping(ctx) != nil {
		return driver.ErrBadConn
	}
	c.used = time.Now()
	return nil
}

func (c *connection) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return c.pg.Close(ctx)
}

func (c *connection) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }
func (c *connection) Begin() (driver.Tx, error)           { return nil, errors.ErrUnsupported }

func (c *connection) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if o != (driver.TxOptions{}) {
		return nil, errors.ErrUnsupported
	}
	return c, c.end(ctx, "BEGIN")
}

func (c *connection) Commit() error   { return c.end(context.Background(), "COMMIT") }
func (c *connection) Rollback() error { return c.end(context.Background(), "ROLLBACK") }

// end carries out a statement that begins or ends a transaction.
func (c *connection) end(ctx context.Context, statement string) error {
	r := c.pg.ExecParams(ctx, statement, nil, nil, nil, nil).Read()
	if r.Err == nil && r.CommandTag.String() != statement { // a COMMIT after a failure
		return fmt.Errorf("the server has answered %s with %s", statement, r.CommandTag)
	}
	return r.Err
}

const binaryFormat = 1

// QueryContext implements driver.QueryerContext, in one round trip. Statements are not prepared: poolers between may give each
// transaction another connection.
func (c *connection) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	values, formats := make([][]byte, len(args)), make([]int16, len(args))
	for i, a := range args {
		switch v := a.Value.(type) {
		case nil:
		case []byte:
			values[i], formats[i] = v, binaryFormat
		case bool, int64, string:
			values[i] = fmt.Append(nil, v)
		default:
			return nil, fmt.Errorf("parameter %d is a %T: want a bool, an integer, a text or bytes", i+1, v)
		}
	}
	r := c.pg.ExecParams(ctx, query, values, nil, formats, []int16{binaryFormat}).Read()
	return &answer{r}, r.Err
}

// An answer has rows, the first of which is the next.
type answer struct{ *pgconn.Result }

func (a *answer) Columns() []string { return make([]string, len(a.FieldDescriptions)) }
func (a *answer) Close() error      { return nil }

func (a *answer) Next(row []driver.Value) error {
	if len(a.Rows) == 0 {
		return io.EOF
	}
	for i, b := range a.Rows[0] {
		switch kind := a.FieldDescriptions[i].DataTypeOID; {
		case b == nil:
			row[i] = nil
		case kind == pgtype.BoolOID && len(b) == 1:
			row[i] = b[0] != 0
		case kind == pgtype.Int8OID && len(b) == 8:
			row[i] = int64(binary.BigEndian.Uint64(b))
		case kind == pgtype.ByteaOID:
			row[i] = b
		default:
			return fmt.Errorf("column %d is of the type with OID %d: want boolean, bigint or bytea", i+1, kind)
		}
	}
	a.Rows = a.Rows[1:]
	return nil
}
