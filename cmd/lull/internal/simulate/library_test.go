package simulate

import (
	"runtime"
	"testing"
	"time"

	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

// raced is set when the race detector is on.
var raced bool

// Some scenarios of the library are flown twice. The lab's suite does it with all.
func TestScenariosGiveTheSameBytes(t *testing.T) {
	for i, s := range scenario.BuiltIn() {
		if i%8 == 0 {
			givesTheSameBytes(t, s)
		}
	}
}

// givesTheSameBytes flies a scenario twice, small: one run at a time on one core, and two at a time on all cores. The
// output is the same bytes.
func givesTheSameBytes(t *testing.T, s sim.Scenario) {
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
