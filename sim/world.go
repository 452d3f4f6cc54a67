package sim

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/prefetch"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/outlier"
	"github.com/lullgo/lull/sim/internal/draw"
	"github.com/lullgo/lull/sim/internal/wheel"
)

// A world is one run under way: a driver of the engine on virtual time. Whatever
// is decided about retries is decided by engine.Call; the world only keeps time,
// carries requests and counts.
type world struct {
	s        *Scenario
	now      time.Duration
	events   *wheel.Queue
	streams  []*stream
	next     *stream // the one whose arrival comes first; nil if none does
	topics   []*topic
	onEnd    func(MessageEnd) // Options.Message
	origins  []*origin
	services []*service
	flights  slab[flight]
	jobs     slab[job]
	visitors slab[visitor]

	consumers  []*consumer
	deliveries slab[delivery]
	messages   slab[message]

	// Connections, of the origins that have a pool.
	pools   []*pool
	conns   slab[conn]
	tickets slab[uint32] // of the lines of pools: a job that waits, plus one; or 0
	legs    []leg        // by job
	held    []uint32     // by flight: its connection, plus one
	dialKey uint64

	// The choice among hosts, by flight, and the randomness of it.
	visits          map[uint32]visit
	itinerary       map[uint32]*outlier.Tried // by the flight of the call
	pickKey, picked uint64
	verdicts        []lull.Verdict

	waiting  map[uint32]*place   // calls in line for room under a concurrency limit
	contests map[uint32]*contest // calls in flight whose attempts may run beside one another
	carried  map[uint64]int      // how often an operation was carried out
	rec      *recorder
	count    int64                     // events worked off
	ask      [2 * batch]unsafe.Pointer // of lookAhead
	open     int                       // processes whose breaker is not closed
	// remembers: some processes have memories of their own.
	remembers bool

	// The randomness that is handed to the engine: a hash of key and of how often
	// it was asked.
	key, asked uint64
	random     func() uint64

	// That which is handed to admission control, in the same way.
	gateKey, gateAsked uint64
	retryAfter         []int // the verdict of a refusal with a Retry-After of 1 s, 2 s, ...
}

// The kinds of events. What they are about, a place in a slab or an index, stands
// in the low half of Event.Data, and a generation between the two: an event whose
// place has moved on meanwhile is stale.
const (
	wake       = iota // flight: the wait before its next attempt is over
	timeout           // flight: its attempt has taken too long
	answer            // flight: its attempt got flight.verdict
	admitted          // flight: there is room for it under the concurrency limit
	leave             // flight: it has stood in line for long enough
	again             // flight: the user comes back, or the caller has thought
	reach             // job: the request reaches the service
	done              // job: the work is done
	write             // job: the second half of an attempt on a contended service
	back              // job: the response reaches the caller
	settled           // job: the gate has made up its mind
	overdue           // job: it has stood at the gate for long enough
	failed            // job: it gets job.verdict
	turn              // service, host: a fault begins or ends
	tick              // a step of the time series ends
	topicEvent        // topic, consumer, delivery: see handleTopic
)

const (
	genBits = 28
	genMask = 1<<genBits - 1
)

func data(kind int, gen, i uint32) uint64 {
	return uint64(kind)<<60 | uint64(gen&genMask)<<32 | uint64(i)
}

func (w *world) at(t time.Duration, kind int, gen, i uint32) {
	w.events.Push(int64(t), data(kind, gen, i))
}

// Verdicts that every world knows, by their index.
const (
	verdictOK = iota
	verdictTimeout
	verdictRefused // connection refused
	verdictReset   // connection reset
	verdictError   // 503 without a hint
	verdictStop    // 503, and "don't retry"
	verdictConflict
	verdictNoPort      // no local port is free
	verdictDialTimeout // no connection in time
	verdictFree        // the first that belongs to a service
)

