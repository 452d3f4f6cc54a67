//go:build servers

package sqltest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/integrations/lullsql"
)

// What the comment of package lullsql shows, as it stands there.
func packageComment(ctx context.Context, base driver.Connector) error {
	d, err := lull.NewDependency("orders-db", lull.Policy{})
	if err != nil {
		return err
	}
	connector, err := lullsql.NewConnector(base, d, lullsql.Config{}) // base: the driver's own
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	err = lullsql.Tx(ctx, d, db, nil, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "SELECT 1")
		return err
	})
	return err
}

// What the guide shows, as it stands there.
func guideOpen(ctx context.Context, base driver.Connector, d *lull.Dependency) error {
	connector, err := lullsql.NewConnector(base, d, lullsql.Config{}) // base: the driver's own
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	return db.PingContext(ctx)
}

func TestWhatTheDocsShow(t *testing.T) {
	d, err := lull.NewDependency("orders-db", lull.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, k *kind) {
		base := k.connector(k.at(t))
		if err := packageComment(t.Context(), base); err != nil {
			t.Error(err)
		}
		if err := guideOpen(t.Context(), base, d); err != nil {
			t.Error(err)
		}
	})
}
