//go:build lab

package sim_test

import (
	"math"
	"testing"
	"time"

	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/lab/sim"
)

// The collapse model of mbrooker/simulator_example (simple_collapse_sim): a server
// that takes 1 s for an attempt, and 10 ms more for each that it has in hand; a
// network of 100 ms each way; callers that wait 3 s and make three attempts,
// either at once or after full jitter below 20 and 40 s. The load goes up from 40
// to 80 a second within 25 s and down to nothing within 50 s more, or it is 40 and,
// from 20 to 25 s, 80.
//
// At a steady load of r a second the server has n = r (1 + n/100) in hand: 67 at
// 40, 400 at 80, where an attempt takes 5 s and everybody has gone.
func TestAgreeBrookerCollapse(t *testing.T) {
	const seconds = time.Second
	ramps := map[string][]sim.RampPoint{
		"ramp":  {{At: 0, Factor: 0.5}, {At: 25 * seconds, Factor: 1}, {At: 75 * seconds, Factor: 0}},
		"spike": {{At: 20 * seconds, Factor: 0.5}, {At: 20 * seconds, Factor: 1}, {At: 25 * seconds, Factor: 1}, {At: 25 * seconds, Factor: 0.5}},
	}
	waits := map[string]backoff.Schedule{
		"none":   atOnce,
		"jitter": {Base: 20 * seconds, Cap: time.Minute},
	}
	results := map[string][]sim.Result{}
	const seeds = 40
	for load, ramp := range ramps {
		for wait, schedule := range waits {
			results[load+wait] = fly(t, congested(ramp), sim.Contender{Policy: bare(3, schedule)}, seeds)
		}
	}
	tab := newTable("load", "wait", "from s", "begun/s", "there", "succeeded/s", "there", "retries/s", "there", "in hand", "there")
	for _, r := range records(t, "brooker_collapse_sim.csv") {
		from := int(number(t, r[2]))
		cells := []any{r[0], r[1], from}
		for k, of := range []func(*sim.Series) []float64{
			func(s *sim.Series) []float64 { return s.Calls },
			func(s *sim.Series) []float64 { return s.Goodput },
			func(s *sim.Series) []float64 { return s.Retries },
			func(s *sim.Series) []float64 { return s.Busy },
		} {
			if r[4+2*k] == "" { // the count at the end of the run is not known
				continue
			}
			want := sample{int(number(t, r[3])), number(t, r[4+2*k]), number(t, r[5+2*k])}
			got := over(results[r[0]+r[1]], func(r *sim.Result) float64 {
				xs := of(&r.Series)[from : from+10]
				if k == 3 {
					return xs[9]
				}
				sum := 0.0
				for _, x := range xs {
					sum += x / 10
				}
				return sum
			})
			cells = append(cells, got, want)
			if want.deviates == 0 && got.mean == want.mean {
				continue
			}
			// The figures are printed to a thousandth, or a tenth for what is in hand.
			if z := got.apart(want.mean, math.Hypot(want.stderr(), 0.001)); math.Abs(z) > sigmas {
				t.Errorf("%s, %s, from %d s, figure %d: %v, want %v", r[0], r[1], from, k, got, want)
			}
		}
		tab.row(cells...)
	}
	tab.log(t)
}
