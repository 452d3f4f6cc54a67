package consumers

import "sync"

// ProbeCounter counts, for each message, the failed attempts of this process that a breaker let
// pass while it was not closed. K names a message.
//
// Such an attempt shows something of the dependency, not of the message, and in a long outage
// probes alone would use up the attempts of all messages. So where a deferral is free, a probe is
// no attempt (engine.Call.Handled). But a message may itself make the dependency fail. So after as
// many probes as the policy allows attempts they count, in each process.
//
// The zero ProbeCounter has counted nothing. It may be used concurrently.
type ProbeCounter[K comparable] struct {
	mu     sync.Mutex
	counts map[K]int
}

// maxCounted is how many messages are counted; probes with further ones are attempts.
const maxCounted = 10_000

// Free reports whether another probe with the message is no attempt, and then counts it. most is
// how many attempts the policy allows.
func (p *ProbeCounter[K]) Free(message K, most int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, known := p.counts[message]
	if n >= most || !known && len(p.counts) >= maxCounted {
		return false
	}
	if p.counts == nil {
		p.counts = map[K]int{}
	}
	p.counts[message] = n + 1
	return true
}

// Forget forgets all messages. It is called when the circuit has closed: something was handled.
func (p *ProbeCounter[K]) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.counts)
}
