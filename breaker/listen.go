package breaker

import "github.com/lullgo/lull/internal/audience"

func newAudience(listeners []func(Change)) *audience.Audience[Change] {
	a := audience.Of(listeners)
	return &a
}

// announce queues a change for the listeners, if there are any. The lock is held.
func (b *Breaker) announce(c Change) {
	if b.audience == nil && len(b.listeners) > 0 {
		b.audience = newAudience(b.listeners)
	}
	b.audience.Announce(c)
}

// unlock releases mu, and then calls the listeners with the changes queued under it.
func (b *Breaker) unlock() { b.audience.Unlock(&b.mu) }
