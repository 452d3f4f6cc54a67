package preset

import (
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
)

// CommandLine is a starting point for programs that make a few calls, one after the other, and
// end: command-line tools, scripts, jobs. Six attempts of at most 10 s, a minute for the call,
// waits with full jitter below 200 ms, 400 ms, and so on to 3.2 s. WorstCase: 1 minute.
//
// Such a program has no other calls to learn from. So a timeout is repeated, and ten retries are
// in stock: a tool of ten calls makes twenty attempts at most when nothing works. For a fleet of a
// thousand that start together (a cron job) use the zero policy. docs/which-policy.md has the
// argument and the figures.
func CommandLine() lull.Policy {
	return lull.Policy{
		Attempts: 6,
		Deadline: time.Minute,
		Timeouts: lull.TimeoutsAlways,
		Backoff:  backoff.Schedule{Base: 200 * time.Millisecond, Cap: 10 * time.Second},
		Budget:   budget.Config{Stock: 10},
	}
}
