// Package audience tells listeners what has happened: each of them everything, in
// order, one at a time, and outside of the lock under which it happened.
package audience

import "sync"

// An Audience is who listens, and what they have not heard yet. The lock of its owner
// guards it. The zero Audience listens to nothing.
type Audience[T any] struct {
	listeners []func(T)
	queue     []T
	telling   bool
}

// Of is an audience of those listeners, which must not be nil.
func Of[T any](listeners []func(T)) Audience[T] { return Audience[T]{listeners: listeners} }

// Announce queues what the listeners are to be told, if there are any. The lock is held.
func (a *Audience[T]) Announce(what T) {
	if len(a.listeners) > 0 {
		a.queue = append(a.queue, what)
	}
}

// Unlock releases the lock and then tells what was queued under it, and what is queued
// meanwhile; unless somebody is at it already: one goroutine tells at a time, so that
// every listener hears everything in order.
func (a *Audience[T]) Unlock(mu *sync.Mutex) {
	turn := len(a.queue) > 0 && !a.telling
	if turn {
		a.telling = true
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
			a.queue, a.telling = nil, false
			mu.Unlock()
			return
		}
		what := a.queue[0]
		a.queue = a.queue[1:]
		mu.Unlock()
		a.tell(mu, what, a.listeners)
	}
}

// tell hands it to the listeners. One that panics, or ends its goroutine, ends neither
// the round nor the delivery: both are finished on its way up.
func (a *Audience[T]) tell(mu *sync.Mutex, what T, to []func(T)) {
	returned := 0
	defer func() {
		if returned < len(to) {
			defer a.deliver(mu)
			a.tell(mu, what, to[returned+1:])
		}
	}()
	for _, l := range to {
		l(what)
		returned++
	}
}
