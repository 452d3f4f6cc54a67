//go:build servers

package wiring

import (
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/idempotency"
	"github.com/lullgo/lull/server/idempotency/storetest"
)

func postgresAt(t *testing.T, addr string) idempotency.Store {
	s, stop, err := openPostgres(t.Context(), must.Have(parsePostgres("postgres://postgres@"+addr+"/postgres?sslmode=disable")))
	must.Succeed(err)
	t.Cleanup(func() { must.Succeed(stop()) })
	return s
}

// The store keeps its contract over the proxy's own connections.
func TestPostgres(t *testing.T) {
	s := postgresAt(t, databases.Addr(t))
	storetest.Run(t, func(*testing.T) idempotency.Store { return s }, storetest.Options{})
}

// A connection that a restart of the server has ended fails one call at most.
func TestPostgresRestarts(t *testing.T) {
	server := databases.Own(t)
	s := postgresAt(t, server.Addr())
	claim := func(key string) error {
		_, err := s.Claim(t.Context(), idempotency.Claim{Key: key, Lease: time.Minute, Retention: time.Hour})
		return err
	}
	must.Succeed(claim("before"))
	server.Kill()
	must.Succeed(server.Start())
	_ = claim("at once")
	check.Is(t, claim("then"), nil, "the next claim")
}
