package queue

import "sync/atomic"

// Counts are how many events there were of each kind, since the Consumer was made. It is
// plain, comparable data, for metrics that are read from time to time. Every delivery that
// has ended is counted once, in one of the first seven fields.
type Counts struct {
	Acked        int64 // EventSettled, by outcome
	Retried      int64
	Deferred     int64
	DeadLettered int64
	Dropped      int64

	SettleFailed  int64 // the other kinds of event
	LeaseLost     int64
	RetriedHere   int64
	ReceiveFailed int64
	Paused        int64
	Resumed       int64
}

// Counts returns the counts up to now. They are read one after the other, not at one moment.
func (c *Consumer) Counts() Counts {
	n := &c.counts
	return Counts{
		Acked: n.outcomes[Ack].Load(), Retried: n.outcomes[Retry].Load(), Deferred: n.outcomes[Defer].Load(),
		DeadLettered: n.outcomes[DeadLetter].Load(), Dropped: n.outcomes[Drop].Load(),
		SettleFailed: n.kinds[EventSettleFailed].Load(), LeaseLost: n.kinds[EventLeaseLost].Load(),
		RetriedHere: n.kinds[EventRetriedHere].Load(), ReceiveFailed: n.kinds[EventReceiveFailed].Load(),
		Paused: n.kinds[EventPaused].Load(), Resumed: n.kinds[EventResumed].Load(),
	}
}

type counts struct {
	kinds    [len(eventNames)]atomic.Int64
	outcomes [Drop + 1]atomic.Int64 // of EventSettled
}

func (n *counts) add(e Event) {
	n.kinds[e.Kind].Add(1)
	if e.Kind == EventSettled {
		n.outcomes[e.Outcome].Add(1)
	}
}
