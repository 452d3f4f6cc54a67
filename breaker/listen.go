package breaker

import "github.com/lullgo/lull/internal/audience"

// announce queues a change for the listeners, if there are any. The lock is held.
func (b *Breaker) announce(c Change) {
	if b.audience == nil {
		if len(b.listeners) == 0 {
			return
		}
		a := audience.Of(b.listeners)
		b.audience = &a
	}
	b.audience.Announce(c)
}

// unlock releases mu and then calls the listeners with the changes queued under it.
func (b *Breaker) unlock() {
	if b.audience == nil {
		b.mu.Unlock()
		return
	}
	b.audience.Unlock(&b.mu)
}
