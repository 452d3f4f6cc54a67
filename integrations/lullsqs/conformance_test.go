package lullsqs

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/queue"
	"github.com/lullgo/lull/queue/queuetest"
)

// The same against SQS as documented, in virtual time.
func TestConformanceOfTheDocumentation(t *testing.T) {
	var mu sync.Mutex
	fakes := map[string]*fake{}
	queuetest.Run(t, queuetest.Target{
		Declare: func(t testing.TB, o queuetest.Options) string {
			f := newFake()
			config, err := Declare(t.Context(), f, Topology{Queue: newName(t, o.Order == queue.PerGroup), Policy: lull.Policy{Attempts: o.Attempts}})
			must(t, err)
			mu.Lock()
			defer mu.Unlock()
			fakes[config.Queue] = f
			text, _ := json.Marshal(address{Config: config, Lease: o.Lease})
			return string(text)
		},
		Connect: func(_ context.Context, text string) (*queuetest.Connection, error) {
			var a address
			if err := json.Unmarshal([]byte(text), &a); err != nil {
				return nil, err
			}
			mu.Lock()
			defer mu.Unlock()
			f := fakes[a.Config.Queue]
			return connection(f, f, a)
		},
		Orders: []queue.Order{queue.Unordered, queue.PerGroup}, Lease: 6 * time.Second, Virtual: true,
	})
}
