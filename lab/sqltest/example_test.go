package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	sqlite "github.com/ncruces/go-sqlite3/driver"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/integrations/lullsql"
)

// A connector, a statement, a transaction and a read, here with SQLite. The driver's connector is
// pgx's stdlib.GetConnector, mysql.NewConnector or pq.NewConnector for a server.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	base, err := (&sqlite.SQLite{}).OpenConnector("file:" + filepath.Join(dir, "bank"))
	if err != nil {
		log.Fatal(err)
	}
	d, err := lull.NewDependency("bank", lull.Policy{})
	if err != nil {
		log.Fatal(err)
	}
	connector, err := lullsql.NewConnector(base, d, lullsql.Config{})
	if err != nil {
		log.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	ctx := context.Background()

	for _, q := range []string{
		"CREATE TABLE accounts (name TEXT PRIMARY KEY, balance INTEGER CHECK (balance >= 0))",
		"INSERT INTO accounts VALUES ('anna', 10), ('ben', 0)",
	} {
		if _, err := lullsql.Exec(ctx, d, db, q); err != nil {
			log.Fatal(err)
		}
	}
	pay := func(amount int) error {
		return lullsql.Tx(ctx, d, db, nil, func(ctx context.Context, tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, "UPDATE accounts SET balance = balance + ? WHERE name = 'ben'", amount); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, "UPDATE accounts SET balance = balance - ? WHERE name = 'anna'", amount)
			return err
		}, lull.Operation("pay"))
	}
	fmt.Println(pay(7))
	fmt.Println(errors.Is(pay(7), lull.ErrPermanent)) // an answer: she has not enough

	balance, err := lullsql.Read(ctx, d, db, func(ctx context.Context, conn *sql.Conn) (n int, err error) {
		err = conn.QueryRowContext(ctx, "SELECT balance FROM accounts WHERE name = 'ben'").Scan(&n)
		return n, err
	})
	fmt.Println(balance, err)
	// Output:
	// <nil>
	// true
	// 7 <nil>
}

// Errors of a driver mean the same in calls of lull.Do, with this classifier.
func Example_classify() {
	d, err := lull.NewDependency("db", lull.Policy{}, lull.WithClassifier(lullsql.Classify))
	if err != nil {
		log.Fatal(err)
	}
	_, err = lull.Do(context.Background(), d, func(context.Context) (int, error) { return 0, sql.ErrNoRows })
	fmt.Println(err, lullsql.Classify(err).Kind)
	// Output: sql: no rows in result set success
}
