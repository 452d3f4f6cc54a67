package idempotency_test

import (
	"testing"

	"github.com/lullgo/lull/server/idempotency"
	"github.com/lullgo/lull/server/idempotency/storetest"
)

func newMemory(t testing.TB, c idempotency.MemoryStoreConfig) *idempotency.MemoryStore {
	t.Helper()
	return must(idempotency.NewMemoryStore(c))
}

func TestMemoryIsAStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) idempotency.Store { return newMemory(t, idempotency.MemoryStoreConfig{}) }, storetest.Options{Virtual: true})
}
