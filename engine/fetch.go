package engine

import (
	"time"

	"github.com/lullgo/lull/breaker"
)

// A Fetch is how many messages a consumer may fetch.
type Fetch struct {
	Most  int  // zero: none, since the circuit breaker is not closed
	Probe bool // one, to see whether it may be closed
	// Wait is after how long to ask again where Most is zero, or earlier if a message has
	// ended. Foreseen is for how long nothing will be fetched, as far as is known.
	Wait, Foreseen time.Duration
}

// unknownForeseen is Fetch.Foreseen where nobody knows.
const unknownForeseen = 10 * time.Second

// Fetch returns how many messages a consumer may fetch that wants the given number. A
// breaker that is half-open gets one at a time: those that it does not let pass would have
// to be given back. Waiting: a message is out that was fetched as a probe, or is kept for
// want of a closed breaker.
func (s *State) Fetch(now time.Duration, want int, waiting bool) Fetch {
	b := s.Breaker()
	if b == nil {
		return Fetch{Most: want}
	}
	none := Fetch{Wait: circuitPoll, Foreseen: unknownForeseen}
	switch b.State(now) {
	case breaker.Closed:
		return Fetch{Most: want}
	case breaker.HalfOpen:
		if !waiting {
			return Fetch{Most: 1, Probe: true}
		}
	case breaker.Open:
		if at := b.RetryAt(now); at > now {
			none.Wait, none.Foreseen = at-now, at-now
		}
	}
	return none
}
