package rivals

import (
	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
)

// Reads sets what a client takes into account when an attempt fails. The zero Reads
// takes only the failure into account.
type Reads struct {
	Timeouts   bool // an attempt that ran out of time is worth another
	RetryAfter bool // it waits for as long as the server asks
	DontRetry  bool // it does not repeat what the server asks not to repeat
	RateLimits bool // it distinguishes refusals for being too fast (429) from other failures
}

// everything is all that lull takes into account.
var everything = Reads{Timeouts: true, RetryAfter: true, DontRetry: true, RateLimits: true}

// Verdict returns the client's verdict, where v is that of a client that takes everything
// into account. A driver that plays the client passes the result to the engine.
func (r Reads) Verdict(v lull.Verdict) lull.Verdict {
	if !r.RetryAfter {
		v.After = 0
	}
	switch v.Kind {
	case lull.KindOverloaded:
		if !r.DontRetry {
			v.Kind = lull.KindTransient
		}
	case lull.KindRateLimited:
		if !r.RateLimits {
			v.Kind = lull.KindTransient
		}
	case lull.KindTransient:
		if !r.Timeouts && v.Code == engine.CodeTimeout {
			v.Kind = lull.KindPermanent
		}
	}
	return v
}
