package wiring

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull/integrations/lullbolt"
	"github.com/lullgo/lull/integrations/lullredis"
	"github.com/lullgo/lull/server/idempotency"
)

// openStore opens the store at address.
func (w *Wiring) openStore(ctx context.Context, address string) error {
	open, err := storeAt(address)
	if err != nil {
		return err
	}
	store, stop, err := open(ctx)
	if err != nil {
		return err
	}
	w.store = store
	w.closers = append(w.closers, func(context.Context) error { return stop() })
	return nil
}

type opener func(context.Context) (s idempotency.Store, stop func() error, err error)

// storeAt returns what opens the store at address (proxy.Keys.Store).
func storeAt(address string) (opener, error) {
	kind, path, _ := strings.Cut(address, ":")
	switch {
	case address == "memory":
		return func(context.Context) (idempotency.Store, func() error, error) {
			s, err := idempotency.NewMemoryStore(idempotency.MemoryStoreConfig{})
			return s, func() error { return nil }, err
		}, nil
	case kind == "bolt" && path != "":
		return func(context.Context) (idempotency.Store, func() error, error) {
			s, err := lullbolt.Open(path, lullbolt.Config{})
			return s, s.Close, err
		}, nil
	case kind == "redis" || kind == "rediss" || kind == "unix":
		o, err := redisOptions(address)
		return func(context.Context) (idempotency.Store, func() error, error) {
			client := redis.NewClient(o)
			s, err := lullredis.NewStore(client, lullredis.StoreConfig{})
			return s, client.Close, err
		}, err
	case kind == "postgres" || kind == "postgresql":
		c, err := parsePostgres(address)
		return func(ctx context.Context) (idempotency.Store, func() error, error) { return openPostgres(ctx, c) }, err
	}
	return nil, errors.New("want memory, bolt:PATH, redis://HOST:PORT/DATABASE (rediss:// with TLS, unix:// for a socket) or postgres://USER@HOST/DATABASE")
}
