package sim

import (
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
)

// Each payment is carried out at every attempt, and every response is lost.
func payments(keyed, deduplicates bool, workers int) Scenario {
	return Scenario{
		Horizon:  time.Minute,
		Services: []Service{{Name: "api", Workers: workers, Queue: Queue{Limit: 100 * min(workers, 1)}, Time: fixed(10 * millisecond), Deduplicates: deduplicates}},
		Fleets: []Fleet{{
			Calls: "api", Processes: 10, Arrivals: Arrivals{Kind: AtOnce, At: time.Second}, AttemptTimeout: time.Second,
			NotIdempotent: true, Keyed: keyed, Network: Network{LossBack: 1},
		}},
	}
}

func TestPayments(t *testing.T) {
	for _, workers := range []int{0, 3} {
		for _, c := range []struct {
			name                string
			keyed, deduplicates bool
			effects, duplicates int64
			why                 lull.Reason
		}{
			{"without a key", false, false, 10, 0, engine.NotIdempotent},
			{"without a key, a record for nothing", false, true, 10, 0, engine.NotIdempotent},
			{"with a key that nobody looks at", true, false, 30, 20, engine.AttemptsExhausted},
			{"with a key", true, true, 10, 0, engine.AttemptsExhausted},
		} {
			s := payments(c.keyed, c.deduplicates, workers)
			r := play(t, s, retrying(3, 10*millisecond))
			want(t, c.name+": effects", r.Totals.Effects, c.effects)
			want(t, c.name+": duplicates", r.Totals.Duplicates, c.duplicates)
			want(t, c.name+": ended so", r.reason(c.why), 10)

			// Users who come back twice pay up to three times, whatever the key: it is
			// another call, with a key of its own.
			s.Fleets[0].Reload = Reload{Share: 1, After: fixed(time.Second), Times: 2}
			r = play(t, s, retrying(3, 10*millisecond))
			want(t, c.name+": effects with reloads", r.Totals.Effects, 3*c.effects)
			want(t, c.name+": duplicates with reloads", r.Totals.Duplicates, 3*c.effects-10)
			want(t, c.name+": reloads", r.Totals.Reloads, 20)
			want(t, c.name+": calls", r.Totals.Calls, 30)
		}
	}
	// What may be repeated is not counted.
	s := payments(false, false, 0)
	s.Fleets[0].NotIdempotent = false
	want(t, "idempotent: effects", play(t, s, retrying(3, 0)).Totals.Effects, 0)
}

// What would be carried out after the end of the run was not.
func TestEffectsOfUnfinishedWork(t *testing.T) {
	for _, workers := range []int{0, 10} {
		s := payments(true, false, workers)
		s.Horizon = 1005 * millisecond
		want(t, "effects", play(t, s, once()).Totals.Effects, 0)
	}
}
