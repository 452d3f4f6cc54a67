package backoff

import "time"

// A Func is a schedule as a function: Schedule.Delay is one, and so may be
// anything of the user's own that keeps to its contract. It must be safe for
// concurrent use, and it is only as pure as its author makes it.
type Func func(retry int, prev time.Duration, rnd func() uint64) time.Duration
