package rivals

import (
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/hedge"
)

// loops are the recommended policy, which all others are compared with, and retry loops that people write by hand.
func loops() []Preset {
	return []Preset{{
		Name: "lull", Title: "the recommended policy, which is the zero one",
		Source: "this module",
		Reads:  everything,
	}, {
		Name: "hedged", Title: "the zero policy, but with hedging for its retries",
		Source: "this module",
		Note:   "For operations that can be carried out twice. It needs calls enough to learn from: some twenty in half a minute in each process.",
		Policy: lull.Policy{Hedge: hedge.Config{Attempts: 2}}, Reads: everything,
	}, {
		Name: "none", Title: "one attempt, no circuit breaker",
		Source: "a call without a retry",
		Note:   "The measure of recovery: what takes longer than this to come back is kept down by its own clients.",
		Policy: attemptsAndWaits(1, atOnce),
	}, {
		Name: "naive-3", Title: "three retries at once",
		Source: "for range 4 { if err = call(); err == nil { break } }",
		Note:   "In a total outage the load is four times the normal one, and nothing spreads it.",
		Policy: attemptsAndWaits(4, atOnce), Reads: Reads{Timeouts: true},
	}, {
		Name: "fixed-100ms", Title: "three retries, one every 100 ms",
		Source: "for range 4 { if err = call(); err == nil { break }; time.Sleep(100 * time.Millisecond) }",
		Note:   "Callers that failed together return together. Keeps an overloaded service down above a quarter of its capacity, as any policy with three retries and no budget does.",
		Policy: attemptsAndWaits(4, every(100*ms)), Reads: Reads{Timeouts: true},
	}, {
		Name: "full-jitter", Title: "three retries, full jitter from 100 ms, no budget",
		Source: `Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015; base and cap as in this module's simulations`,
		Note:   "What most articles recommend. It spreads retries and takes none away: after a stall longer than the attempt's timeout it keeps a service down above a quarter of its capacity, as fixed waits do. Unlike most such loops it heeds what the server says.",
		Policy: fullJitter(100 * ms), Reads: everything,
	}}
}

// fullJitter is three retries with full jitter below base, twice that and four
// times that.
func fullJitter(base time.Duration) lull.Policy {
	return attemptsAndWaits(4, backoff.Schedule{Base: base, Cap: 10 * second})
}