func newWorld(s *Scenario, c Contender, o Options) (*world, error) {
	w := &world{s: s, waiting: map[uint32]*place{}, contests: map[uint32]*contest{}, carried: map[uint64]int{}, visits: map[uint32]visit{}, itinerary: map[uint32]*outlier.Tried{}}
	w.random = w.draw
	w.dialKey = draw.Mix(o.Seed, 1<<40)
	w.rec = newRecorder(s)
	w.events = wheel.New(1 << 10)
	named := map[string]Contender{"": c}
	for _, n := range append([]Contender{None()}, o.Named...) {
		named[n.Name] = n
	}
	named[c.Name] = c
	w.onEnd = o.Message
	b := &builder{w: w, named: named, seed: o.Seed, services: map[string]*service{}}
	b.verdicts = []lull.Verdict{
		verdictOK:       {Kind: lull.KindSuccess},
		verdictTimeout:  lull.Classify(context.DeadlineExceeded),
		verdictRefused:  lull.Classify(syscall.ECONNREFUSED),
		verdictReset:    lull.Classify(syscall.ECONNRESET),
		verdictError:    lullhttp.ClassifyStatus(503),
		verdictStop:     {Kind: lull.KindOverloaded, Code: "503"},
		verdictConflict: {Kind: lull.KindTransient, Code: "conflict"},

		verdictNoPort:      lull.Classify(&net.OpError{Op: "dial", Err: syscall.EADDRNOTAVAIL}),
		verdictDialTimeout: lull.Classify(&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}),
	}
	if err := b.build(); err != nil {
		return nil, err
	}
	w.at(s.step(), tick, 0, 0)
	return w, nil
}

// None is the contender that makes one attempt and knows no breaker.
func None() Contender {
	c := Contender{Name: "none", Title: "one attempt, no retry"}
	c.Policy.Attempts = 1
	c.Policy.Breaker.Off = true
	c.Policy.Budget.Unlimited = true
	return c
}

// draw is the engine's source of randomness.
func (w *world) draw() uint64 {
	w.asked++
	return draw.Mix(w.key, w.asked)
}

// seedFor makes ready the randomness for what the engine decides next, so that it
// depends on the call, its attempt, and whether that is still to begin, not on the
// order of events.
func (w *world) seedFor(f *flight, before bool) {
	w.key, w.asked = f.key, uint64(f.call.Attempts())<<8
	if before {
		w.asked |= 1 << 7
	}
}

var errEnough = errors.New("enough was seen")

// run works off events until the horizon.
func (w *world) run(ctx context.Context, o Options) error {
	const every = 1 << 14
	ahead := 0
	for {
		if w.count%every == 0 {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			if o.Progress != nil {
				o.Progress(Progress{Now: w.now, Horizon: w.s.Horizon, Events: w.count})
			}
		}
		w.count++
		if s := w.next; s != nil {
			if at, any := w.events.Next(); !any || int64(s.at) <= at {
				if s.at >= w.s.Horizon {
					w.next = nil
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
		if !any || e.At > int64(w.s.Horizon) {
			w.now = w.s.Horizon
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

// lookAhead asks for the memory of the events that come next but so many: the
// flights, and, if processes have memories of their own, those of the events
// before them, whose flights were asked for the last time. With millions of
// clients each lies where no cache has it, and to wait for one after the other
// would be most of the work. It returns for how many events it did so.
func (w *world) lookAhead() int {
	if w.flights.used < 1<<13 {
		return batch
	}
	next := w.events.Upcoming(2 * batch)
	ask := w.ask[:0]
	for i, e := range next {
		k := uint32(e.Data)
		switch kind := int(e.Data >> 60); {
		case kind >= tick || kind == turn:
		case kind >= reach:
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

// handle works off one event. It reports whether to continue.
func (w *world) handle(d uint64) bool {
	gen, i := uint32(d>>32)&genMask, uint32(d)
	switch kind := int(d >> 60); kind {
	case tick:
		w.tick()
		return w.rec.more(w.now)
	case turn:
		w.services[i].turn(w, int(gen))
	case topicEvent:
		w.handleTopic(gen, i)
	case reach, done, write, back, settled, overdue, failed:
		j := w.jobs.at(i)
		if j.gen&genMask != gen {
			return true
		}
		switch kind {
		case reach:
			w.reach(i, j)
		case done:
			w.done(i, j)
		case write:
			w.write(i, j)
		case back:
			w.reply(i, j)
		case settled:
			w.settle(i, j)
		case overdue:
			w.overdue(i, j)
		case failed:
			w.respond(i, j, int(j.verdict), w.now)
		}
	default:
		f := w.flights.at(i)
		if f.gen&genMask != gen {
			return true
		}
		w.fly(kind, i, f)
	}
	return true
}

func (w *world) tick() {
	var queued, busy int
	for _, s := range w.services {
		for h := range s.hosts {
			queued += s.hosts[h].queue.len() + s.hosts[h].stand
			busy += s.hosts[h].busy
		}
	}
	w.rec.tick(w.now, queued, busy, w.open)
	for _, t := range w.topics {
		t.tally.tick()
	}
	if next := w.now + w.s.step(); next <= w.s.Horizon {
		w.at(next, tick, 0, 0)
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
		w.open++
	case e.Circuit.To == closed:
		w.open--
	}
}
