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
// Such clients are many, each makes few calls, somebody looks at each, and a wrong policy in
// them stays for years, since nobody can restart them. So the policy has to be right for a
// fleet that fails together:
//
//   - One retry in stock, the least that there is. A stock is for each process: the two of the
//     zero policy are two million retries that nobody has earned in a fleet of a million, all
//     in the first minute of an outage. With one, the load at most doubles.
//   - The wait is drawn from 2 s. Clients that failed together come back spread over that
//     time; it is also about what somebody bears who looks at a spinner.
//   - An attempt that timed out is not repeated: a client that makes one call at a time has no
//     other call that could show that the service answers.
//   - Twelve seconds at most, as its user gives up or tries again himself, which no policy can
//     prevent. A server that asks to wait for longer than 10 s (HintLimit) gets that: the
//     call ends, and Error.Verdict.After has the time to show.
//
// Where one call in a hundred fails by chance, the one retry mends nearly all of them: each ten
// successes earn another. docs/which-policy.md has an outage of both, beside the zero policy.
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
