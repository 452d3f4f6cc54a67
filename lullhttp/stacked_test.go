package lullhttp_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/lullhttp"
)

// A retry of an SDK that retries by itself is not retried once more: of three attempts
// above and four here become six, not twelve.
func TestRetriesOfSDKsAreNotMultiplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			key   string
			value func(attempt int) string
		}{
			{"Amz-Sdk-Request", func(n int) string { return fmt.Sprintf("attempt=%d; max=3", n) }},
			{"X-Stainless-Retry-Count", func(n int) string { return fmt.Sprint(n - 1) }},
			{"X-Goog-Api-Client", func(n int) string {
				return fmt.Sprintf("gccl-invocation-id/0c1e gccl-attempt-count/%d gl-go/1.26.0 gccl/1.50.0", n)
			}},
			{"X-Envoy-Attempt-Count", func(n int) string { return fmt.Sprint(n) }},
			{"Lull-Attempt", func(n int) string { return fmt.Sprint(n) }},
		} {
			for _, p := range []lull.Policy{{Attempts: 4}, {Hedge: hedge.Config{Attempts: 4}}} {
				for nested, want := range map[engine.NestedRetries]int{engine.NestedNever: 4 + 1 + 1, lull.NestedAlways: 4 + 4 + 4} {
					e := eager
					e.Attempts, e.Hedge, e.Nested = p.Attempts, p.Hedge, nested
					base := &recorder{status: 503}
					cl := client(t, e, lullhttp.WithBase(base))
					for n := 1; n <= 3; n++ { // the SDK's loop
						req, _ := http.NewRequest("GET", "http://example.test/", nil)
						req.Header.Set(c.key, c.value(n))
						resp, err := cl.Do(req)
						if err != nil {
							t.Fatal(err)
						}
						if o := lullhttp.OutcomeOf(resp); n > 1 && nested == engine.NestedNever && o.Reason != engine.RetriedAbove {
							t.Errorf("%s: %s: %v", c.key, c.value(n), o.Reason)
						}
					}
					if len(base.reqs) != want {
						t.Errorf("%s, Nested %v, hedged %v: %d requests, want %d", c.key, nested, p.Hedge.Attempts > 0, len(base.reqs), want)
					}
				}
			}
		}
	})
}
