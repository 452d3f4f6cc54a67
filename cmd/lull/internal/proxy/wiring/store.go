package wiring

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lullgo/lull/integrations/lullbolt"
	"github.com/lullgo/lull/integrations/lullredis"
	"github.com/lullgo/lull/server/idempotency"
)

// CheckStore returns what is wrong with the address of a store (proxy.Keys.Store). It calls nothing.
func CheckStore(address string) error {
	_, err := storeAt(address)
	return err
}

// OpenStore opens the store at address. In PostgreSQL it makes the table, if it is not there: that server must answer. Redis
// need not be there yet. stop is to be called when no request needs the store any more.
func OpenStore(ctx context.Context, address string) (s idempotency.Store, stop func() error, err error) {
	open, err := storeAt(address)
	if err == nil {
		s, stop, err = open(ctx)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("store %s: %w", shown(address), err)
	}
	return s, stop, nil
}

type opener func(context.Context) (idempotency.Store, func() error, error)

func storeAt(address string) (opener, error) {
	kind, rest, _ := strings.Cut(address, ":")
	switch {
	case address == "memory":
		return openMemory, nil
	case kind == "bolt" && rest != "":
		return func(context.Context) (idempotency.Store, func() error, error) { return openBolt(rest) }, nil
	case kind == "redis" || kind == "rediss" || kind == "unix":
		_, err := redisOptions(address)
		return func(context.Context) (idempotency.Store, func() error, error) { return openRedis(address) }, err
	case kind == "postgres" || kind == "postgresql":
		p, err := parsePostgres(address)
		return p.open, err
	}
	return nil, errors.New("want memory, bolt:PATH, redis://HOST:PORT/DATABASE (rediss:// with TLS, unix:// for a socket) or postgres://USER@HOST/DATABASE")
}

func openMemory(context.Context) (idempotency.Store, func() error, error) {
	s, err := idempotency.NewMemoryStore(idempotency.MemoryStoreConfig{})
	return s, func() error { return nil }, err
}

func openBolt(path string) (idempotency.Store, func() error, error) {
	s, err := lullbolt.Open(path, lullbolt.Config{})
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}

func openRedis(address string) (idempotency.Store, func() error, error) {
	client, err := redisClient(address)
	if err != nil {
		return nil, nil, err
	}
	s, err := lullredis.NewStore(client, lullredis.StoreConfig{})
	if err != nil {
		return nil, nil, errors.Join(err, client.Close())
	}
	return s, client.Close, nil
}
