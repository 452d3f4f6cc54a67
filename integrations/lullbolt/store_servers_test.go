//go:build servers

package lullbolt

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/idempotency"
	"github.com/lullgo/lull/server/idempotency/storetest"
)

// With the store's real clock, and the disk.
func TestConformanceByTheClock(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) idempotency.Store { return open(t, temp(t), Config{}) }, storetest.Options{})
}

func TestMatrix(t *testing.T) {
	t.Parallel()
	storetest.Matrix(t, storetest.Outliving{
		Place:     func(t *testing.T) string { return temp(t) },
		Open:      func(t *testing.T, path string) idempotency.Store { return open(t, path, Config{}) },
		Exclusive: true,
	})
}

// The file stands still during the claim, or while the handler runs, and then continues. The next
// request with the key is carried out, or gets the response: no outcome is unknown.
func TestAFileThatStandsStill(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"claim", "record", "release"} {
		s := open(t, temp(t), Config{NoSync: true})
		policy := idempotency.StorePolicy()
		policy.Attempts, policy.AttemptTimeout, policy.Breaker.Off = 1, 200*time.Millisecond, true
		keys := must.Have(idempotency.New(s, idempotency.Config{Store: policy}, idempotency.WithScope(idempotency.SharedScope)))
		const n = 3
		var goOn [n]func() error
		var runs [n]atomic.Int64
		send := func(i int) *httptest.ResponseRecorder {
			r := httptest.NewRequest("POST", "/", nil)
			r.Header.Set("Idempotency-Key", fmt.Sprint(i))
			w := httptest.NewRecorder()
			keys.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if first := runs[i].Add(1) == 1; first && at != "claim" {
					waitFor(t, s, 0, false)
					goOn[i] = hold(s)
					if at == "release" {
						idempotency.NoEffect(r.Context())
					}
				}
				w.WriteHeader(201)
			})).ServeHTTP(w, r)
			return w
		}
		for i := range n {
			if at == "claim" {
				waitFor(t, s, 0, false)
				goOn[i] = hold(s)
			}
			first := send(i)
			if want := map[bool]int{true: 503, false: 201}[at == "claim"]; first.Code != want {
				t.Errorf("held at the %s: %d, want %d", at, first.Code, want)
			}
			must.Succeed(goOn[i]())
			var again *httptest.ResponseRecorder
			for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
				if again = send(i); again.Header().Get("Retry-After") == "" {
					break
				}
			}
			wantRuns := map[string]int64{"claim": 1, "record": 1, "release": 2}[at]
			if replayed := again.Header().Get("Idempotency-Replayed") == "true"; again.Code != 201 || replayed != (at == "record") || runs[i].Load() != wantRuns {
				t.Errorf("held at the %s, and sent again: %d %s, replayed %v, after %d handlers", at, again.Code, again.Body, replayed, runs[i].Load())
			}
		}
		must.Succeed(keys.Wait(t.Context()))
		s.Close()
	}
}
