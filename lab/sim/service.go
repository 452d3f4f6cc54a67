package sim

import (
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/lab/sim/internal/draw"
	"github.com/lullgo/lull/server/admission"
)

type service struct {
	def           *Service
	index         uint32
	hosts         []host
	work          sampler
	handshakeTime sampler   // the handshakes
	calls         []*origin // its own hops
	caches        []*cache  // by hop; nil: none
	links         []*origin // fleets that keep connections to it, or from it
	// plain: as many workers as it takes, and nothing else that needs a job.
	plain  bool
	random bool // chance plays a part in what it does

	// verdicts of refusals, as indices
	queueFull, rateLimited int
	faultVerdicts          []int // of the fault with that index, if it is Errors

	// The rate limit as a theoretical arrival time: the virtual time at which the
	// bucket would be full again.
	rateInterval, rateBurst time.Duration
	rateFullAt              time.Duration

	version uint64 // of what is contended for
}

type host struct {
	timeline
	busy    int
	queue   line
	filling bool // workers are being put to work, further up the stack

	gate   *admission.Controller // nil: everybody comes in
	atGate int                   // how many wait there

	acceptor acceptor
	heap     memory
	links    int // connections of a Link
	outbox   outbox
}

// line is the jobs that wait at a host. Those that were cancelled meanwhile leave
// it at once, as far as its length goes; their entries are dropped when their turn
// comes.
type line struct {
	ring
	cancelled  int // entries
	handshakes int // entries that are handshakes, for which there is other room
}

func (l *line) len() int { return l.n - l.cancelled - l.handshakes }

// job is one attempt, as the service sees it. It may outlive its caller.
type job struct {
	gen             uint32 // goes up when the place is given back
	flight          uint32
	flightGen       uint32
	host            uint32
	visitor         uint32 // at the gate: its place in world.visitors, from 1; 0: none
	service         uint16
	origin          uint16
	verdict         uint16
	attempt         uint16 // from 1; with those of the request that it is made for, if they are known
	hop             uint16 // how many of the service's own calls are made
	state           jobState
	hedge           bool // began beside another attempt
	key             uint64
	operation, call uint64        // as flight.operation and flight.key
	until           time.Duration // the attempt's deadline
	responseTime    time.Duration // how long the response will travel; never if it gets lost
	version         uint64        // read on the first half of a contended attempt; with a heap, all pauses until its work began
}

type jobState uint8

const (
	jobIdle jobState = iota // not on its way to a worker, or no job at all
	jobQueued
	jobInService
	jobAnswering
	jobCancelled  // in the queue, and to be dropped when its turn comes
	jobAtGate     // at the gate
	jobFailing    // it fails when Service.ErrorTime is over
	jobConnecting // its process has no connection for it yet
)

func (w *world) callerGone(j *job) bool { return w.flights.at(j.flight).gen != j.flightGen }

// jobArrives is the arrival of a job. It returns when the response will leave, if that
// is certain by now, else 0.
func (w *world) jobArrives(i uint32, j *job) (answer time.Duration) {
	s := w.services[j.service]
	if s.def.CancelWork && w.callerGone(j) { // so is its request
		w.dropJob(i, j)
		return 0
	}
	src := draw.From(j.key)
	o := w.origins[j.origin]
	pooled := o.pooled
	if len(s.hosts) > 1 && !pooled && !o.chooses {
		j.host = uint32(src.Below(uint64(len(s.hosts))))
	}
	h := &s.hosts[j.host]
	if x := h.now(w.now); x.down && x.silent {
		w.dropJob(i, j) // the machine is dead: nothing comes back
		return 0
	}
	if w.watch != nil {
		w.watch.came[i] = w.now
		if !w.callerGone(j) {
			w.watchArrival(j.flight, int(j.host))
		}
	}
	if pooled && w.connectionUnknown(i) {
		return w.sendResponse(i, j, verdictReset, w.now)
	}
	if h.heap.down > w.now {
		return w.sendResponse(i, j, verdictRefused, w.now)
	}
	if h.gate != nil {
		j.key = src.Uint64()
		return w.arriveAtGate(i, j)
	}
	verdict, at := s.admit(w, h, w.now, &src)
	j.key = src.Uint64()
	if verdict != verdictOK {
		switch {
		case s.rateInterval > 0 && verdict == s.rateLimited:
			h.addRefusalWork(s, w.now)
		case s.def.ErrorCost > 0 && verdict != verdictRefused:
			return w.failJob(i, j, verdict, at)
		}
		return w.sendResponse(i, j, verdict, at)
	}
	return w.placeJob(i, j)
}

