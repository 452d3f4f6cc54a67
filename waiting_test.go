package lull_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/internal/check"
)

// When a thousand calls under a small limit fail at once, few wait for their retries. The others
// end at once with their own error. Later calls find room again, however the waits ended.
func TestCallsThatWaitAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := bulkhead.Config{InFlight: 4, MaxWait: time.Second, MaxQueue: 1000}
		d := newDependency(t, lull.Policy{Budget: plenty, Breaker: breaker.Config{Off: true}, Limit: limit})
		for range 2 {
			ctx, cancel := context.WithCancel(t.Context())
			var mu sync.Mutex
			ends, start := map[string]int{}, time.Now()
			for i := range 1000 {
				go func() {
					ctx := ctx
					if i%2 == 0 { // the others wait until the end of the hint
						ctx = t.Context()
					}
					first := true
					err := lull.Run(ctx, d, func(context.Context) error {
						if first {
							first = false
							return lull.RetryAfter(errBlip, 10*time.Second)
						}
						return nil
					})
					mu.Lock()
					defer mu.Unlock()
					switch {
					case err == nil:
						ends["success"]++
					case !errors.Is(err, errBlip):
						t.Errorf("the last error is not in %v", err)
					case errors.Is(err, lull.ErrTooManyWaiting) && time.Since(start) == 0:
						ends["too many"]++
					case errors.Is(err, context.Canceled):
						ends["canceled"]++
					default:
						t.Errorf("after %v: %v", time.Since(start), err)
					}
				}()
			}
			synctest.Wait()
			check.Equal(t, ends["too many"], 900, "%v: ended at once", ends)
			cancel()
			time.Sleep(time.Minute)
			synctest.Wait()
			check.Equal(t, ends["success"]+ends["canceled"], 100, "%v: had waited", ends)
		}
	})
}
