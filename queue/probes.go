package queue

import (
	"sync"

	"github.com/lullgo/lull"
)

// probes are the tries of this process that a breaker let through while it was not closed,
// and that failed: how many there were of each message.
//
// Such a try tells of the dependency, not of the message. In a long outage every process
// makes one from time to time, and where there are few messages and many processes, these
// alone would use up the attempts of them all. (20 processes, an outage of six hours, a
// message every 11 s: 1,500 of 2,000 messages died.) So where a deferral is free it is no
// attempt. But a message that is itself what makes the dependency fail, and the only one
// there, would be every probe for ever: after as many probes as the policy allows
// attempts they count, in each process.
type probes struct {
	mu sync.Mutex
	of map[string]int
}

// mostProbed is of how many messages probes are kept: more are attempts.
const mostProbed = 10_000

// free tells whether another probe with the message is no attempt.
func (p *probes) free(id string, most int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, known := p.of[id]
	if n >= most || !known && len(p.of) >= mostProbed {
		return false
	}
	if p.of == nil {
		p.of = map[string]int{}
	}
	p.of[id] = n + 1
	return true
}

// forget is for when the circuit has closed: something was handled.
func (p *probes) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.of)
}

// free tells whether what the last try came to, a probe of the breaker, is no attempt.
func (w *work) free(p plan) bool {
	return w.c.can.FreeDefer && (p.outcome == Retry || p.reason == lull.AttemptsExhausted.String()) && w.c.probes.free(w.d.ID, w.engine.allowed)
}