// failJob is what becomes of an attempt that fails at the given time. It returns what jobArrives returns.
func (w *world) failJob(i uint32, j *job, verdict int, at time.Duration) (answer time.Duration) {
	j.verdict = uint16(verdict)
	if at <= w.now {
		return w.failNow(i, j)
	}
	j.state = jobFailing
	w.at(at, eventFailure, j.gen, i)
	if w.services[j.service].def.ErrorCost > 0 {
		return 0 // it may have to wait for a worker
	}
	return at
}

func (w *world) failNow(i uint32, j *job) (answer time.Duration) {
	s := w.services[j.service]
	if s.def.ErrorCost == 0 {
		return w.sendResponse(i, j, int(j.verdict), w.now)
	}
	j.hop = uint16(len(s.calls)) // it makes none of them
	return w.placeJob(i, j)
}

// admit stands before the workers. It returns why an attempt is turned away, and when its
// answer is ready; or verdictOK.
func (s *service) admit(w *world, h *host, now time.Duration, src *draw.Source) (int, time.Duration) {
	x := h.now(now)
	if x.down {
		return verdictRefused, now
	}
	if x.errors >= 0 || s.def.Errors > 0 {
		if verdict, at := s.drawFailure(w, x, now, src); verdict != verdictOK {
			return verdict, at
		}
	}
	if s.rateInterval > 0 && s.overRate(w, now) {
		return s.rateLimited, now
	}
	return verdictOK, now
}

func (s *service) drawFailure(w *world, x *stretch, now time.Duration, src *draw.Source) (int, time.Duration) {
	if x.errors >= 0 {
		if f := &s.def.Faults[x.errors]; f.share() >= 1 || draw.Unit(src.Uint64()) < f.share() {
			w.rec.count(now, &w.rec.totals.Errors)
			after := s.def.ErrorTime
			if f.After > 0 {
				after = f.After
			}
			return s.faultVerdicts[x.errors], saturating.Add(now, after)
		}
	}
	if s.def.Errors > 0 && draw.Unit(src.Uint64()) < s.def.Errors {
		w.rec.count(now, &w.rec.totals.Errors)
		return verdictError, saturating.Add(now, s.def.ErrorTime)
	}
	return verdictOK, now
}

func (s *service) overRate(w *world, now time.Duration) bool {
	if s.rateFullAt = max(s.rateFullAt, now); s.rateFullAt-now > s.rateBurst-s.rateInterval {
		w.rec.count(now, &w.rec.totals.RateLimited)
		return true
	}
	s.rateFullAt += s.rateInterval
	return false
}

func (w *world) placeJob(i uint32, j *job) (answer time.Duration) {
	s := w.services[j.service]
	h := &s.hosts[j.host]
	if s.def.Contention {
		j.version, j.state = s.version, jobInService
		o := w.origins[j.origin]
		src := draw.From(j.key)
		read := saturating.Add(w.now, o.forward.draw(&src))
		w.at(saturating.Add(read, o.forward.draw(&src)), eventWrite, j.gen, i)
		return 0
	}
	limit := h.now(w.now).workers
	free := limit < 0 || h.busy < limit
	full := false
	if !free {
		w.dropCancelled(h)
		if q := &s.def.Queue; h.queue.len() >= q.Limit {
			full = true
			w.rec.count(w.now, &w.rec.totals.QueueFull)
			h.addRefusalWork(s, w.now)
			if q.Order != LIFO || q.Limit == 0 {
				return w.sendResponse(i, j, s.queueFull, w.now)
			}
		}
	}
	if s.def.Heap.Size > 0 {
		j.state = jobIdle // or a crash would answer it, too
		if !w.allocateMemory(s, j.host) {
			w.forgetVisitor(j)
			return w.sendResponse(i, j, verdictReset, w.now)
		}
	}
	if free {
		return w.startJob(i, j)
	}
	j.state = jobQueued
	h.queue.push(i)
	if full {
		w.makeRoom(s, h)
	}
	return 0
}

