package backoff

import "time"

// A Func is a schedule as a function, such as Schedule.Delay. It must be safe for
// concurrent use.
type Func func(retry int, prev time.Duration, rnd func() uint64) time.Duration
