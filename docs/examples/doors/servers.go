package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/lullgo/lull/internal/child"
	"github.com/lullgo/lull/internal/dbserver"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/ports"
)

// errAbsent is in the error of start if a program is not installed.
var errAbsent = errors.New("a program is missing")

// start starts the servers of the backend.
func start() (_ *backend, err error) {
	b := &backend{proxies: map[string]*proxy{}}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	defer must.Catch(&err)
	web := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	b.closers = append(b.closers, web.Close)

	l := must.Have(net.Listen("tcp", "127.0.0.1:0"))
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	go server.Serve(l)
	b.closers = append(b.closers, server.Stop)

	cache := startRedis(b)
	db, err := dbserver.Postgres(func(addr string) error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		c, err := pgx.Connect(ctx, dsn(addr))
		if err == nil {
			c.Close(ctx)
		}
		return err
	}, "-c", "fsync=off")
	if errors.Is(err, dbserver.ErrAbsent) {
		must.Fail("%w: %w", errAbsent, err)
	}
	must.Succeed(err)
	b.closers = append(b.closers, db.Close)

	for name, addr := range map[string]string{"http": web.Listener.Addr().String(), "grpc": l.Addr().String(), "redis": cache, "sql": db.Addr()} {
		b.proxies[name] = must.Have(newProxy(addr))
	}
	return b, nil
}

func dsn(addr string) string { return "postgres://postgres@" + addr + "/postgres?sslmode=disable" }

// startRedis starts a Redis with one key, and returns its address.
func startRedis(b *backend) (addr string) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		must.Fail("%w: no redis-server: apt-get install redis-server", errAbsent)
	}
	var port int
	must.Succeed(ports.Free(&port))
	addr = fmt.Sprintf("127.0.0.1:%d", port)
	server := must.Have(child.Start(exec.Command(path, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")))
	b.closers = append(b.closers, server.Kill)
	redis.SetLogger(quiet{}) // it writes of every dial that fails
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1})
	defer c.Close()
	err = server.Await(func() error { return c.Set(context.Background(), "k", "v", 0).Err() }, 25*time.Millisecond, 10*time.Second)
	if err != nil {
		must.Fail("redis-server: %w", err)
	}
	return addr
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}
