//go:build servers

package sqltest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"log"
	"os"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/lib/pq"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/integrations/lullsql"
	"github.com/lullgo/lull/internal/dbserver"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/pace"
)

func TestMain(m *testing.M) {
	pace.Overlap(16)
	for _, k := range kinds {
		k.server.Start = func() (*dbserver.Server, error) { return k.start(k.ready) }
	}
	mysql.SetLogger(log.New(io.Discard, "", 0)) // it writes of each connection that breaks
	code := m.Run()
	for _, k := range kinds {
		k.server.Close()
	}
	os.Exit(code)
}

// kind is one kind of server.
type kind struct {
	name    string
	start   func(ready func(string) error) (*dbserver.Server, error)
	to      func(addr, user, database string) driver.Connector
	user    string // who may do everything
	own     string // the database that is always there
	insert  string // with one argument
	nothing string // a statement that does nothing
	deaf    bool   // the driver does not end when its context does, but when the server answers
	server  dbserver.Shared
}

var kinds = []*kind{
	{
		name:  "PostgreSQL",
		start: startPostgres,
		user:  "postgres",
		own:   "postgres",
		to: func(addr, user, database string) driver.Connector {
			c, err := pgx.ParseConfig("postgres://" + user + "@" + addr + "/" + database + "?sslmode=disable")
			if err != nil {
				panic(err)
			}
			return stdlib.GetConnector(*c)
		},
		insert:  "INSERT INTO writes VALUES ($1)",
		nothing: "SELECT 1",
	},
	{
		name:  "PostgreSQL by lib-pq",
		deaf:  true,
		start: startPostgres,
		user:  "postgres",
		own:   "postgres",
		to: func(addr, user, database string) driver.Connector {
			c, err := pq.NewConnector("postgres://" + user + "@" + addr + "/" + database + "?sslmode=disable")
			if err != nil {
				panic(err)
			}
			return c
		},
		insert:  "INSERT INTO writes VALUES ($1)",
		nothing: "SELECT 1",
	},
	{
		name:    "MariaDB",
		start:   dbserver.MariaDB,
		user:    "root",
		own:     "mysql",
		to:      mariaDB,
		insert:  "INSERT INTO writes VALUES (?)",
		nothing: "DO 1",
	},
}

// connector connects who may do everything.
func (k *kind) connector(addr string) driver.Connector { return k.to(addr, k.user, k.own) }

func mariaDB(addr, user, database string) driver.Connector {
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DBName = user, "tcp", addr, database
	c.InterpolateParams, c.MultiStatements = true, true
	connector, err := mysql.NewConnector(c)
	if err != nil {
		panic(err)
	}
	return connector
}

func startPostgres(ready func(string) error) (*dbserver.Server, error) {
	return dbserver.Postgres(ready, "-c", "fsync=off")
}

func (k *kind) ready(addr string) error {
	db := sql.OpenDB(k.connector(addr))
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return db.PingContext(ctx)
}

// each runs f with every kind of server.
func each(t *testing.T, f func(t *testing.T, k *kind)) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			f(t, k)
		})
	}
}

// open opens the database under d, directly or by way of a proxy at addr.
func (k *kind) open(t testing.TB, addr string, d *lull.Dependency) *sql.DB {
	t.Helper()
	c := must.Have(lullsql.NewConnector(k.connector(addr), d, lullsql.Config{}))
	return opened(t, sql.OpenDB(c))
}
