package sim

import (
	"context"
	"errors"
	"time"
	"unsafe"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/lab/sim/internal/prefetch"
)

// A Contender is a policy under comparison, with the wiring that cannot be data.
type Contender struct {
	Name    string
	Title   string // one line for people; may be empty
	Policy  lull.Policy
	Options []lull.Option `json:"-"`
	// Verdict, if not nil, returns the verdict of this client about a failure for which lull
	// has the given one. Clients that are played by the engine read less of an answer than
	// lull does, or read it differently.
	Verdict func(lull.Verdict) lull.Verdict `json:"-"`
	// Holds: of messages, retries are made by the handler, which sleeps with the message in
	// hand. Attempts are those of one delivery. The lease is not extended: a message that is
	// not handled when it ends is a dead letter.
	Holds bool
}

// None is the contender that makes one attempt and knows no breaker.
func None() Contender {
	c := Contender{Name: "none", Title: "one attempt, no retry"}
	c.Policy.Attempts = 1
	c.Policy.Breaker.Off = true
	c.Policy.Budget.Unlimited = true
	return c
}

// Options of a run.
type Options struct {
	// Seed of all that is left to chance. The same seed gives the same result, on
	// any machine.
	Seed uint64
	// Named are the policies that fleets and hops may name beside the contender
	// itself. "none" (a single attempt, no breaker) needs not be among them.
	Named []Contender
	// StopAfterRecovery ends a run once things have been normal for so long. Zero:
	// a run lasts to the Horizon.
	StopAfterRecovery time.Duration
	// InTime is the longest that a call may take to be counted in Totals.InTime, and as a success by Result.Recovery. Zero: none is
	// counted, and none is too late.
	InTime time.Duration
	// Message, if not nil, is called with each message that is handled or dead, in the order
	// of time, on the goroutine of Run.
	Message func(MessageEnd)
	// Attempt, if not nil, is called with each attempt that ends, in the order of time, on the goroutine of Run. An attempt has
	// no end if its process is killed, or if it is in flight when the run ends.
	Attempt func(AttemptEnd)
	// Served, if not nil, is called with each attempt that a service has worked on or turned away before the end, on the goroutine
	// of Run, in no order.
	Served func(ServedEnd)
	// Progress, if not nil, is called from time to time with how far a run has come, on the
	// goroutine of Run.
	Progress func(Progress)
}

// Progress is how far a run has come.
type Progress struct {
	Now, Horizon time.Duration // virtual
	Events       int64
}

// Run simulates a scenario under the policy of one contender. If ctx ends, it returns what it has, marked as
// Interrupted, with the context's error.
func Run(ctx context.Context, s Scenario, c Contender, o Options) (Result, error) {
	if err := s.Validate(); err != nil {
		return Result{}, err
	}
	w, err := newWorld(&s, c, o)
	if err != nil {
		return Result{}, err
	}
	w.rec.stopAfter, w.rec.inTime = o.StopAfterRecovery, o.InTime
	err = w.run(ctx, o)
	r := w.rec.result(w.now)
	for _, t := range w.topics {
		r.Topics = append(r.Topics, t.tally.result(w.now))
	}
	r.Contender, r.Seed, r.Totals.Events = c.Name, o.Seed, w.handled
	if errors.Is(err, errEnough) {
		return r, nil
	}
	r.Interrupted = err != nil
	return r, err
}

var errEnough = errors.New("enough was seen")

func (w *world) run(ctx context.Context, o Options) error {
	const every = 1 << 14
	ahead := 0
	for {
		if w.handled%every == 0 {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			if o.Progress != nil {
				o.Progress(Progress{Now: w.now, Horizon: w.scenario.Horizon, Events: w.handled})
			}
		}
		w.handled++
		if s := w.nextStream; s != nil {
			if at, any := w.events.Next(); !any || int64(s.at) <= at {
				if s.at >= w.scenario.Horizon {
					w.nextStream = nil
					continue
				}
				w.now = s.at
				s.arrive(w)
				continue
			}
		}
		if ahead--; ahead <= 0 {
			ahead = w.lookAhead()
		}
		e, any := w.events.Pop()
		if !any || e.At > int64(w.scenario.Horizon) {
			w.now = w.scenario.Horizon
			return nil
		}
		w.now = time.Duration(e.At)
		if !w.handle(e.Data) {
			return errEnough
		}
	}
}

// batch is for how many events lookAhead asks at a time.
const batch = 16

// lookAhead prefetches memory, and returns for how many events it did. For the second batch of the next events it prefetches
// their flights or jobs. For the first batch, whose flights came with the last call, it prefetches what the processes remember.
// With millions of clients none of this is in a cache, and waiting for it would be most of the work.
func (w *world) lookAhead() int {
	if w.flights.used < 1<<13 {
		return batch
	}
	next := w.events.Upcoming(2 * batch)
	ask := w.prefetched[:0]
	for i, e := range next {
		k := uint32(e.Data)
		switch kind := int(e.Data >> kindShift); {
		case kind >= eventFault:
		case kind >= eventReach:
			if i >= batch {
				ask = append(ask, unsafe.Pointer(w.jobs.at(k)))
			}
		case i >= batch:
			ask = append(ask, unsafe.Pointer(w.flights.at(k)))
		case w.remembers:
			ask = append(ask, unsafe.Pointer(w.flights.at(k).call.State()))
		}
	}
	prefetch.Lines(ask)
	return batch
}

