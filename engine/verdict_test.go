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
	unanswered := lull.Verdict{Code: engine.CodeOutcomeUnknown} // a COMMIT
	reset := lull.Verdict{Kind: lull.KindTransient, Code: "connection_reset"}
	timeout := lull.Verdict{Kind: lull.KindTransient, Code: engine.CodeTimeout}
	unreadable := lull.Verdict{Kind: engine.KindCallerSide, Code: "request_body"}
	canceled := func(v lull.Verdict) lull.Verdict { v.Kind = engine.KindCanceled; return v }
	for _, c := range []struct{ v, failed, gone, late, committed lull.Verdict }{
		{lull.Verdict{}, unknown, canceled(unknown), timeout, lull.Verdict{}},
		{named, named, canceled(named), timeout, named},
		{blip, blip, canceled(blip), blip, lull.Verdict{Code: engine.CodeUnclassified, NeverSent: true}},
		{unanswered, unanswered, canceled(unanswered), unanswered, unanswered},
		{reset, reset, canceled(reset), timeout, unknown},
		{timeout, timeout, canceled(timeout), timeout, unknown},
		{busy, busy, canceled(busy), busy, unknown},
		{missing, missing, canceled(missing), missing, missing},
		{stop, stop, canceled(stop), stop, stop},
		{canceled(unknown), canceled(unknown), canceled(unknown), timeout, canceled(unknown)},
		{noFiles, noFiles, canceled(noFiles), noFiles, lull.Verdict{Kind: engine.KindCallerSide, Code: "local_resources", NeverSent: true}},
		{unreadable, unreadable, canceled(unreadable), unreadable, unreadable},
	} {
		for by, want := range map[engine.CutOff]lull.Verdict{engine.NotCutOff: c.failed, engine.CutByCaller: c.gone, engine.CutByTime: c.late} {
			if got := c.v.Failed(by); got != want {
				t.Errorf("%+v, cut off by %v: %+v, want %+v", c.v, by, got, want)
			}
		}
		if got := c.v.Committed(); got != c.committed {
			t.Errorf("%+v has failed after a part of the answer was received: %+v, want %+v", c.v, got, c.committed)
		}
	}
}
