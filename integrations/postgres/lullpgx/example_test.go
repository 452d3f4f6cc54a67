package lullpgx_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/integrations/postgres/lullpgx"
)

// There is no PostgreSQL. Each transaction is tried twice, as far as the budget
// pays, and a program can see that nothing was sent.
func ExampleTx() {
	ctx := context.Background()
	d, pool := nobody(ctx)
	defer pool.Close()

	err := lullpgx.Tx(ctx, d, pool, pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "UPDATE accounts SET balance = balance - 7 WHERE name = 'anna'"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "UPDATE accounts SET balance = balance + 7 WHERE name = 'ben'")
		return err
	}, lull.Operation("pay"))
	var e *lull.Error
	fmt.Println(errors.As(err, &e), e.Operation, e.Attempts, e.Verdict.NeverSent)
	// Output: true pay 2 true
}

// nobody returns a dependency, and a pool under it for an address at which there is no PostgreSQL.
func nobody(ctx context.Context) (*lull.Dependency, *pgxpool.Pool) {
	d, err := lull.NewDependency("bank", lull.Policy{Attempts: 2, Backoff: backoff.Schedule{Base: time.Millisecond}})
	if err != nil {
		log.Fatal(err)
	}
	config, err := pgxpool.ParseConfig("postgres://bank@127.0.0.1:1/bank")
	if err != nil {
		log.Fatal(err)
	}
	config.ConnConfig.DialFunc = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("connection refused") }
	if err := lullpgx.AddTo(config, d, lullpgx.Config{MaxDials: 2}); err != nil {
		log.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		log.Fatal(err)
	}
	return d, pool
}

// A dial of the plain pool is a call, too: code that knows nothing of lull profits.
func ExampleAddTo() {
	ctx := context.Background()
	_, pool := nobody(ctx)
	defer pool.Close()
	_, err := pool.Exec(ctx, "UPDATE accounts SET balance = 0")
	var e *lull.Error
	fmt.Println(errors.As(err, &e), e.Operation, e.Attempts)
	// Output: true connect 2
}

// A write is repeated if nothing of it was sent.
func ExampleExec() {
	ctx := context.Background()
	d, pool := nobody(ctx)
	defer pool.Close()
	_, err := lullpgx.Exec(ctx, d, pool, "INSERT INTO accounts VALUES ($1, $2)", "anna", 10)
	var e *lull.Error
	fmt.Println(errors.As(err, &e), e.Operation, e.Attempts)
	// Output: true exec 2
}

// A read is also repeated if the connection breaks. What it returns may be of any type.
func ExampleRead() {
	ctx := context.Background()
	d, pool := nobody(ctx)
	defer pool.Close()
	balance, err := lullpgx.Read(ctx, d, pool, func(ctx context.Context, conn *pgxpool.Conn) (n int, err error) {
		err = conn.QueryRow(ctx, "SELECT balance FROM accounts WHERE name = $1", "anna").Scan(&n)
		return n, err
	}, lull.Operation("balance"))
	var e *lull.Error
	fmt.Println(balance, errors.As(err, &e), e.Operation, e.Attempts)
	// Output: 0 true balance 2
}

// Errors of pgx mean the same in calls of lull.Do, with this classifier.
func ExampleClassify() {
	_, err := lull.NewDependency("bank", lull.Policy{}, lull.WithClassifier(lullpgx.Classify))
	fmt.Println(err, lullpgx.Classify(pgx.ErrNoRows).Kind, lullpgx.Classify(&pgconn.PgError{Code: "40001"}).Kind)
	// Output: <nil> success transient
}
