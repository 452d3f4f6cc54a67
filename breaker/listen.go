package breaker

// An audience is who is told of a breaker's changes, and what is still to tell.
type audience struct {
	listeners  []func(Change)
	queue      []Change
	delivering bool
}

// announce queues a change for the listeners, if there are any. The lock is held.
func (b *Breaker) announce(c Change) {
	if b.audience == nil {
		if len(b.listeners) == 0 {
			return
		}
		b.audience = &audience{listeners: b.listeners}
	}
	b.audience.queue = append(b.audience.queue, c)
}

// unlock releases mu and then tells the listeners what was queued under it,
// unless somebody is at it already: one goroutine delivers at a time, so that
// every listener hears of the changes in their order.
func (b *Breaker) unlock() {
	a := b.audience
	turn := a != nil && len(a.queue) > 0 && !a.delivering
	if turn {
		a.delivering = true
	}
	b.mu.Unlock()
	if turn {
		b.deliver()
	}
}

// deliver empties the queue, including what is queued meanwhile.
func (b *Breaker) deliver() {
	a := b.audience
	for {
		b.mu.Lock()
		if len(a.queue) == 0 {
			a.queue, a.delivering = nil, false
			b.mu.Unlock()
			return
		}
		c := a.queue[0]
		a.queue = a.queue[1:]
		b.mu.Unlock()
		b.tell(c, a.listeners)
	}
}

// tell hands c to the listeners. One that panics, or ends its goroutine, ends
// neither the round nor the delivery: both are finished on its way up.
func (b *Breaker) tell(c Change, to []func(Change)) {
	returned := 0
	defer func() {
		if returned < len(to) {
			defer b.deliver()
			b.tell(c, to[returned+1:])
		}
	}()
	for _, l := range to {
		l(c)
		returned++
	}
}
