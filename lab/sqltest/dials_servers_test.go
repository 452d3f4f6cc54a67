//go:build servers

package sqltest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/integrations/lullsql"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/dbserver"
	"github.com/lullgo/lull/internal/must"
)

// counting counts the dials of a connector.
type counting struct {
	driver.Connector
	dials *atomic.Int64
}

func (c counting) Connect(ctx context.Context) (driver.Conn, error) {
	c.dials.Add(1)
	return c.Connector.Connect(ctx)
}

// While the database is down, dials stay below 1.1 × those of normal operation and two, where a
// statement needs one. database/sql alone is counted beside it.
func TestDialsWhileTheDatabaseIsDown(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		const statements = 200
		p := dbserver.NewProxy(t, k.server.Addr(t), 0, 0)
		d := newDependency(t, lull.Policy{})
		var dials atomic.Int64
		base := counting{k.connector(p.Addr()), &dials}
		connector := must.Have(lullsql.NewConnector(base, d, lullsql.Config{}))
		bare, with := opened(t, sql.OpenDB(base)), opened(t, sql.OpenDB(connector))
		for _, db := range []*sql.DB{bare, with} {
			db.SetMaxIdleConns(-1) // a statement needs a dial, also in normal operation
		}
		calls := func(exec func(ctx context.Context) error) (made, succeeded int) {
			before := dials.Load()
			for range statements {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				if exec(ctx) == nil {
					succeeded++
				}
				cancel()
			}
			return int(dials.Load() - before), succeeded
		}
		alone := func(ctx context.Context) error { _, err := bare.ExecContext(ctx, k.nothing); return err }
		calling := func(ctx context.Context) error { _, err := lullsql.Exec(ctx, d, with, k.nothing); return err }
		plain := func(ctx context.Context) error { _, err := with.ExecContext(ctx, k.nothing); return err }
		normal, ok := calls(calling)
		if ok != statements || normal != statements {
			t.Fatalf("in normal operation %d of %d succeeded, with %d dials", ok, statements, normal)
		}
		p.Down.Store(true)
		aloneDials, _ := calls(alone)
		down, ok := calls(calling)
		plainDials, _ := calls(plain)
		t.Logf("dials for %d statements: normal %d; down: database/sql alone %d, lullsql.Exec %d, then sql.DB with the connector %d",
			statements, normal, aloneDials, down, plainDials)
		check.Equal(t, ok, 0, "statements of %d that succeed without a database", statements)
		if most := 1.1*float64(normal) + 2; float64(down) > most || float64(plainDials) > most {
			t.Errorf("%d and %d dials, more than %v", down, plainDials, most)
		}
	})
}
