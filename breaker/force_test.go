package breaker

import (
	"testing"

	"github.com/lullgo/lull/internal/must"
)

func TestOff(t *testing.T) {
	for name, b := range map[string]*Breaker{"Off": must.Have(New(Config{Off: true})), "zero": {}} {
		b.ForceOpen(0)
		b.ForceClosed(0)
		b.Auto(0)
		b.ForceOpen(0)
		if n := run(b, 0, 1000, Failure); n != 1000 {
			t.Errorf("%s: %d of 1000 admitted", name, n)
		}
		calls, failures, _ := b.Counts(0)
		if s := b.State(0); s != Closed || b.RetryAt(0) != 0 || calls != 0 || failures != 0 || b.counted.Load() != nil {
			t.Errorf("%s: %v, %d, %d", name, s, calls, failures)
		}
	}
}
