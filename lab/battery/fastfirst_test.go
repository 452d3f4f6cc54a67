package battery

import (
	"context"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/sim"
)

// A first retry at once helps where failures are chance: as many calls succeed, and callers hold less. In an outage of
// half a second it is wasted. Nowhere is it worse than no retries.
func TestAFirstRetryAtOnceIsForChanceNotForOutages(t *testing.T) {
	none := must.Have(Preset(None))
	all := must.Have(Fly(context.Background(), Plan{
		Worlds: worldsNamed(t, Quick, "peace-err0.2-r50-p10", "blips-crash500ms-p1"),
		Judged: sim.Contender{Name: "at once", Policy: lull.Policy{Backoff: backoff.Schedule{FastFirst: true}}},
		Rivals: []sim.Contender{none, {Name: "lull"}}, Seeds: 1,
	}))
	for i := range all {
		o := &all[i]
		for _, f := range o.Shortfalls() {
			if f.Rival == None {
				t.Errorf("%+v", f)
			}
		}
		atOnce, zero := o.Judged().Runs, o.Of("lull").Runs
		fewer := successes(zero, atOnce)
		if o.World.Stationary {
			if less := mean(zero, held) - mean(atOnce, held); fewer.sure() || less < 0.05*mean(zero, held) {
				t.Errorf("%s: it has %v less in successes, and holds %v less", o.World.Name, fewer.by, less)
			}
		} else if !fewer.sure() {
			t.Errorf("%s: the successes differ by %v", o.World.Name, fewer.by)
		}
	}
}
