package preset

import (
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
)

// Edge is a starting point for clients at the edge: browsers, phones, devices. Two attempts of
// at most 6 s, 12 s for the call. WorstCase: 12 s.
//
// Such clients are many, each makes few calls, and they fail together. So there is one retry in
// stock, the wait is drawn from 2 s, an attempt that timed out is not repeated, and a server that
// asks to wait for longer than 10 s gets that: the call ends, and Error.Verdict.After has the time
// to show. docs/which-policy.md has the argument and an outage, beside the zero policy.
func Edge() lull.Policy {
	return lull.Policy{
		Attempts:       2,
		AttemptTimeout: 6 * time.Second,
		Deadline:       12 * time.Second,
		Backoff:        backoff.Schedule{Base: 2 * time.Second, Cap: 4 * time.Second},
		HintLimit:      10 * time.Second,
		Budget:         budget.Config{Stock: 1},
	}
}
