//go:build servers

package doors

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/child"
	"github.com/lullgo/lull/internal/dbserver"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/ports"
	"github.com/lullgo/lull/internal/seed"
)

// In a total outage the retries through four doors together are no more than a tenth of the successes, and the stock.
func TestRetriesOfAllDoors(t *testing.T) {
	at, stopAll := startServers(t)
	d := must.Have(lull.NewDependency("backend", lull.Policy{}, lull.WithRand(seed.Source(t))))
	doors := must.Have(Open(at, d))
	const calls = 50
	successes, retries := 0, 0
	callAll := func() {
		for range calls {
			for name, door := range doors {
				switch e, failed := errors.AsType[*lull.Error](door(t.Context())); {
				case !failed:
					successes++
				case e.Dependency != "backend":
					t.Fatalf("%s: %v", name, e)
				default:
					retries += max(e.Attempts-1, 0) // a call that the breaker refused has made none
				}
			}
		}
	}
	callAll()
	stopAll()
	callAll()
	if successes != calls*len(doors) {
		t.Errorf("%d calls succeeded, want %d", successes, calls*len(doors))
	}
	if most := successes/10 + budget.DefaultStock; retries > most || retries == 0 {
		t.Errorf("%d retries, want 1 to %d", retries, most)
	}
}

// startServers starts the servers of the backend. The function stops all of them, with their connections.
func startServers(t *testing.T) (at Addresses, stopAll func()) {
	web := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	l := must.Have(net.Listen("tcp", "127.0.0.1:0"))
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	go server.Serve(l)

	cache, cacheAddr := startRedis(t)
	db, err := dbserver.Postgres(func(addr string) error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		c, err := pgx.Connect(ctx, dsn(addr))
		if err == nil {
			c.Close(ctx)
		}
		return err
	}, "-c", "fsync=off")
	dbserver.Need(t, err)
	t.Cleanup(db.Close)
	return Addresses{web.Listener.Addr().String(), l.Addr().String(), cacheAddr, dsn(db.Addr())}, func() {
		web.CloseClientConnections()
		web.Close()
		server.Stop()
		cache.Kill()
		db.Kill()
	}
}

func dsn(addr string) string { return "postgres://postgres@" + addr + "/postgres?sslmode=disable" }

// startRedis starts a Redis with one key.
func startRedis(t *testing.T) (server *child.Child, addr string) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		dbserver.Need(t, fmt.Errorf("%w: redis-server: apt-get install redis-server", dbserver.ErrAbsent))
	}
	var port int
	must.Succeed(ports.Free(&port))
	server = must.Have(child.Start(exec.Command(path, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")))
	t.Cleanup(server.Kill)
	c := redis.NewClient(&redis.Options{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), MaxRetries: -1, DialerRetries: 1})
	defer c.Close()
	must.Succeed(server.Await(func() error { return c.Set(context.Background(), "k", "v", 0).Err() }, 25*time.Millisecond, 10*time.Second))
	return server, c.Options().Addr
}
