package sim

import (
	"context"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"github.com/lullgo/lull"
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
