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
// The zero policy is for processes that are many, or make many calls. What it knows of a
// dependency it has learned from other calls, and such a program has none:
//
//   - A timeout is repeated. No other call could show that the service answers, so that the
//     zero policy would let each timeout be final.
//   - Ten retries are in stock. The zero policy has two, and each more must be earned by ten
//     successes. Ten calls earn one.
//   - Somebody waits, but would rather wait than start again. The waits add up to 3 s on
//     average, as long as a service takes to restart.
//
// By hand one would write the same loop without a budget, and in an outage each call would be six
// attempts. With ten in stock a tool of ten calls makes twenty at most when nothing works. For a fleet of a thousand
// that start together (a cron job) even that is too much: use the zero policy.
// docs/which-policy.md has the figures of all three.
func CommandLine() lull.Policy {
	return lull.Policy{
		Attempts: 6,
		Deadline: time.Minute,
		Timeouts: lull.TimeoutsAlways,
		Backoff:  backoff.Schedule{Base: 200 * time.Millisecond, Cap: 10 * time.Second},
		Budget:   budget.Config{Stock: 10},
	}
}