// dropCancelled drops cancelled entries from the front of the queue, so that the front is
// one that waits, and a queue that stands still does not grow by those who leave.
func (w *world) dropCancelled(h *host) {
	for h.queue.cancelled > 0 {
		k := h.queue.front()
		j := w.jobs.at(k)
		if j.state != jobCancelled {
			return
		}
		h.queue.popFront()
		h.queue.cancelled--
		w.dropJob(k, j)
	}
}

func (w *world) makeRoom(s *service, h *host) {
	for {
		oldest := h.queue.popFront()
		j := w.jobs.at(oldest)
		switch {
		case j.state == jobCancelled:
			h.queue.cancelled--
			w.dropJob(oldest, j)
		case j.hop == handshake: // it can wait longer
			defer h.queue.pushFront(oldest)
		default:
			w.sendResponse(oldest, j, s.queueFull, w.now)
			return
		}
	}
}

func (w *world) startJob(i uint32, j *job) (answer time.Duration) {
	h := &w.services[j.service].hosts[j.host]
	h.workOffRefusals(w.now)
	h.busy++
	j.state = jobInService
	return w.continueJob(i, j)
}

func (w *world) continueJob(i uint32, j *job) time.Duration {
	s := w.services[j.service]
	if j.hop == handshake {
		return w.doWork(s, &s.handshakeTime, i, j)
	}
	for int(j.hop) < len(s.calls) && s.caches[j.hop] != nil && w.foundInCache(s, j, int(j.hop)) {
		j.hop++
	}
	if n := int(j.hop); n < len(s.calls) {
		j.hop++
		o := s.calls[n]
		f, fl := w.flights.take()
		fl.origin, fl.parent, fl.parentGen = o.index, i, j.gen
		fl.key = draw.Mix(j.key, uint64(n))
		var deadline time.Duration
		if o.hop.Deadline {
			deadline = j.until
		}
		if fl.retriesAbove = 0; o.hop.OneLayer && !w.callerGone(j) {
			caller := w.flights.at(j.flight)
			if caller.slot > 0 && caller.slot != ofMessage {
				caller = w.flights.at(caller.parent)
			}
			fl.retriesAbove = uint16(max(caller.call.Attempts()-1, 0))
			if w.origins[caller.origin].hop != nil {
				fl.retriesAbove += caller.retriesAbove
			}
		}
		w.startCall(f, fl, o, j.host, deadline)
		return 0
	}
	return w.doWork(s, &s.work, i, j)
}

func (w *world) doWork(s *service, takes *sampler, i uint32, j *job) time.Duration {
	src := draw.From(j.key)
	h := &s.hosts[j.host]
	work := saturating.Add(takes.draw(&src), duration(float64(h.busy)*float64(s.def.Congestion)))
	if j.verdict != verdictOK {
		work = duration(float64(work) * s.def.ErrorCost)
	}
	if h.acceptor.refusalWork > 0 {
		work = saturating.Add(work, h.takeRefusalWork(s.def.Workers))
	}
	if s.def.Heap.Size > 0 {
		j.version = uint64(h.heap.pauses)
		if at := h.finish(max(w.now, h.heap.until), work); at != never {
			w.at(at, eventWorkDone, j.gen, i)
		}
		return 0 // there may be a pause
	}
	at := h.finish(w.now, work)
	if at == never {
		return never
	}
	w.at(at, eventWorkDone, j.gen, i)
	return at
}

