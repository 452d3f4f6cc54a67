package preset

import (
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
)

// InternalService is a starting point for a service called within one data
// centre: two attempts of at most 1 s, 3 s for the call, short waits, and a
// concurrency limit. WorstCase: 3 s.
func InternalService() lull.Policy {
	return lull.Policy{
		Attempts:       2,
		AttemptTimeout: time.Second,
		Deadline:       3 * time.Second,
		Backoff:        backoff.Schedule{Base: 25 * time.Millisecond, Cap: time.Second},
		HintLimit:      2 * time.Second,
		Limit:          bulkhead.Config{InFlight: 256},
	}
}

// ExternalAPI is a starting point for somebody else's API over the internet:
// four attempts of at most 15 s, a minute for the call, and patience with rate
// limits. Such calls are few, so a timeout is repeated though nobody else was
// answered, and there are three retries in stock. WorstCase: 1 minute.
func ExternalAPI() lull.Policy {
	return lull.Policy{
		Attempts:       4,
		AttemptTimeout: 15 * time.Second,
		Deadline:       time.Minute,
		Backoff:        backoff.Schedule{Base: 250 * time.Millisecond, Cap: 20 * time.Second},
		HintLimit:      45 * time.Second,
		Timeouts:       lull.TimeoutsAlways,
		Budget:         budget.Config{Stock: 3},
	}
}

// BackgroundWorker is a starting point for work that nobody waits for: eight
// attempts of at most 30 s within ten minutes, waits that grow to a minute.
// Timeouts are repeated, and there are ten retries in stock: for a handful of
// processes, not for a fleet. WorstCase: 10 minutes.
func BackgroundWorker() lull.Policy {
	return lull.Policy{
		Attempts:       8,
		AttemptTimeout: 30 * time.Second,
		Deadline:       10 * time.Minute,
		Backoff:        backoff.Schedule{Base: time.Second, Cap: time.Minute},
		HintLimit:      5 * time.Minute,
		Timeouts:       lull.TimeoutsAlways,
		Budget:         budget.Config{Stock: 10},
	}
}
