package bench

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/integrations/lullaws"
	"github.com/lullgo/lull/integrations/lullredis"
	"github.com/lullgo/lull/integrations/lullsql"
	"github.com/lullgo/lull/internal/must"
)

// An adapter has one operation of a client, without lull and with it. Open readies what both share.
type adapter struct {
	bare, lull string
	open       func(d *lull.Dependency) (bare, with op, stop func())
}

func adapters() []adapter {
	return []adapter{
		{"database/sql exec", "lullsql.Exec", overSQL(
			func(ctx context.Context, db *sql.DB) error { _, err := db.ExecContext(ctx, ""); return err },
			func(ctx context.Context, d *lull.Dependency, db *sql.DB) error {
				_, err := lullsql.Exec(ctx, d, db, "")
				return err
			})},
		{"database/sql conn", "lullsql.Read", overSQL(
			func(ctx context.Context, db *sql.DB) error {
				conn, err := db.Conn(ctx)
				if err != nil {
					return err
				}
				defer conn.Close()
				_, err = conn.ExecContext(ctx, "")
				return err
			},
			func(ctx context.Context, d *lull.Dependency, db *sql.DB) error {
				_, err := lullsql.Read(ctx, d, db, func(ctx context.Context, conn *sql.Conn) (sql.Result, error) { return conn.ExecContext(ctx, "") })
				return err
			})},
		{"database/sql tx", "lullsql.Tx", overSQL(
			func(ctx context.Context, db *sql.DB) error {
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					return err
				}
				return tx.Commit()
			},
			func(ctx context.Context, d *lull.Dependency, db *sql.DB) error {
				return lullsql.Tx(ctx, d, db, nil, func(context.Context, *sql.Tx) error { return nil })
			})},
		{"go-redis", "lullredis", overRedis},
		{"aws-sdk step", "lullaws", overAWS},
	}
}

// adapting makes three subjects of each: without lull, the same with a deadline that its caller gives to
// each call, and under the zero policy, which has one.
func adapting(adapters []adapter) (subjects []subject, extras []extra) {
	for _, a := range adapters {
		add := func(name string, does feature, choose func(bare, with op) op) {
			subjects = append(subjects, subject{name, does, func(atEnd func(func())) binder {
				bare, with, stop := a.open(dependency(lull.Policy{}))
				atEnd(stop)
				return choose(bare, with).bind
			}})
		}
		add(a.bare, 0, func(bare, _ op) op { return bare })
		add(a.bare+" deadline", timed, func(bare, _ op) op { return within(bare, time.Minute) })
		add(a.lull, retries|budgeted|breaks|timed, func(_, with op) op { return with })
		extras = append(extras, extra{a.lull, a.bare + " deadline"})
	}
	return subjects, extras
}

// overSQL opens two databases of a driver that answers at once, the second with lullsql's connector.
func overSQL(bare func(context.Context, *sql.DB) error, with func(context.Context, *lull.Dependency, *sql.DB) error) func(*lull.Dependency) (_, _ op, stop func()) {
	return func(d *lull.Dependency) (_, _ op, stop func()) {
		one, two := sql.OpenDB(answeringSQL{}), sql.OpenDB(must.Have(lullsql.NewConnector(answeringSQL{}, d, lullsql.Config{})))
		stop = func() { _ = one.Close(); _ = two.Close() }
		return func(ctx context.Context) error { return bare(ctx, one) }, func(ctx context.Context) error { return with(ctx, d, two) }, stop
	}
}

// answeringSQL is a driver, its connections and its transactions.
type answeringSQL struct{}

func (answeringSQL) Driver() driver.Driver                          { return nil }
func (a answeringSQL) Connect(context.Context) (driver.Conn, error) { return a, nil }
func (answeringSQL) Prepare(string) (driver.Stmt, error) {
	return nil, errors.New("bench: nothing is prepared")
}
func (answeringSQL) Close() error                { return nil }
func (answeringSQL) IsValid() bool               { return true }
func (a answeringSQL) Begin() (driver.Tx, error) { return a, nil }
func (answeringSQL) Commit() error               { return nil }
func (answeringSQL) Rollback() error             { return nil }

func (answeringSQL) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), nil
}

// overRedis opens two clients of a server in this process, which answers through memory.
func overRedis(d *lull.Dependency) (_, _ op, stop func()) {
	open := func() *redis.Client {
		return redis.NewClient(&redis.Options{
			Protocol: 2, DisableIdentity: true, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true,
			Dialer: func(context.Context, string, string) (net.Conn, error) {
				client, server := net.Pipe()
				go answerRedis(server)
				return client, nil
			},
		})
	}
	bare, with := open(), open()
	must.Succeed(lullredis.AddTo(with, d))
	get := func(client *redis.Client) op {
		return func(ctx context.Context) error { return client.Get(ctx, "key").Err() }
	}
	return get(bare), get(with), func() { _ = bare.Close(); _ = with.Close() }
}

// answerRedis answers GET with a value, and refuses whatever else clients send first, as old servers
// do. It returns when the client closes the connection.
func answerRedis(conn net.Conn) {
	defer conn.Close()
	defer must.Catch(new(error))
	r := bufio.NewReader(conn)
	value, refusal := []byte("$1\r\nx\r\n"), []byte("-ERR unknown command\r\n")
	for {
		answer := refusal
		for i := range redisCount(r, '*') {
			size := redisCount(r, '$')
			if word := must.Have(r.Peek(size)); i == 0 && bytes.EqualFold(word, []byte("get")) {
				answer = value
			}
			must.Have(r.Discard(size + len("\r\n")))
		}
		must.Have(conn.Write(answer))
	}
}

// redisCount reads a line that is a number after kind.
func redisCount(r *bufio.Reader, kind byte) int {
	line := must.Have(r.ReadSlice('\n'))
	if line[0] != kind {
		must.Succeed(io.ErrUnexpectedEOF)
	}
	return must.Have(strconv.Atoi(string(bytes.TrimSpace(line[1:]))))
}

// overAWS is the SDK's step that repeats, and the one in its place: a call of a client has some twenty
// more.
func overAWS(d *lull.Dependency) (_, _ op, stop func()) {
	step := func(options ...func(*middleware.Stack) error) op {
		stack := middleware.NewStack("backend", smithyhttp.NewStackRequest)
		must.Succeed(stack.Finalize.Add(retry.NewAttemptMiddleware(retry.NewStandard(), smithyhttp.RequestCloner), middleware.After))
		for _, o := range options {
			must.Succeed(o(stack))
		}
		m, ok := stack.Finalize.Get("Retry")
		if !ok {
			must.Fail("bench: the SDK's stack has no step that repeats: %v", stack)
		}
		next := middleware.FinalizeHandlerFunc(func(context.Context, middleware.FinalizeInput) (out middleware.FinalizeOutput, md middleware.Metadata, err error) {
			return out, md, nil
		})
		return func(ctx context.Context) error {
			_, _, err := m.HandleFinalize(ctx, middleware.FinalizeInput{Request: smithyhttp.NewStackRequest()}, next)
			return err
		}
	}
	return step(), step(lullaws.Retry(d, nil)), func() {}
}
