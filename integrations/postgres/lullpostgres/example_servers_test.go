//go:build servers

package lullpostgres_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	lullpostgres "github.com/lullgo/lull/integrations/postgres/lullpostgres"
	"github.com/lullgo/lull/server/idempotency"
)

// database returns the address of a database with what the examples use.
func database() string {
	at, err := lullpostgres.Database("CREATE TABLE payments (id bigserial, amount bigint); CREATE TABLE stock (item text, free bigint); INSERT INTO stock VALUES ('chair', 2)")
	if err != nil {
		log.Fatal(err)
	}
	return at
}

// post prints the answer to a request with a key, whose first answer may have been lost.
func post(to http.Handler) {
	for range 2 {
		r := httptest.NewRequest("POST", "/payments", strings.NewReader("amount=100"))
		r.Header.Set("Idempotency-Key", `"8e03978e-40d5-43e8-bc93-6894a57f9324"`)
		w := httptest.NewRecorder()
		to.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Body)
	}
}

// The payment and the record of its response are committed together.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	pool, err := pgxpool.New(ctx, database()) // such as postgres://payments@db/payments?tcp_keepalives_idle=30
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	store, err := lullpostgres.New(pool, lullpostgres.Config{})
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Migrate(ctx); err != nil {
		log.Fatal(err)
	}
	go store.SweepEvery(ctx, time.Minute, nil)

	keys, err := idempotency.New(store, idempotency.Config{Transactional: true}, idempotency.WithScope(idempotency.SharedScope))
	if err != nil {
		log.Fatal(err)
	}
	post(keys.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	// Output:
	// 201 payment 1
	// 201 payment 1
}

// The same for database/sql, with any driver.
func ExampleNewSQL() {
	db, err := sql.Open("pgx", database())
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	store, err := lullpostgres.NewSQL(db, lullpostgres.Config{Isolation: sql.LevelReadCommitted})
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Migrate(context.Background()); err != nil {
		log.Fatal(err)
	}
	keys, err := idempotency.New(store, idempotency.Config{Transactional: true}, idempotency.WithScope(idempotency.SharedScope))
	if err != nil {
		log.Fatal(err)
	}
	post(keys.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tx := lullpostgres.SQLTxFrom(r.Context())
		var id int64
		err := tx.QueryRowContext(r.Context(), "INSERT INTO payments (amount) VALUES ($1) RETURNING id", 100).Scan(&id)
		if err != nil {
			http.Error(w, "try again", http.StatusInternalServerError) // rolls back
			return
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "payment %d", id)
	})))
	// Output:
	// 201 payment 1
	// 201 payment 1
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

	pool, err := pgxpool.New(context.Background(), database())
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	store, err := lullpostgres.New(pool, lullpostgres.Config{})
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Migrate(context.Background()); err != nil {
		log.Fatal(err)
	}
	keys, err := idempotency.New(store, idempotency.Config{Transactional: true}, idempotency.WithScope(idempotency.SharedScope))
	if err != nil {
		log.Fatal(err)
	}
	post(keys.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := reserve(r.Context()); err != nil {
			http.Error(w, "try again", http.StatusInternalServerError) // rolls back
			return
		}
		fmt.Fprint(w, "reserved")
	})))
	var free int
	err = pool.QueryRow(context.Background(), "SELECT free FROM stock WHERE item = 'chair'").Scan(&free)
	fmt.Println(free, err)
	// Output:
	// 200 reserved
	// 200 reserved
	// 1 <nil>
}
