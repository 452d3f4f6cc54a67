package tune

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/clitest"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

// stalled is a learned world: 100 calls/s of ten processes, whose attempts take 20 ms on average, exponentially, and a stall.
// The callers wait for two seconds.
func stalled(samples int) (sim.Scenario, *scenario.Learned) {
	s := sim.Scenario{
		Name: "stalled", Horizon: 4 * time.Minute,
		Services: []sim.Service{{Name: "api", Workers: 10, Queue: sim.Queue{Limit: 100}, Time: exponentialTimes(20*time.Millisecond, samples),
			ErrorTime: time.Millisecond, Errors: 0.002, CancelWork: true,
			Faults: []sim.Fault{{Kind: sim.Stall, At: time.Minute, For: 40 * time.Second}}}},
		Fleets: []sim.Fleet{{Name: "clients", Calls: "api", Processes: 10, Arrivals: sim.Arrivals{Rate: 100}, AttemptTimeout: 2 * time.Second}},
	}
	return s, &scenario.Learned{}
}

// exponentialTimes is a histogram of that many attempts.
func exponentialTimes(mean time.Duration, samples int) sim.Distribution {
	d := sim.Distribution{Kind: sim.Histogram}
	r := rand.New(rand.NewPCG(1, 2))
	counts := map[int]float64{}
	most := 0
	for range samples {
		k := int(math.Ceil(math.Log(r.ExpFloat64()*mean.Seconds()/1e-5) / math.Log(1.02)))
		k = max(k, 0)
		counts[k]++
		most = max(most, k)
	}
	for k := range most + 1 {
		d.Bars = append(d.Bars, sim.Bar{UpTo: time.Duration(1e4 * math.Pow(1.02, float64(k))), Weight: counts[k]})
	}
	return d
}

func TestFirst(t *testing.T) {
	readLearned = func(string) (sim.Scenario, *scenario.Learned, error) {
		s, l := stalled(20_000)
		return s, l, nil
	}
	start := time.Now()
	code, out, errs := clitest.Run[Command](cli.Env{Context: t.Context()}, "tune", "x.yaml", "--quiet")
	t.Log(code, time.Since(start), "\n"+out, errs)
	_ = strings.Contains
	_ = lull.Policy{}
}
