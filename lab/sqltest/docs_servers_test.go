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

// What the guide and the comment of package lullsql show, as it stands there.
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

func TestWhatTheDocsShow(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		if err := packageComment(t.Context(), k.connector(k.server.Addr(t))); err != nil {
			t.Error(err)
		}
	})
}
