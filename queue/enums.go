package queue

import (
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/choice"
)

// A MessageOutcome is what happens to a delivery.
type MessageOutcome = engine.MessageOutcome

const (
	Ack        = engine.Ack        // it was handled
	Retry      = engine.Retry      // it failed, and is to be delivered again after a while
	Defer      = engine.Defer      // it was not tried, or this is not to count, and is to be delivered again after a while
	DeadLetter = engine.DeadLetter // it will not be tried again, and is put where somebody can look at it
	Drop       = engine.Drop       // it will not be tried again, and nobody needs to look at it
)

// Order is the order in which a broker hands out messages.
type Order uint8

const (
	// Unordered: about the order in which they were sent.
	Unordered Order = iota
	// PerGroup: messages of one group one after the other, in the order in which they
	// were sent.
	PerGroup
	// Total: all messages are of one group.
	Total
)

var orderNames = [...]string{"unordered", "per-group", "total"}

// String is the order in lower case, such as "per-group".
func (o Order) String() string { return choice.Name("order", orderNames[:], o) }