func (w *world) hopEnded(i, gen uint32, hop *Hop, why lull.Reason) {
	j := w.jobs.at(i)
	if j.gen != gen || j.state != jobInService {
		return // crashed or cancelled meanwhile
	}
	if why == engine.Success {
		w.fillCache(w.services[j.service], j)
		w.continueJob(i, j)
		return
	}
	verdict := verdictError
	if hop.OneLayer && why != engine.Permanent {
		verdict = verdictStop
	}
	j.state = jobAnswering
	w.freeWorker(w.services[j.service], j.host)
	w.sendResponse(i, j, verdict, w.now)
}

func (w *world) workDone(i uint32, j *job) {
	if w.services[j.service].def.Heap.Size > 0 && w.stillPaused(i, j) {
		return
	}
	if j.hop == handshake {
		w.handshakeDone(i, j)
		return
	}
	s := w.services[j.service]
	if j.verdict == verdictOK {
		w.countWork(s, j)
	}
	j.state = jobAnswering
	w.freeWorker(s, j.host)
	w.sendResponse(i, j, int(j.verdict), w.now)
}

func (w *world) writeContended(i uint32, j *job) {
	s := w.services[j.service]
	if j.version != s.version {
		w.sendResponse(i, j, verdictConflict, w.now)
		return
	}
	s.version++
	w.countWork(s, j)
	w.sendResponse(i, j, verdictOK, w.now)
}

func (w *world) countWork(s *service, j *job) {
	if w.callerGone(j) {
		w.rec.wasted(w.now)
	}
	w.countEffect(s, w.origins[j.origin], j.operation, j.call)
}

// countEffect counts an operation that was carried out, of those that should be only
// once. The service may know it by the idempotency key of its call.
func (w *world) countEffect(s *service, o *origin, op, call uint64) {
	if !o.countsEffects {
		return
	}
	if s.def.Deduplicates && o.fleet != nil && o.fleet.Keyed {
		if w.timesCarriedOut[call] > 0 {
			return
		}
		if call != op {
			w.timesCarriedOut[call] = 1
		}
	}
	w.timesCarriedOut[op]++
	w.rec.count(w.now, &w.rec.totals.Effects)
	if w.timesCarriedOut[op] > 1 {
		w.rec.count(w.now, &w.rec.totals.Duplicates)
	}
}

func (w *world) freeWorker(s *service, i uint32) {
	h := &s.hosts[i]
	h.workOffRefusals(w.now)
	h.busy--
	w.fillWorkers(s, i)
}

// fillWorkers puts free workers to work. Work may end in the moment in which it begins,
// and the worker come back: the loop that is under way sees to that, or a long
// queue would fill the stack.
func (w *world) fillWorkers(s *service, i uint32) {
	h := &s.hosts[i]
	if h.filling {
		return
	}
	h.filling = true
	for limit := h.now(w.now).workers; (limit < 0 || h.busy < limit) && h.queue.n > 0; {
		var k uint32
		if s.def.Queue.Order == LIFO {
			k = h.queue.popBack()
		} else {
			k = h.queue.popFront()
		}
		j := w.jobs.at(k)
		if j.hop == handshake {
			h.queue.handshakes--
			h.acceptor.handshakes--
			if w.dialerGone(j) {
				w.dropJob(k, j)
				continue
			}
		}
		switch {
		case j.state == jobCancelled:
			h.queue.cancelled--
			w.dropJob(k, j)
		case s.def.Queue.DropExpired && j.until <= w.now:
			w.rec.count(w.now, &w.rec.totals.Dropped)
			w.sendResponse(k, j, s.queueFull, w.now)
		default:
			w.startJob(k, j)
		}
	}
	h.filling = false
}

