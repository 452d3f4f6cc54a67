package lullhttp

import (
	"context"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/hedge"
)

// race is a call whose attempts may run beside one another: an exchange for each,
// so that none sees another's request, body or response.
type race struct {
	first  exchange
	others [hedge.MaxAttempts - 1]*exchange
}

func (r *race) exchange(slot int) *exchange {
	if slot == 0 {
		return &r.first
	}
	return r.others[slot-1]
}

// Attempt, Discard and Err make it a driver.Hedgeable.
func (r *race) Attempt(ctx context.Context, slot int) lull.Verdict {
	if slot > 0 {
		r.others[slot-1] = &exchange{t: r.first.t, req: r.first.req, tried: r.first.tried, attempts: slot, above: r.first.above}
	}
	return r.exchange(slot).attempt(ctx)
}

func (r *race) Discard(slot int, within time.Duration) { r.exchange(slot).discard(within) }
func (r *race) Err(slot int) error                     { return r.exchange(slot).lastError() }
