package config

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/clients"
)

// These tests have a few clients, as the program lull has all of them.
func init() {
	client := lull.Policy{
		Attempts: 5, AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout,
		Backoff: backoff.Schedule{Jitter: backoff.None, Base: time.Second, Cap: 30 * time.Second}, RateLimitedBase: 1,
		Timeouts: lull.TimeoutsAlways, Nested: lull.NestedAlways, HintLimit: time.Hour,
		Budget: budget.Config{Unlimited: true}, Breaker: breaker.Config{Off: true},
	}
	none := client
	none.Attempts, none.Backoff = 1, backoff.Schedule{Kind: backoff.Constant, Jitter: backoff.None}
	clients.Register([]clients.Client{
		{Name: "lull"}, {Name: "none", Policy: none}, {Name: "go-retryablehttp", Policy: client}, {Name: "grpc", Policy: client, Partial: true},
	})
}

// clientNames are the clients that the program lull takes. A test of package lab/rivals writes the file.
func clientNames(t testing.TB) []string {
	t.Helper()
	data := must(os.ReadFile("testdata/clients.txt"))
	return strings.Fields(string(data))
}

// What a program says that has no clients but its own.
func TestClientsAreUnknownToALibrary(t *testing.T) {
	for list, want := range map[int]string{0: "edge", 1: "a client that is all policy, such as go-retryablehttp"} {
		names := "internal-service, external-api, background-worker, command-line"
		if list == 1 {
			names += ", edge"
		}
		if got := allowedPreset(clients.All()[:list]); got != names+" or "+want {
			t.Errorf("with %d clients: %s", list, got)
		}
	}
}
