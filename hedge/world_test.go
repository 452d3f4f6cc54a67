package hedge

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// A world makes calls to a service in explicit time. The first attempt of a call to
// succeed wins, and what else is under way is cancelled.
type world struct {
	r       *rand.Rand
	rate    float64              // calls a second
	latency func() time.Duration // of an attempt that is begun now
	hedger  *Hedger              // decides
	done    func(c *flown)       // nil: nobody looks

	// The service works on so many attempts at a time, in their order. Zero: on all.
	servers int
	// deaf: it does not notice that an attempt it works on is cancelled.
	deaf bool

	now    time.Duration
	calls  int
	hedges int
	asked  int // late calls
	work   time.Duration
	busy   int
	queue  []flownAttempt

	events   events
	sequence int
}

type flownAttempt struct {
	c       *flown
	attempt int
}

// flown is one call.
type flown struct {
	start  time.Duration
	flight Flight
	// by attempt
	began  []time.Duration
	over   []bool
	served []time.Duration // until when it is worked on; zero: not

	won int // attempt; -1: under way
	end time.Duration
}

type event struct {
	at      time.Duration
	order   int
	call    *flown // nil: an arrival
	attempt int    // -1: the timer
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (w *world) schedule(at time.Duration, c *flown, attempt int) {
	w.sequence++
	heap.Push(&w.events, event{at, w.sequence, c, attempt})
}

func (w *world) arrive() {
	gap := time.Duration(w.r.ExpFloat64() / w.rate * float64(time.Second))
	w.schedule(w.now+gap, nil, 0)
}

// run flies until the given time.
func (w *world) run(until time.Duration) {
	if w.sequence == 0 {
		w.arrive()
	}
	for len(w.events) > 0 && w.events[0].at < until {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		switch {
		case e.call == nil:
			w.arrive()
			w.begin()
		case e.attempt < 0:
			w.timer(e.call)
		default:
			w.land(e.call, e.attempt)
		}
	}
	w.now = until
}

func (w *world) begin() {
	w.calls++
	c := &flown{start: w.now, won: -1}
	c.flight = w.hedger.Start(w.now)
	d, ok := c.flight.Delay()
	w.send(c)
	if ok {
		w.schedule(w.now+d, c, -1)
	}
}

func (w *world) send(c *flown) {
	n := len(c.began)
	c.began, c.over, c.served = append(c.began, w.now), append(c.over, false), append(c.served, 0)
	w.queue = append(w.queue, flownAttempt{c, n})
	w.serve()
}

// serve begins what there are servers for.
func (w *world) serve() {
	for len(w.queue) > 0 && (w.servers == 0 || w.busy < w.servers) {
		next := w.queue[0]
		w.queue = w.queue[1:]
		if next.c.over[next.attempt] {
			continue // it has gone
		}
		took := w.latency()
		next.c.served[next.attempt] = w.now + took
		w.busy++
		w.work += took
		w.schedule(w.now+took, next.c, next.attempt)
	}
}

func (w *world) timer(c *flown) {
	if c.won >= 0 {
		return
	}
	w.asked++
	if w.hedger.Fire(w.now, &c.flight) != Granted {
		return
	}
	w.hedges++
	w.send(c)
	if again, ok := c.flight.Delay(); ok {
		w.schedule(w.now+again, c, -1)
	}
}

func (w *world) land(c *flown, attempt int) {
	if c.served[attempt] == 0 {
		return // it was cancelled, and the server knew
	}
	w.busy--
	defer w.serve()
	if c.over[attempt] {
		return
	}
	c.over[attempt] = true
	w.ended(c, attempt, true)
	c.won, c.end = attempt, w.now
	for i := range c.over {
		if !c.over[i] {
			w.cancel(c, i)
		}
	}
	if w.done != nil {
		w.done(c)
	}
}

func (w *world) cancel(c *flown, attempt int) {
	c.over[attempt] = true
	if c.served[attempt] > 0 && !w.deaf {
		w.busy--
		w.work -= c.served[attempt] - w.now
		c.served[attempt] = 0
	}
	w.ended(c, attempt, false)
}

func (w *world) ended(c *flown, attempt int, success bool) {
	if attempt == 0 {
		w.hedger.Done(w.now, &c.flight, success)
	} else {
		w.hedger.Release()
	}
}
