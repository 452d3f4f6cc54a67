// Package doors shows how calls to one backend share one lull.Dependency, whatever their protocol: HTTP, gRPC, Redis and SQL.
// All of them pay for retries from one budget and open one circuit. The test makes calls through each door, then stops all
// servers and makes calls again: go test -tags servers -v ./docs/examples/doors.
package doors

import (
	"context"
	"database/sql"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/integrations/lullgrpc"
	"github.com/lullgo/lull/integrations/lullredis"
	"github.com/lullgo/lull/integrations/lullsql"
	"github.com/lullgo/lull/lullhttp"
)

// Addresses has the host and port of each server of the backend. Postgres is a connection string.
type Addresses struct{ HTTP, GRPC, Redis, Postgres string }

// A Door makes one call to the backend.
type Door func(ctx context.Context) error

// Open returns the doors by name. Each is told which dependency it leads to.
func Open(at Addresses, d *lull.Dependency) (map[string]Door, error) {
	transport, err := lullhttp.New(lull.Policy{}, lullhttp.WithDependencies(func(*http.Request) *lull.Dependency { return d }))
	if err != nil {
		return nil, err
	}
	web := &http.Client{Transport: transport}

	calls, err := lullgrpc.New(lull.Policy{}, lullgrpc.WithIdempotent("/grpc.health.v1.Health/"),
		lullgrpc.WithDependencies(func(context.Context, string, string) *lull.Dependency { return d }))
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("passthrough:///"+at.GRPC, append(calls.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		return nil, err
	}
	health := grpc_health_v1.NewHealthClient(conn)

	cache := redis.NewClient(&redis.Options{Addr: at.Redis, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true})
	if err := lullredis.AddTo(cache, d); err != nil {
		return nil, err
	}

	config, err := pgx.ParseConfig(at.Postgres)
	if err != nil {
		return nil, err
	}
	connector, err := lullsql.NewConnector(stdlib.GetConnector(*config), d, lullsql.Config{})
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)

	return map[string]Door{
		"HTTP": func(ctx context.Context) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at.HTTP, nil)
			if err != nil {
				return err
			}
			resp, err := web.Do(req)
			if err != nil {
				return err
			}
			return resp.Body.Close()
		},
		"gRPC": func(ctx context.Context) error {
			_, err := health.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
			return err
		},
		"Redis": func(ctx context.Context) error { return cache.Get(ctx, "k").Err() },
		"SQL": func(ctx context.Context) error {
			_, err := lullsql.Read(ctx, d, db, func(ctx context.Context, c *sql.Conn) (one int, err error) {
				err = c.QueryRowContext(ctx, "SELECT 1").Scan(&one)
				return one, err
			})
			return err
		},
	}, nil
}
