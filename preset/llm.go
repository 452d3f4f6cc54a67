package preset

import (
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
)

// LLM is for APIs of large language models: a slow first byte (a p95 of 50 s), rate limits for which
// the server names a time of up to a minute (429, 529, 503), and attempts that cost money.
// WorstCase: 5 minutes.
//
// A quota that is full again only in more than two minutes ends the call, with that time in
// Error.Verdict.After. Such a call is a POST: declare it idempotent, if being charged twice does no
// harm (lullhttp.WithRoute). An error in a stream that has begun is left to the caller.
func LLM() lull.Policy {
	return lull.Policy{
		Attempts:       3,
		AttemptTimeout: 2 * time.Minute,
		Deadline:       5 * time.Minute,
		Backoff:        backoff.Schedule{Base: time.Second, Cap: 30 * time.Second},
		HintLimit:      2 * time.Minute,
		Budget:         budget.Config{Stock: 3},
	}
}
