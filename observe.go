package lull

import (
	"context"

	"github.com/lullgo/lull/event"
)

// An Event is something that happened to a call or a dependency. Its kinds are in package
// event.
type Event = event.Event

// An Observer learns of events as they happen.
type Observer = event.Observer

// observers are several, which learn of each event in order.
type observers []Observer

func (o observers) Observe(ctx context.Context, e Event) {
	for _, each := range o {
		each.Observe(ctx, e)
	}
}
