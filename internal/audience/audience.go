// Package audience delivers events to listeners: every event to each of them, in order,
// one at a time, and outside of the lock under which it happened.
package audience

import (
	"slices"
	"sync"
)

// An Audience has the listeners, and the events that are not delivered yet. The lock of its
// owner guards it. The zero Audience and nil have no listeners.
type Audience[T any] struct {
	listeners  []func(T)
	queue      []T
	delivering bool
}

// Of returns an audience of those listeners. Nil ones are left out.
func Of[T any](listeners []func(T)) Audience[T] {
	return Audience[T]{listeners: slices.DeleteFunc(slices.Clone(listeners), func(l func(T)) bool { return l == nil })}
}

// Announce queues an event for the listeners, if there are any. The lock is held.
func (a *Audience[T]) Announce(what T) {
	if a != nil && len(a.listeners) > 0 {
		a.queue = append(a.queue, what)
	}
}

// Unlock releases the lock, and then delivers the queued events, unless another goroutine
// is delivering: one does at a time, so that every listener gets all events in order.
func (a *Audience[T]) Unlock(mu *sync.Mutex) {
	turn := a != nil && len(a.queue) > 0 && !a.delivering
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

// callListeners calls all listeners. If one panics, or ends its goroutine, the others are
// still called, and the queue is delivered, before the panic continues.
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
