package idempotency_test

import (
	"testing"

	"github.com/lullgo/lull/server/idempotency"
	"github.com/lullgo/lull/server/idempotency/storetest"
)

func newMemory(t testing.TB, c idempotency.MemoryStoreConfig) *idempotency.MemoryStore {
	t.Helper()
	m, err := idempotency.NewMemoryStore(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMemoryIsAStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) idempotency.Store { return newMemory(t, idempotency.MemoryStoreConfig{}) }, storetest.Options{Virtual: true})
}
