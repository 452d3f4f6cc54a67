package main

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
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
)

// An adapter has one operation of a client, without lull and with it. Open readies what both share.
type adapter struct {
	bare, lull string
	open       func(d *lull.Dependency) (bare, with func(context.Context) error, stop func(), err error)
}

func adapters() []adapter {
	return []adapter{
		{"database/sql exec", "lullsql.Exec", overSQL(
			func(db *sql.DB) func(context.Context) error {
				return func(ctx context.Context) error { _, err := db.ExecContext(ctx, ""); return err }
			},
			func(d *lull.Dependency, db *sql.DB) func(context.Context) error {
				return func(ctx context.Context) error { _, err := lullsql.Exec(ctx, d, db, ""); return err }
			})},
		{"database/sql conn", "lullsql.Read", overSQL(
			func(db *sql.DB) func(context.Context) error {
				return func(ctx context.Context) error {
					conn, err := db.Conn(ctx)
					if err != nil {
						return err
					}
					defer conn.Close()
					_, err = conn.ExecContext(ctx, "")
					return err
				}
			},
			func(d *lull.Dependency, db *sql.DB) func(context.Context) error {
				return func(ctx context.Context) error {
					_, err := lullsql.Read(ctx, d, db, func(ctx context.Context, conn *sql.Conn) (sql.Result, error) { return conn.ExecContext(ctx, "") })
					return err
				}
			})},
		{"database/sql tx", "lullsql.Tx", overSQL(
			func(db *sql.DB) func(context.Context) error {
				return func(ctx context.Context) error {
					tx, err := db.BeginTx(ctx, nil)
					if err != nil {
						return err
					}
					return tx.Commit()
				}
			},
			func(d *lull.Dependency, db *sql.DB) func(context.Context) error {
				return func(ctx context.Context) error {
					return lullsql.Tx(ctx, d, db, nil, func(context.Context, *sql.Tx) error { return nil })
				}
			})},
		{"go-redis", "lullredis", overRedis},
		{"aws-sdk step", "lullaws", overAWS},
	}
}

// adapting makes three subjects of each: without lull, the same with a deadline that its caller gives to
// each call, and under the zero policy, which has one.
func adapting(adapters []adapter) (subjects []subject, extras []extra) {
	for _, a := range adapters {
		bare := func(bare, _ func(context.Context) error) func(context.Context) error { return bare }
		within := func(bare, _ func(context.Context) error) func(context.Context) error {
			return func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				return bare(ctx)
			}
		}
		with := func(_, with func(context.Context) error) func(context.Context) error { return with }
		subjects = append(subjects,
			a.subject(a.bare, 0, bare),
			a.subject(a.bare+" deadline", timed, within),
			a.subject(a.lull, retries|budgeted|breaks|timed, with))
		extras = append(extras, extra{a.lull, a.bare + " deadline"})
	}
	return subjects, extras
}

func (a adapter) subject(name string, does feature, choose func(bare, with func(context.Context) error) func(context.Context) error) subject {
	return subject{name, does, func(atEnd func(func())) (binder, error) {
		d, err := lull.NewDependency("backend", lull.Policy{}, wiring...)
		if err != nil {
			return nil, err
		}
		bare, with, stop, err := a.open(d)
		if err != nil {
			return nil, err
		}
		atEnd(stop)
		call := choose(bare, with)
		return func(ctx context.Context) func() error {
			return func() error { return call(ctx) }
		}, nil
	}}
}

// overSQL opens two databases of a driver that answers at once, the second with lullsql's connector.
func overSQL(bare func(*sql.DB) func(context.Context) error, with func(*lull.Dependency, *sql.DB) func(context.Context) error) func(*lull.Dependency) (_, _ func(context.Context) error, stop func(), _ error) {
	return func(d *lull.Dependency) (_, _ func(context.Context) error, stop func(), _ error) {
		c, err := lullsql.NewConnector(answeringSQL{}, d, lullsql.Config{})
		if err != nil {
			return nil, nil, nil, err
		}
		one, two := sql.OpenDB(answeringSQL{}), sql.OpenDB(c)
		return bare(one), with(d, two), func() { _ = one.Close(); _ = two.Close() }, nil
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
func overRedis(d *lull.Dependency) (_, _ func(context.Context) error, stop func(), _ error) {
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
	stop = func() { _ = bare.Close(); _ = with.Close() }
	if err := lullredis.AddTo(with, d); err != nil {
		stop()
		return nil, nil, nil, err
	}
	get := func(client *redis.Client) func(context.Context) error {
		return func(ctx context.Context) error { return client.Get(ctx, "key").Err() }
	}
	return get(bare), get(with), stop, nil
}

// answerRedis answers GET with a value, and refuses whatever else clients send first, as old servers
// do. It returns when the client closes the connection.
func answerRedis(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	value, refusal := []byte("$1\r\nx\r\n"), []byte("-ERR unknown command\r\n")
	for {
		n, err := redisCount(r, '*')
		if err != nil {
			return
		}
		answer := refusal
		for i := range n {
			size, err := redisCount(r, '$')
			if err != nil {
				return
			}
			word, err := r.Peek(size)
			if err != nil {
				return
			}
			if i == 0 && bytes.EqualFold(word, []byte("get")) {
				answer = value
			}
			if _, err := r.Discard(size + len("\r\n")); err != nil {
				return
			}
		}
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}

// redisCount reads a line that is a number after kind.
func redisCount(r *bufio.Reader, kind byte) (int, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != kind {
		return 0, io.ErrUnexpectedEOF
	}
	return strconv.Atoi(string(bytes.TrimSpace(line[1:])))
}

// overAWS is the SDK's step that repeats, and the one in its place: a call of a client has some twenty
// more.
func overAWS(d *lull.Dependency) (_, _ func(context.Context) error, stop func(), _ error) {
	step := func(options ...func(*middleware.Stack) error) (func(context.Context) error, error) {
		stack := middleware.NewStack("backend", smithyhttp.NewStackRequest)
		if err := stack.Finalize.Add(retry.NewAttemptMiddleware(retry.NewStandard(), smithyhttp.RequestCloner), middleware.After); err != nil {
			return nil, err
		}
		for _, o := range options {
			if err := o(stack); err != nil {
				return nil, err
			}
		}
		m, ok := stack.Finalize.Get("Retry")
		if !ok {
			return nil, fmt.Errorf("bench: the SDK's stack has no step that repeats: %v", stack)
		}
		next := middleware.FinalizeHandlerFunc(func(context.Context, middleware.FinalizeInput) (out middleware.FinalizeOutput, md middleware.Metadata, err error) {
			return out, md, nil
		})
		return func(ctx context.Context) error {
			_, _, err := m.HandleFinalize(ctx, middleware.FinalizeInput{Request: smithyhttp.NewStackRequest()}, next)
			return err
		}, nil
	}
	bare, err := step()
	if err != nil {
		return nil, nil, nil, err
	}
	with, err := step(lullaws.Retry(d, nil))
	return bare, with, func() {}, err
}
