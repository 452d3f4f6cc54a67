package idempotency_test

import (
	"testing"
	"time"

	"github.com/lullgo/lull/server/idempotency"
	"github.com/lullgo/lull/server/idempotency/storetest"
)

func newMemory(t testing.TB, c idempotency.MemoryConfig) *idempotency.Memory {
	t.Helper()
	m, err := idempotency.NewMemory(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMemoryIsAStore(t *testing.T) {
	var advance func(time.Duration)
	storetest.Run(t, func(t *testing.T) idempotency.Store {
		m := newMemory(t, idempotency.MemoryConfig{})
		advance = idempotency.WithClock(m)
		return m
	}, storetest.Options{Advance: func(d time.Duration) { advance(d) }})
}
