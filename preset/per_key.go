package preset

import (
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
)

// PerKey is for a lull.Registry with a dependency for each thing that is asked for, such as a
// segment of a live stream. In 30 s there is at most one retry for a key, whoever asks, and one
// more for 100,000 calls that succeed. WorstCase: 17 s.
//
// The wait is 1 to 5 s, or what the server asks for with jitter on top: all players fail together,
// and have some seconds of video left. The registry must hold the keys of half a minute: one that
// has left it comes back with a new budget. If many callers share a process, let them wait for the
// same call, since only one of them gets the retry.
// For lullhttp pass lullhttp.WithDependencies a function that returns the registry's dependency for
// the key in the request. lab/study/README.md has 25 million players.
func PerKey() lull.Policy {
	const every = 30 * time.Second
	return lull.Policy{
		Attempts:       2,
		AttemptTimeout: 6 * time.Second,
		Deadline:       17 * time.Second,
		Backoff:        backoff.Schedule{Kind: backoff.Constant, Floor: time.Second, Base: 5 * time.Second},
		HintLimit:      10 * time.Second,
		Budget: budget.Config{
			Window: every * 10 / 9, // what was spent counts for nine tenths of it at least
			Floor:  0.9 / every.Seconds(),
			Ratio:  budget.MinRatio,
		},
	}
}
