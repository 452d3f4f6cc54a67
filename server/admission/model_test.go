package admission

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

const ms = time.Millisecond

// world is a server of so many workers, with a queue inside that nobody refuses
// anything, behind a controller; and its callers. All in virtual time.
type world struct {
	c       *Controller // nil: everything is let in
	workers int
	service func(*rand.Rand) time.Duration // of one request
	slow    func(now time.Duration) float64
	// broken: more requests in hand than workers fail after so long, instead of waiting.
	broken time.Duration

	rate     func(now time.Duration) float64 // calls a second
	patience time.Duration                   // of an attempt; 0: any
	deadline bool                            // attempts carry it
	attempts int                             // that a call makes at most; 0: 1
	obeys    bool                            // callers follow the advice not to retry
	priority func(*rand.Rand) Priority
	cached   float64 // share of the attempts that are answered after a millisecond, without a worker

	rng    *rand.Rand
	now    time.Duration
	events events
	busy   int
	inside []*attempt // waiting for a worker
	seq    int

	result
}

// result counts the calls that began after `from`.
type result struct {
	from        time.Duration
	calls, sent int
	good        int             // calls that succeeded in time
	wasted      int             // work done for callers that had gone
	took        []time.Duration // attempts that were admitted and served, from arrival
	waits       []time.Duration // in the controller's queue
	byPriority  [priorities]struct{ calls, good int }
	limits      []int
}

type call struct {
	attempt  int
	priority Priority
	done     bool
	counted  bool
}

type attempt struct {
	Ticket
	w        *world
	call     *call
	arrived  time.Duration
	started  time.Duration
	finished bool // its caller knows, or waits no longer
}

type event struct {
	at  time.Duration
	seq int
	do  func()
}
type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

func (w *world) at(t time.Duration, do func()) {
	w.seq++
	heap.Push(&w.events, event{t, w.seq, do})
}

func (w *world) run(seed uint64, until time.Duration) {
	w.rng = rand.New(rand.NewPCG(seed, 1))
	if w.c != nil {
		w.c.random = w.rng.Uint64
	}
	w.at(0, w.arrivals)
	for len(w.events) > 0 && w.events[0].at <= until {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
	}
}

func (w *world) arrivals() {
	rate := w.rate(w.now)
	if rate > 0 {
		k := &call{counted: w.now >= w.from}
		if w.priority != nil {
			k.priority = w.priority(w.rng)
		}
		if k.counted {
			w.calls++
			w.byPriority[k.priority.index()].calls++
		}
		w.send(k)
	}
	w.at(w.now+time.Duration(w.rng.ExpFloat64()/max(rate, 10)*float64(time.Second)), w.arrivals)
}

func (w *world) send(k *call) {
	k.attempt++
	a := &attempt{w: w, call: k, arrived: w.now}
	a.Settled = func(_ *Ticket, d Decision) { a.decided(d) }
	if k.counted {
		w.sent++
	}
	r := Request{Priority: k.priority, Attempt: k.attempt}
	if w.patience > 0 {
		if w.deadline {
			r.Deadline = w.now + w.patience
		}
		w.at(w.now+w.patience, func() {
			if !a.finished {
				a.end(false, Decision{})
				if w.deadline && w.c != nil { // a caller that hangs up is noticed
					w.c.Leave(w.now, &a.Ticket)
				}
			}
		})
	}
	if w.c == nil {
		a.work()
		return
	}
	switch d := w.c.Arrive(w.now, r, &a.Ticket); d.Outcome {
	case Queued:
		w.at(a.Until, func() {
			if d, left := w.c.Leave(w.now, &a.Ticket); left {
				a.decided(d)
			}
		})
	default:
		a.decided(d)
	}
}

func (a *attempt) decided(d Decision) {
	w := a.w
	if d.Outcome == Refused {
		if !a.finished {
			a.end(false, d)
		}
		return
	}
	if w.now >= w.from {
		w.waits = append(w.waits, w.now-a.arrived)
	}
	if w.broken > 0 && w.busy >= w.workers {
		w.at(w.now+w.broken, func() { w.c.Depart(w.now, &a.Ticket, Failed); a.end(false, Decision{}) })
		return
	}
	if w.cached > 0 && w.rng.Float64() < w.cached {
		a.started = w.now
		w.at(w.now+ms, a.answered)
		return
	}
	a.work()
}

func (a *attempt) work() {
	w := a.w
	a.started = w.now
	if w.busy >= w.workers {
		w.inside = append(w.inside, a)
		return
	}
	w.busy++
	factor := 1.0
	if w.slow != nil {
		factor = w.slow(w.now)
	}
	w.at(w.now+time.Duration(factor*float64(w.service(w.rng))), a.served)
}

func (a *attempt) served() {
	w := a.w
	w.busy--
	if len(w.inside) > 0 {
		next := w.inside[0]
		w.inside = w.inside[1:]
		started := next.started
		next.work()
		next.started = started
	}
	a.answered()
}

func (a *attempt) answered() {
	w := a.w
	r := Done
	if a.finished {
		w.wasted++
		r = Failed
	} else {
		if w.now >= w.from {
			w.took = append(w.took, w.now-a.arrived)
		}
		a.end(true, Decision{})
	}
	if w.c == nil {
		return
	}
	w.c.Depart(w.now, &a.Ticket, r)
	w.limits = append(w.limits, w.c.knee.limit)
}

// end notifies the caller.
func (a *attempt) end(ok bool, d Decision) {
	w, k := a.w, a.call
	if a.finished {
		return
	}
	a.finished = true
	switch {
	case ok:
		if !k.done && k.counted {
			w.good++
			w.byPriority[k.priority.index()].good++
		}
		k.done = true
	case k.attempt < max(w.attempts, 1) && !(w.obeys && d.DontRetry):
		pause := time.Duration(w.rng.Float64() * float64(100*ms))
		if w.obeys {
			pause += d.RetryAfter
		}
		w.at(w.now+pause, func() { w.send(k) })
	}
}

func constant(d time.Duration) func(*rand.Rand) time.Duration {
	return func(*rand.Rand) time.Duration { return d }
}

func exponential(d time.Duration) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration { return time.Duration(r.ExpFloat64() * float64(d)) }
}

// lognormal with the given mean and the sigma of the logarithm.
func lognormal(d time.Duration, sigma float64) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration {
		return time.Duration(float64(d) * math.Exp(r.NormFloat64()*sigma-sigma*sigma/2))
	}
}

func always(rate float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return rate }
}

func percentile(d []time.Duration, p float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	d = slices.Clone(d)
	slices.Sort(d)
	return d[max(0, int(math.Ceil(p*float64(len(d))))-1)]
}

// limited is c after evidence of overload, with a first limit.
func limited(c *Controller, limit int) *Controller {
	c.knee.close(0, 0)
	c.knee.limit = limit
	c.knee.enter(cruising, limit)
	return c
}
