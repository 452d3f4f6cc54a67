package engine_test

import (
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
)

// What a failure means when more is known than the classifier knew.
func TestVerdictsOfFailures(t *testing.T) {
	unknown := lull.Verdict{Code: engine.CodeUnclassified}
	blip := lull.Verdict{Kind: lull.KindTransient, Code: "503", After: time.Second, NeverSent: true}
	busy := lull.Verdict{Kind: lull.KindRateLimited, Code: "429", After: time.Second}
	missing := lull.Verdict{Kind: lull.KindPermanent, Code: "404"}
	named := lull.Verdict{Code: "mystery"}
	stop := lull.Verdict{Kind: lull.KindOverloaded, Code: "503"}
	canceled := func(v lull.Verdict) lull.Verdict { v.Kind = lull.KindCanceled; return v }
	for _, c := range []struct{ v, failed, gone, committed lull.Verdict }{
		{lull.Verdict{}, unknown, canceled(unknown), lull.Verdict{}},
		{named, named, canceled(named), named},
		{blip, blip, canceled(blip), lull.Verdict{Code: engine.CodeUnclassified, NeverSent: true}},
		{busy, busy, canceled(busy), unknown},
		{missing, missing, canceled(missing), missing},
		{stop, stop, canceled(stop), stop},
		{canceled(unknown), canceled(unknown), canceled(unknown), canceled(unknown)},
	} {
		if got := c.v.Failed(false); got != c.failed {
			t.Errorf("%+v has failed: %+v, want %+v", c.v, got, c.failed)
		}
		if got := c.v.Failed(true); got != c.gone {
			t.Errorf("%+v has failed, and the caller has gone away: %+v, want %+v", c.v, got, c.gone)
		}
		if got := c.v.Committed(); got != c.committed {
			t.Errorf("%+v has failed after a part of the answer was received: %+v, want %+v", c.v, got, c.committed)
		}
	}
}
