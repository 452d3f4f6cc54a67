package simulate

import (
	"runtime"
	"testing"
	"time"

	"github.com/lullgo/lull/config"
)

// raced is set when the race detector is on.
var raced bool

// Every scenario of the library is flown twice, small: one run at a time on one core, and two at a time on all cores. The
// output is the same bytes.
func TestEveryScenarioGivesTheSameBytes(t *testing.T) {
	for i, s := range config.BuiltIn() {
		if raced && i%8 > 0 {
			continue // the race detector sees the same in some of them
		}
		t.Run(s.Name, func(t *testing.T) {
			horizon := min(s.Horizon, 125*time.Second) // the faults begin after two minutes at most
			args := []string{s.Name, "--policy", "full-jitter,lull", "--json", "--quiet", "--seed", "7", "--clients", "20", "--horizon", horizon.String()}
			first := simulate(t, append(args, "--workers", "2")...)
			if !raced {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			}
			if again := simulate(t, append(args, "--workers", "1")...); again != first {
				t.Error("two runs at a time, on all cores, give other figures than one at a time on one core")
			}
		})
	}
}
