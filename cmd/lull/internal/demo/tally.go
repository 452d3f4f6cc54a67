package demo

import (
	"context"
	"sync/atomic"
)

// A callTally counts the requests of one call, for its lane. It travels in the
// context, so that whoever makes the call need not know of it.
type callTally struct {
	lane *lane
	sent atomic.Int32
}

type tallyKey struct{}

// tallyOf is the tally of the call that ctx belongs to; nil if it has none.
func tallyOf(ctx context.Context) *callTally {
	t, _ := ctx.Value(tallyKey{}).(*callTally)
	return t
}

// send counts a request that is being sent.
func (t *callTally) send() {
	if t.sent.Add(1) > 1 {
		t.lane.extra.add(t.lane.clock())
	}
}

// hold counts a request that the client would have sent but for its policy.
func (t *callTally) hold() { t.lane.held.add(t.lane.clock()) }
