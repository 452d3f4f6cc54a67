package idempotency_test

import (
	"io"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/lullgo/lull/server/idempotency"
	"github.com/lullgo/lull/server/idempotency/internal/step"
)

// The tests of stores kill a process at each step of the protocol: it comes to all of them,
// in order.
func TestStepsOfTheProtocol(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []step.Point
		step.Set(func(p step.Point) { got = append(got, p) })
		defer step.Set(nil)
		for _, transactional := range []bool{false, true} {
			got = nil
			l := &ledger{Memory: newMemory(t, idempotency.MemoryConfig{})}
			h := newRig(t, l, idempotency.Config{Transactional: transactional}).m.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				got = append(got, "handler")
				io.WriteString(w, "paid")
			}))
			send(t, h, request("k")).ran(t, 200, "paid")
			want := []step.Point{step.BeforeClaim, step.AfterClaim, "handler", step.AfterHandler, step.AfterComplete, step.AfterResponse}
			if !slices.Equal(got, want) {
				t.Errorf("transactional %v: steps %q, want %q", transactional, got, want)
			}
		}
	})
}
