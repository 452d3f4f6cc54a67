// Package lullpgx makes what a program does with a pool of pgx version 5 calls under a
// [lull.Policy]: dials, statements, reads and transactions. It is package lullsql for programs
// that use pgx without database/sql.
//
//	d, err := lull.NewDependency("orders-db", lull.Policy{})
//	...
//	config, err := pgxpool.ParseConfig(url)
//	...
//	err = lullpgx.AddTo(config, d, lullpgx.Config{})
//	...
//	pool, err := pgxpool.NewWithConfig(ctx, config)
//	...
//	err = lullpgx.Tx(ctx, d, pool, pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error {
//		...
//	})
//
// What is repeated depends on what is known of the failure: docs/protocols.md has that in a table, and all
// codes with what each of them proves.
//
// Beside a bare pool with a time limit for each call, a call that succeeds makes 1 allocation more,
// and a transaction 3 (go test -bench Cost, in this folder).
package lullpgx
