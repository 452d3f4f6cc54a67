package preset

import (
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
)

// Edge is for clients at the edge: browsers, phones, devices. WorstCase: 12 s.
//
// They are many, each makes few calls, and they fail together. So there is one retry in
// stock, the wait is drawn from up to 2 s, and a timeout is not repeated. If a server asks
// to wait for more than 10 s, the call ends, and Error.Verdict.After has the time to show.
// docs/which-policy.md has the argument and an outage.
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