func (w *world) sendResponse(i uint32, j *job, verdict int, at time.Duration) time.Duration {
	j.verdict, j.state = uint16(verdict), jobAnswering
	if w.watch != nil && j.hop != handshake {
		w.servedSeen(w.services[j.service], verdict, w.watch.came[i], at)
	}
	if j.visitor != 0 {
		r := admission.Failed
		if verdict == verdictOK && !w.callerGone(j) {
			r = admission.Done
		}
		w.departGate(j, r)
	}
	switch arrives := saturating.Add(at, j.responseTime); {
	case arrives == never: // lost
		w.dropJob(i, j)
	case arrives == w.now:
		w.responseArrives(i, j)
	default:
		w.at(arrives, eventResponse, j.gen, i)
	}
	return max(at, 1)
}

// addRefusalWork adds the work of one refusal. The workers do it beside the other work.
func (h *host) addRefusalWork(s *service, now time.Duration) {
	if s.def.RefusalTime > 0 {
		h.workOffRefusals(now)
		h.acceptor.refusalsAt = now
		h.acceptor.refusalWork = saturating.Add(h.acceptor.refusalWork, s.def.RefusalTime)
	}
}

// workOffRefusals takes off what workers without other work have done of it. It is called whenever their number changes.
func (h *host) workOffRefusals(now time.Duration) {
	a := &h.acceptor
	if a.refusalWork == 0 {
		return
	}
	x := &h.stretches[h.timeline.current]
	idle := max(x.workers-h.busy, 0)
	a.refusalWork = max(a.refusalWork-duration(float64(idle)*x.speed*float64(now-a.refusalsAt)), 0)
	a.refusalsAt = now
}

// takeRefusalWork returns the part of that work that the attempt does that begins now, and takes it off.
func (h *host) takeRefusalWork(workers int) time.Duration {
	part := h.acceptor.refusalWork
	if workers > 1 {
		part = (part + time.Duration(workers) - 1) / time.Duration(workers)
	}
	h.acceptor.refusalWork -= part
	return part
}

func (w *world) cancelAttempt(f *flight) {
	s := w.origins[f.origin].target
	if f.job >= w.jobs.used { // no job yet, or never any
		return
	}
	j := w.jobs.at(f.job)
	// continueFlight has moved the flight on by one. The place of an earlier job may have a handshake now,
	// whose number is that of a connection.
	if j.hop == handshake || &w.flights.at(j.flight).gen != &f.gen || j.flightGen != f.gen-1 {
		return
	}
	switch j.state {
	case jobAtGate:
		w.leaveGate(j)
		w.dropJob(f.job, j)
	case jobFailing:
		w.departGate(j, admission.Failed)
		w.dropJob(f.job, j)
	case jobQueued:
		j.state = jobCancelled
		s.hosts[j.host].queue.cancelled++
		w.departGate(j, admission.Failed)
	case jobInService:
		h := j.host
		w.departGate(j, admission.Failed)
		w.dropJob(f.job, j)
		if !s.def.Contention { // which has no workers
			w.freeWorker(s, h)
		}
	}
}

func (w *world) dropJob(i uint32, j *job) {
	if int(i) < len(w.legs) {
		w.detachJob(i)
	}
	j.gen++
	j.state = jobIdle
	w.jobs.release(i)
}

// servePlain is the whole of what a plain service does with an attempt that reaches it
// at the given time, maybe a little ahead.
func (s *service) servePlain(w *world, at time.Duration, l attemptRandom) (verdict int, answer time.Duration) {
	h := &s.hosts[0]
	var src draw.Source
	if s.random {
		src = draw.From(draw.Mix(l.key, l.n))
		if len(s.hosts) > 1 {
			h = &s.hosts[src.Below(uint64(len(s.hosts)))]
		}
	}
	if verdict, answer = s.admit(w, h, at, &src); verdict != verdictOK {
		return verdict, answer
	}
	work := s.work.draw(&src)
	if work == 0 && h.now(at).speed > 0 {
		return verdictOK, at
	}
	return verdictOK, h.finish(at, work)
}
