// Package audience delivers events to listeners: every event to each of them, in order,
// one at a time, and outside of the lock under which it happened.
package audience

import "sync"

// An Audience has the listeners, and the events that are not delivered yet. The lock of
// its owner guards it. The zero Audience has no listeners.
type Audience[T any] struct {
	listeners  []func(T)
	queue      []T
	delivering bool
}

// Of returns an audience of those listeners, which must not be nil.
func Of[T any](listeners []func(T)) Audience[T] { return Audience[T]{listeners: listeners} }

// Announce queues an event for the listeners, if there are any. The lock is held.
func (a *Audience[T]) Announce(what T) {
	if len(a.listeners) > 0 {
		a.queue = append(a.queue, what)
	}
}

// Unlock releases the lock. Then it delivers what was queued under it, and what is queued
// meanwhile, unless another goroutine is delivering. One goroutine delivers at a time, so
// that every listener gets all events in order.
func (a *Audience[T]) Unlock(mu *sync.Mutex) {
	turn := len(a.queue) > 0 && !a.delivering
	if turn {
		a.delivering = true
	}
	mu.Unlock()
	if turn {
		a.deliver(mu)
	}
}

func (a *Audience[T]) deliver(mu *sync.Mutex) {
	for {
		mu.Lock()
		if len(a.queue) == 0 {
			a.queue, a.delivering = nil, false
			mu.Unlock()
			return
		}
		what := a.queue[0]
		a.queue = a.queue[1:]
		mu.Unlock()
		a.callListeners(mu, what, a.listeners)
	}
}

// callListeners calls all listeners. If one panics, or ends its goroutine, the others are still
// called, and the rest of the queue is delivered, before the panic continues.
func (a *Audience[T]) callListeners(mu *sync.Mutex, what T, to []func(T)) {
	returned := 0
	defer func() {
		if returned < len(to) {
			defer a.deliver(mu)
			a.callListeners(mu, what, to[returned+1:])
		}
	}()
	for _, l := range to {
		l(what)
		returned++
	}
}
