package breaker

// unlock releases mu and then tells the listeners what was queued under it,
// unless somebody is at it already: one goroutine delivers at a time, so that
// every listener hears of the changes in their order.
func (b *Breaker) unlock() {
	turn := len(b.queue) > 0 && !b.delivering
	if turn {
		b.delivering = true
	}
	b.mu.Unlock()
	if turn {
		b.deliver()
	}
}

// deliver empties the queue, including what is queued meanwhile.
func (b *Breaker) deliver() {
	for {
		b.mu.Lock()
		if len(b.queue) == 0 {
			b.queue, b.delivering = nil, false
			b.mu.Unlock()
			return
		}
		c := b.queue[0]
		b.queue = b.queue[1:]
		b.mu.Unlock()
		b.tell(c, b.listeners)
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
