package preset

import (
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
)

// CommandLine is for programs that make a few calls one after the other, and end:
// command-line tools, scripts, jobs. WorstCase: 1 minute.
//
// Such a program has no other calls to learn from. So a timeout is repeated. If nothing works,
// its calls together make as many retries as are in stock, 20.
// For a fleet of a thousand that start together (a cron job) use the zero policy with
// budget.Config{Stock: 2}.
// docs/which-policy.md has the argument and the figures.
func CommandLine() lull.Policy {
	return lull.Policy{
		Attempts: 6,
		Deadline: time.Minute,
		Timeouts: lull.TimeoutsAlways,
		Backoff:  backoff.Schedule{Base: 200 * time.Millisecond, Cap: 10 * time.Second},
	}
}
