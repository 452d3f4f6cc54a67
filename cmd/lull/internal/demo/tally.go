package demo

import (
	"context"
	"sync/atomic"
)

// A requestTally counts the requests of one call, for its lane. It is in the context, so that
// callers need not know of it.
type requestTally struct {
	lane *lane
	sent atomic.Int32
}

type tallyKey struct{}

// tallyOf returns the tally of the call that ctx belongs to, nil if it has none.
func tallyOf(ctx context.Context) *requestTally {
	t, _ := ctx.Value(tallyKey{}).(*requestTally)
	return t
}

func (t *requestTally) countSent() {
	if t.sent.Add(1) > 1 {
		t.lane.count(extra, t.lane.clock())
	}
}

// hold counts a request that the client's policy did not send.
func (t *requestTally) countHeld() { t.lane.count(held, t.lane.clock()) }
