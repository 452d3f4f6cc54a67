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
	r := rand.New(rand.NewPCG(1, 2))
	return histogramOf(samples, func() time.Duration { return time.Duration(r.ExpFloat64() * float64(mean)) })
}

// histogramOf is a histogram of n times, in bars of 2 %.
func histogramOf(n int, draw func() time.Duration) sim.Distribution {
	counts, most := map[int]float64{}, 0
	for range n {
		k := max(int(math.Ceil(math.Log(float64(draw())/1e4)/math.Log(1.02))), 0)
		counts[k]++
		most = max(most, k)
	}
	d := sim.Distribution{Kind: sim.Histogram}
	for k := range most + 1 {
		d.Bars = append(d.Bars, sim.Bar{UpTo: time.Duration(1e4 * math.Pow(1.02, float64(k))), Weight: counts[k]})
	}
	return d
}

func TestFirst(t *testing.T) {
	readLearned = func(string) (sim.Scenario, *scenario.Learned, error) {
		s, l := stalled(20_000)
		s.Fleets[0].AttemptTimeout = 10 * time.Second
		return s, l, nil
	}
	start := time.Now()
	code, out, errs := clitest.Run[Command](cli.Env{Context: t.Context()}, "tune", "x.yaml", "--quiet", "--slo", "800ms@99.9", "-o", "/tmp/tune/p.yaml", "--report", "/tmp/tune/r.html")
	t.Log(code, time.Since(start), "\n"+out, errs)
	_ = strings.Contains
	_ = lull.Policy{}
}
