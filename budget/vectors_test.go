package budget

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/lullgo/lull/internal/must"
)

// vectors reads the published cases of another system. Each file names the
// place that they come from.
func vectors(t *testing.T, name string, into any) {
	t.Helper()
	data := must.Have(os.ReadFile("testdata/" + name))
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// Whatever pays, the first refusal after a grant is the one worth an event.
func TestOtherBudgetsMarkTheEdge(t *testing.T) {
	grpc, _ := NewGRPCThrottle(GRPCConfig{MaxTokens: 4, TokenRatio: 1})
	bucket, _ := NewBucket(Config{Ratio: 1, Stock: 1})
	for name, b := range map[string]Budget{"grpc": grpc, "bucket": bucket} {
		fill := func() {
			for range 2 {
				b.Start(2e9)
				b.Release(2e9, 1)
				b.Done(2e9, true, 10, 10)
			}
		}
		drain := func() {
			for n := 0; ; n++ {
				b.Failed(2e9)
				g := b.Withdraw(2e9, Transient, never)
				if n > 9 || !g.OK {
					if n == 0 || n > 9 || !g.Exhausted {
						t.Errorf("%s: after %d grants: %+v, want a few grants and then Exhausted", name, n, g)
					}
					break
				}
			}
			for range 3 {
				if g := b.Withdraw(2e9, Transient, never); g != (Grant{}) {
					t.Errorf("%s: a further refusal: %+v, want nothing new", name, g)
				}
			}
		}
		drain()
		if fill(); name != "finagle" { // earns by time alone here
			drain()
		}
		if got := b.Balance(2e9); got != 0 {
			t.Errorf("%s: balance %v when it refuses, want 0", name, got)
		}
	}
}