// The kinds of events. What they are about, a place in a slab or an index, stands
// in the low half of Event.Data, and a generation between the two: an event whose
// place has moved on meanwhile is stale.
const (
	eventWake        = iota // flight: the wait before its next attempt is over
	eventTimeout            // flight: its attempt has taken too long
	eventAnswer             // flight: its attempt got flight.verdict
	eventAdmitted           // flight: there is room for it under the concurrency limit
	eventLeaveLine          // flight: it has stood in line for long enough
	eventCallAgain          // flight: the user comes back, or the caller has thought
	eventReach              // job: the request reaches the service
	eventWorkDone           // job: the work is done
	eventWrite              // job: the second half of an attempt on a contended service
	eventResponse           // job: the response reaches the caller
	eventGateDecided        // job: the gate has made up its mind
	eventGateOverdue        // job: it has stood at the gate for long enough
	eventFailure            // job: it gets job.verdict

	eventFault         // service, host: a fault begins or ends
	eventStepEnd       // a step of the time series ends
	eventProduce       // topic: the next message is sent
	eventHandOut       // topic: a message can be handed out
	eventFetchAgain    // consumer: it asks again whether it may fetch
	eventResume        // delivery: the wait before its next try is over
	eventKill          // consumer: its process is killed
	eventStartConsumer // consumer: its process begins again
	eventExpireIdle    // pool: connections have had no work for too long
	eventRestart       // host; the generation is its service: it is up again
	eventMemoryFull    // the same: messages may have filled its memory
	eventBufferFull    // process; the generation is its origin: its buffer may be full
	eventDial          // connection: its request reaches the service
	eventDialled       // connection: it is there, for its process
	eventDialRefused   // connection: the process learns that there is none
	eventDialOverdue   // connection: it was dialled for long enough
	eventHungUp        // connection: the service learns that the process has closed it
)

const (
	genBits   = 27
	genMask   = 1<<genBits - 1
	kindShift = 32 + genBits
)

func (w *world) at(t time.Duration, kind int, gen, i uint32) {
	w.events.Push(int64(t), uint64(kind)<<kindShift|uint64(gen&genMask)<<32|uint64(i))
}

// handle handles one event. It reports whether the run continues.
func (w *world) handle(d uint64) bool {
	gen, i := uint32(d>>32)&genMask, uint32(d)
	same := func(now uint32) bool { return now&genMask == gen }
	switch kind := int(d >> kindShift); kind {
	case eventStepEnd:
		w.endStep()
		return w.rec.moreToSee(w.now)
	case eventFault:
		w.services[i].changeFault(w, int(gen))
	case eventReach, eventWorkDone, eventWrite, eventResponse, eventGateDecided, eventGateOverdue, eventFailure:
		j := w.jobs.at(i)
		if !same(j.gen) {
			return true
		}
		switch kind {
		case eventReach:
			w.jobArrives(i, j)
		case eventWorkDone:
			w.workDone(i, j)
		case eventWrite:
			w.writeContended(i, j)
		case eventResponse:
			w.responseArrives(i, j)
		case eventGateDecided:
			w.gateDecided(i, j)
		case eventGateOverdue:
			w.gateOverdue(i, j)
		case eventFailure:
			w.failNow(i, j)
		}
	case eventProduce:
		w.produce(w.topics[i])
	case eventHandOut:
		t := w.topics[i]
		if t.due == w.now {
			t.due = never
		}
		w.handOutMessages(t)
	case eventFetchAgain:
		if c := w.consumers[i]; same(c.gen) {
			w.fetchMessages(c)
		}
	case eventResume:
		if x := w.deliveries.at(i); same(x.gen) {
			w.resumeDelivery(i, x)
		}
	case eventKill:
		w.killConsumer(w.consumers[i])
	case eventStartConsumer:
		w.startConsumer(w.consumers[i])
	case eventExpireIdle:
		w.expireIdle(w.pools[i])
	case eventRestart:
		w.restartHost(w.services[gen], i)
	case eventMemoryFull:
		w.memoryFull(w.services[gen], i)
	case eventBufferFull:
		w.bufferFull(w.origins[gen], i)
	case eventDial, eventDialled, eventDialRefused, eventDialOverdue, eventHungUp:
		if c := w.conns.at(i); same(c.gen) {
			w.continueConnection(kind, i, c)
		}
	default:
		if f := w.flights.at(i); same(f.gen) {
			w.continueFlight(kind, i, f)
		}
	}
	return true
}

func (w *world) endStep() {
	var queued, busy int
	for _, s := range w.services {
		for h := range s.hosts {
			queued += s.hosts[h].queue.len() + s.hosts[h].atGate
			busy += s.hosts[h].busy
		}
	}
	w.rec.endStep(w.now, queued, busy, w.openBreakers)
	for _, t := range w.topics {
		t.tally.Backlog = append(t.tally.Backlog, float64(t.tally.Sent-t.tally.Handled-t.tally.Dead))
	}
	if next := w.now + w.scenario.step(); next <= w.scenario.Horizon {
		w.at(next, eventStepEnd, 0, 0)
	}
}

// Observe counts open breakers; a world is the observer of its dependencies.
func (w *world) Observe(_ context.Context, e lull.Event) {
	if e.Kind != event.CircuitChanged || e.Circuit.MetricsOnly {
		return
	}
	const closed = 0
	switch {
	case e.Circuit.From == closed:
		w.openBreakers++
	case e.Circuit.To == closed:
		w.openBreakers--
	}
}
