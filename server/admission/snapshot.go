package admission

import (
	"time"

	"github.com/lullgo/lull/internal/choice"
)

// EventKind is the kind of an Event.
type EventKind uint8

const (
	// Admission: work may begin.
	Admission EventKind = iota
	// Refusal: it must not begin. Decision has the reason.
	Refusal
	// Departure: it has ended.
	Departure
)

var kindNames = [...]string{"admission", "refusal", "departure"}

// String returns the kind in lower case, such as "refusal".
func (k EventKind) String() string { return choice.Name("kind", kindNames[:], k) }

// An Event is a change in the state of one request, by value.
type Event struct {
	Kind     EventKind
	At       time.Duration // in the driver's time
	Priority Priority
	Class    AttemptKind
	Decision Decision      // of an Admission or a Refusal
	Waited   time.Duration // in the queue
	Took     time.Duration // of a Departure: since its admission
	Result   WorkResult    // of a Departure
}

func (t *Ticket) event(now time.Duration) Event {
	e := Event{
		At: now, Priority: Sheddable + Priority(t.rank/2), Class: t.class,
		Decision: t.decision, Waited: t.waited,
	}
	if t.decision.Outcome == Refused {
		e.Kind = Refusal
	}
	return e
}

// counts are totals since the controller was made.
type counts struct {
	arrived, admitted [classes]uint64
	refused           [reasons]uint64
	departed          [Unmeasured + 1]uint64
	waited            time.Duration
}

// A Snapshot is the state of a Controller at a moment. Counts are totals since it was made.
type Snapshot struct {
	Limit    int  // of requests in flight, at present
	InFlight int  // admitted and not departed
	Waiting  int  // in the queue
	Pressed  bool // requests have waited, or were refused, for longer than MaxWait

	MeanTime time.Duration // from admission to departure, of the recent ones that were Done
	WaitSum  time.Duration // of all that were admitted

	counts counts
}

// Snapshot returns the state of c at now.
func (c *Controller) Snapshot(now time.Duration) Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Snapshot{
		Limit: c.boundedLimit(c.knee.limit), InFlight: c.inFlight, Waiting: c.queue.len, Pressed: c.isPressed(max(now, c.now)),
		MeanTime: c.times.mean, WaitSum: c.counts.waited, counts: c.counts,
	}
}

// Arrived returns how many requests of a class came.
func (s Snapshot) Arrived(c AttemptKind) uint64 { return at(s.counts.arrived[:], int(c)) }

// Admitted returns how many requests of a class were admitted.
func (s Snapshot) Admitted(c AttemptKind) uint64 { return at(s.counts.admitted[:], int(c)) }

// Refused returns how many requests were refused for the given reason.
func (s Snapshot) Refused(r RefusalReason) uint64 { return at(s.counts.refused[:], int(r)) }

// Departed returns how many ended with the given result.
func (s Snapshot) Departed(r WorkResult) uint64 { return at(s.counts.departed[:], int(r)) }

func at(totals []uint64, i int) uint64 {
	if i < len(totals) {
		return totals[i]
	}
	return 0
}
