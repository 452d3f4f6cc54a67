package engine

import (
	"time"

	"github.com/lullgo/lull/breaker"
)

// A Fetch is how many messages a consumer may fetch.
type Fetch struct {
	Most  int  // zero: none, since the circuit breaker is not closed
	Probe bool // one, to see whether it may be closed
	// Wait is when to ask again if Most is zero; earlier if a message has ended.
	// Foreseen is how long nothing will be fetched, as far as is known.
	Wait, Foreseen time.Duration
}

const unknownForeseen = 10 * time.Second

// Fetch returns how many messages a consumer may fetch that wants the given number. A half-open
// breaker gets one at a time: it would refuse the others. waiting: a message was fetched as a
// probe, or is kept until the circuit closes.
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
