package idempotency_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/idempotency"
)

// What the middleware costs over the handler alone, with the store in memory: a first
// request, and a replay, of 100 bytes, answered with 2 KiB.
func Benchmark(b *testing.B) {
	body, response := strings.Repeat("x", 100), []byte(strings.Repeat("y", 2048))
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Write(response)
	})
	run := func(h http.Handler, key func(int) string) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				req := httptest.NewRequest("POST", "/pay", strings.NewReader(body))
				req.Header["Authorization"] = []string{"Bearer alice"}
				req.Header["Idempotency-Key"] = []string{key(i)}
				h.ServeHTTP(httptest.NewRecorder(), req)
			}
		}
	}
	fresh := func(i int) string { return fmt.Sprint("key-", i) }
	store := newMemory(b, idempotency.MemoryStoreConfig{MaxEntries: 1 << 30, MaxBytes: 1 << 40})
	m := must.Have(idempotency.New(store, idempotency.Config{}))
	b.Run("handler", run(handler, fresh))
	b.Run("first", run(m.Wrap(handler), fresh))
	b.Run("replay", run(m.Wrap(handler), func(int) string { return "one" }))
}
