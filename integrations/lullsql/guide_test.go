package lullsql_test

import (
	"database/sql"
	"database/sql/driver"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/integrations/lullsql"
)

// What the guide shows must compile as it stands there; the tests of connector.go run it.
func guideOpen(base driver.Connector, d *lull.Dependency) error {
	connector, err := lullsql.NewConnector(base, d, lullsql.Config{}) // base: the driver's own
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	return db.Close()
}

var _ = guideOpen
