package lullpostgres_test

import (
	"database/sql"
	"fmt"

	lullpostgres "github.com/lullgo/lull/integrations/postgres/lullpostgres"
)

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
