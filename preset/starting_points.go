package preset

import (
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
)

// InternalService is for a service within one data centre: short waits, and a concurrency
// limit. WorstCase: 3 s.
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

// ExternalAPI is for somebody else's API over the internet: patience with rate limits. Such
// calls are few, so a timeout is repeated although no other call was answered. Only three
// retries are in stock, since others pay for that service. WorstCase: 1 minute.
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

// BackgroundWorker is for work that nobody waits for, within ten minutes. Timeouts are
// repeated: for a handful of processes, not for a fleet. WorstCase: 10 minutes.
func BackgroundWorker() lull.Policy {
	return lull.Policy{
		Attempts:       8,
		AttemptTimeout: 30 * time.Second,
		Deadline:       10 * time.Minute,
		Backoff:        backoff.Schedule{Base: time.Second, Cap: time.Minute},
		HintLimit:      5 * time.Minute,
		Timeouts:       lull.TimeoutsAlways,
	}
}
