package lullpostgres_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lullgo/lull/idempotency"
	lullpostgres "github.com/lullgo/lull/integrations/lullpostgres"
)

// The payment and the record of its response are committed together.
func Example() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://payments@db/payments?tcp_keepalives_idle=30")
	if err != nil {
		log.Fatal(err)
	}
	store, err := lullpostgres.New(pool, lullpostgres.Config{})
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Migrate(ctx); err != nil {
		log.Fatal(err)
	}
	go store.SweepEvery(ctx, time.Minute, nil)

	keys, err := idempotency.New(store, idempotency.Config{Transactional: true})
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("POST /payments", keys.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tx := lullpostgres.TxFrom(r.Context())
		var id int64
		err := tx.QueryRow(r.Context(), "INSERT INTO payments (amount) VALUES ($1) RETURNING id", 100).Scan(&id)
		if err != nil {
			http.Error(w, "try again", http.StatusInternalServerError) // rolls back
			return
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "payment %d", id)
	})))
}

// The same for database/sql, with any driver.
func ExampleNewSQL() {
	db, err := sql.Open("pgx", "postgres://payments@db/payments")
	if err != nil {
		log.Fatal(err)
	}
	store, err := lullpostgres.NewSQL(db, lullpostgres.Config{Isolation: sql.LevelReadCommitted})
	if err != nil {
		log.Fatal(err)
	}
	keys, err := idempotency.New(store, idempotency.Config{Transactional: true})
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("POST /payments", keys.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tx := lullpostgres.SQLTxFrom(r.Context())
		if _, err := tx.ExecContext(r.Context(), "INSERT INTO payments (amount) VALUES ($1)", 100); err != nil {
			http.Error(w, "try again", http.StatusInternalServerError) // rolls back
			return
		}
		w.WriteHeader(http.StatusCreated)
	})))
}

// Code that ends transactions gets a transaction of its own, inside: a savepoint.
func ExampleTxFrom() {
	reserve := func(ctx context.Context) error {
		tx, err := lullpostgres.TxFrom(ctx).Begin(ctx)
		if err != nil {
			return err
		}
		defer tx.Rollback(ctx)
		if _, err := tx.Exec(ctx, "UPDATE stock SET free = free - 1 WHERE item = $1 AND free > 0", "chair"); err != nil {
			return err
		}
		return tx.Commit(ctx)
	}
	_ = reserve
}

func ExampleConfig_Validate() {
	fmt.Println(lullpostgres.Config{Table: "keys; DROP TABLE keys", Isolation: sql.LevelSnapshot}.Validate())
	// Output:
	// Table is "keys; DROP TABLE keys": want a name, or schema.name, of letters, digits and underscores, or empty for the default of lull_idempotency
	// Isolation is Snapshot: want Read Committed, Repeatable Read or Serializable, or 0 for the server's default
}

func ExampleSchema() {
	fmt.Print(lullpostgres.Schema)
	// Output:
	// CREATE TABLE IF NOT EXISTS lull_idempotency (
	// 	key         text COLLATE "C" PRIMARY KEY,
	// 	fingerprint bytea NOT NULL,
	// 	token       bytea NOT NULL,
	// 	resumed     boolean NOT NULL,
	// 	lease_end   timestamptz NOT NULL,
	// 	forget_at   timestamptz NOT NULL,
	// 	record      bytea
	// );
	//
	// CREATE INDEX IF NOT EXISTS lull_idempotency_forget_at ON lull_idempotency (forget_at);
}
