package sim

import (
	"math"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/lab/sim/internal/draw"
	"github.com/lullgo/lull/outlier"
)

const never = time.Duration(math.MaxInt64)

// An origin is where calls come from: a fleet, a topic, or a service that calls another.
type origin struct {
	states    []engine.State // one for each process, or one for all if they remember nothing
	processes int
	target    *service
	name      string
	forward   sampler // one way
	network   Network
	instant   bool // no latency and no loss

	fleet          *Fleet    // nil for a hop
	threads        []threads // by process; nil: any number
	index          uint16
	reusesFlights  bool           // a place of a flight is used for several calls of one process
	pooled         bool           // attempts need connections
	chooses        bool           // hosts are chosen by a set
	knowsProcess   bool           // flight.process is set
	sets           []*outlier.Set // by process
	handshakeTime  sampler
	pools          []uint32 // by process and host: indices of world.pools, plus one
	reload         sampler
	redials        []engine.Redial // by process; nil: calls are made
	links          *links          // nil: connections are not kept
	think          sampler
	spec           engine.Spec
	callerDeadline time.Duration                   // the callers' own deadline
	hop            *Hop                            // nil for a fleet and for a topic
	hedges         bool                            // attempts of a call may run beside one another, or are of messages
	reads          func(lull.Verdict) lull.Verdict // nil: as lull does
	verdicts       []lull.Verdict                  // by index
	countsEffects  bool                            // effects are: the operation should be carried out once
	tally          *callTally                      // nil unless the fleet is counted apart
}

// stateIndex returns the number under which dependency knows process p.
func (o *origin) stateIndex(p uint32) uint32 {
	if o.links == nil {
		return p
	}
	return o.links.stateIndex(p)
}

// dependency is what one process remembers of it.
func (o *origin) dependency(process uint32) *engine.State {
	if len(o.states) == 1 {
		return &o.states[0]
	}
	return &o.states[process]
}

// A flight is one logical call, from its beginning to its end. With millions of
// them each lies in memory that no cache holds, so what every event needs comes
// first, in one line of the cache with the first part of the call. What follows it
// is looked at only by those who need it.
type flight struct {
	key     uint64 // of its randomness
	gen     uint32 // goes up with each thing that ends
	origin  uint16
	verdict uint16 // for the event answer
	began   time.Duration
	call    engine.Call

	operation         uint64 // what the user wants done; stays the same when they come back
	process           uint32
	job               uint32 // the latest attempt's
	parent, parentGen uint32 // hop: the job that it is made for
	reloads           uint8  // how often the user has come back
	slot              uint8  // of an attempt of a hedged call, whose flight is parent: from 1; or ofMessage
	retriesAbove      uint16 // Hop.OneLayer: retries of the request that the call is made for
	beside            bool   // with a slot: another attempt was under way when this one began
	_                 [3]byte
}

// newCall starts a call of process p of o, with its own key of randomness.
func (w *world) newCall(o *origin, p uint32, key uint64, deadline time.Duration) {
	if o.links != nil {
		w.disturbLink(o, p)
		return
	}
	i, f := w.flights.take()
	f.origin, f.key = o.index, key
	if o.countsEffects {
		f.operation = key
	}
	if o.reusesFlights {
		f.process, f.reloads = p, 0
	}
	switch {
	case o.redials != nil:
		w.loseConnection(i, f, o, p, false)
	case o.threads == nil || w.takeThread(i, f, o, p):
		w.startCall(i, f, o, p, deadline)
	}
}

// startCall starts the call that f stands for, maybe not its first.
func (w *world) startCall(i uint32, f *flight, o *origin, process uint32, deadline time.Duration) {
	if o.knowsProcess {
		f.process = process
	}
	if o.threads == nil { // else it has begun
		f.began = w.now
		if o.hop == nil {
			w.rec.callBegins(w.now, o)
		}
	}
	spec := o.spec
	spec.Deadline = deadline
	if no := o.dependency(process).StartIn(&f.call, w.now, &spec); no != engine.Success {
		w.endCall(i, f, no)
		return
	}
	if o.hop != nil {
		f.call.NestedIn(int(f.retriesAbove) + 1)
	}
	if !o.hedges && f.call.FirstAttempt(w.now) {
		w.sendAttempt(i, f)
		return
	}
	w.askForAttempt(i, f)
}

// patience is the callers' own deadline for a call that began at the given time.
func (o *origin) patience(began time.Duration) time.Duration {
	if o.callerDeadline == 0 {
		return 0
	}
	return saturating.Add(began, o.callerDeadline)
}

// askForAttempt asks the engine whether the next attempt may begin.
func (w *world) askForAttempt(i uint32, f *flight) {
	w.seedFor(f, true)
	step := f.call.Attempt(w.now, w.random)
	switch {
	case step.Full:
		w.waitForRoom(i, f)
	case step.Wait > 0: // held back by the throttle, or because there may be a line
		w.at(saturating.Add(w.now, step.Wait), eventWake, f.gen, i)
	default:
		w.followStep(i, f, step)
	}
}

// followStep carries out a decision of the engine: the attempt begins, or the call is over.
func (w *world) followStep(i uint32, f *flight, step engine.Step) {
	if step.Done {
		w.endCall(i, f, step.Reason)
		return
	}
	if w.origins[f.origin].hedges {
		w.startRace(i, f)
		return
	}
	w.sendAttempt(i, f)
}

func (w *world) waitForRoom(i uint32, f *flight) {
	waiter := &bulkhead.Waiter{}
	gen := f.gen
	waiter.Admit = func() { w.at(w.now, eventAdmitted, gen, i) }
	step := f.call.JoinQueue(w.now, waiter, w.random)
	if !step.Full {
		w.followStep(i, f, step)
		return
	}
	w.waitingForRoom[i] = waiter
	w.at(saturating.Add(w.now, step.Wait), eventLeaveLine, gen, i)
}

func (w *world) continueFlight(kind int, i uint32, f *flight) {
	f.gen++
	if kind == eventWake {
		if c := w.races[i]; c != nil {
			w.askForHedge(i, f, c)
			return
		}
		if w.orphaned(f) {
			w.seedFor(f, true)
			w.followStep(i, f, f.call.Stop(w.now, engine.Canceled, w.random))
			return
		}
		w.askForAttempt(i, f)
		return
	}
	if f.slot == 0 || f.slot == ofMessage {
		w.seedFor(f, kind == eventAdmitted || kind == eventLeaveLine)
	}
	switch kind {
	case eventTimeout:
		w.rec.count(w.now, &w.rec.totals.AttemptsTimedOut)
		if o := w.origins[f.origin]; o.target.def.CancelWork {
			w.cancelAttempt(f)
		}
		if w.origins[f.origin].pooled {
			w.abandonConnection(i, f)
		}
		w.attemptEnded(i, f, verdictTimeout)
	case eventAnswer:
		w.answerArrived(i, f, int(f.verdict))
	case eventAdmitted:
		delete(w.waitingForRoom, i)
		w.followStep(i, f, f.call.Admitted(w.now, w.random))
	case eventLeaveLine:
		waiter := w.waitingForRoom[i]
		delete(w.waitingForRoom, i)
		w.followStep(i, f, f.call.LeaveQueue(w.now, waiter, engine.Limited, w.random))
	case eventCallAgain:
		o := w.origins[f.origin]
		if o.hostCrashed(f) {
			w.retireFlight(i, f, o, o.redials != nil) // otherwise it is to begin
			return
		}
		if o.redials != nil {
			w.dialOnce(i, f, o)
			return
		}
		began := w.now
		if o.threads != nil {
			began = f.began
		}
		w.startCall(i, f, o, o.stateIndex(f.process), o.patience(began))
	}
}

// orphaned reports whether f is a service's own call, made for an attempt that has
// been cancelled or lost, or that of a process that is gone: it makes no more attempts.
func (w *world) orphaned(f *flight) bool {
	o := w.origins[f.origin]
	return o.hop != nil && w.jobs.at(f.parent).gen != f.parentGen || o.hostCrashed(f)
}

func (w *world) answerArrived(i uint32, f *flight, verdict int) {
	if verdict != verdictOK {
		w.rec.count(w.now, &w.rec.totals.AttemptsFailed)
	}
	w.attemptEnded(i, f, verdict)
}

// attemptEnded reports to the engine how an attempt ended, and does what it decides.
func (w *world) attemptEnded(i uint32, f *flight, verdict int) {
	if w.watch != nil {
		w.attemptSeen(i, verdict, w.verdicts[verdict].Code)
	}
	if w.origins[f.origin].chooses {
		w.reportOutcome(i, w.outcome(verdict))
	}
	if f.slot > 0 {
		if f.slot == ofMessage {
			w.handlerAnswered(i, f, verdict)
			return
		}
		w.racerEnded(f, verdict)
		return
	}
	o := w.origins[f.origin]
	w.rec.attemptHeld(o, f.began, f.call.Began(), w.now)
	v := o.verdicts[verdict]
	if v.Kind == lull.KindSuccess && f.call.Attempts() == 1 && f.call.CanUseSucceed() {
		f.call.Succeed(w.now, f.call.NeedsEndTime())
		w.endCall(i, f, engine.Success)
		return
	}
	w.seedFor(f, false)
	step := f.call.Next(w.now, v, w.random)
	if step.Done {
		if o.redials != nil && step.Reason != engine.Success {
			w.redialFailed(i, f, o, o.verdicts[verdict])
			return
		}
		w.endCall(i, f, step.Reason)
		return
	}
	// Without a wait it is an event, too: a run in which everything happens at once
	// can be stopped, and needs no more stack than another.
	w.at(saturating.Add(w.now, max(step.Wait, 0)), eventWake, f.gen, i)
}

func (w *world) endCall(i uint32, f *flight, why lull.Reason) {
	o := w.origins[f.origin]
	if o.hostCrashed(f) {
		if why == engine.Success {
			w.rec.count(w.now, &w.rec.totals.Lost)
		}
		w.retireFlight(i, f, o, true)
		return
	}
	if o.redials != nil {
		if why != engine.Success { // refused by the client's own limits
			w.redialFailed(i, f, o, lull.Verdict{})
			return
		}
		o.redials[f.process].Connected(w.now)
	}
	if o.links != nil && why == engine.Success {
		w.linkConnected(o, f)
	}
	if o.chooses {
		delete(w.hostsTried, i)
	}
	f.gen++
	degraded := false
	switch {
	case o.fleet != nil:
		degraded = w.rec.callEnds(w.now, f.began, why, f.call.Attempts(), o)
	case o.hop != nil:
		parent, gen := f.parent, f.parentGen
		w.flights.release(i)
		w.hopEnded(parent, gen, o.hop, why)
		return
	default:
		w.tryRefused(i, f, why)
		return
	}
	if why != engine.Success && !degraded && o.reusesFlights && int(f.reloads) < o.fleet.Reload.Times && w.comesBack(i, f, o) {
		return
	}
	began := f.began
	if o.reusesFlights {
		began = w.userBegan(i, f)
	}
	w.rec.userLeft(w.now, began)
	if o.threads != nil {
		w.freeThread(o, f.process)
	}
	if o.links != nil && why != engine.Success {
		o.links.links[f.process].dialling = false
	}
	if o.fleet.Arrivals.Kind == Closed {
		src := draw.From(draw.Mix(f.key, 1<<33))
		f.key, f.reloads = src.Uint64(), 0
		f.operation = f.key
		pause := max(o.think.draw(&src), 1) // for time to pass
		w.at(saturating.Add(w.now, pause), eventCallAgain, f.gen, i)
		return
	}
	w.flights.release(i)
}

// comesBack decides whether the user whose call has failed makes it again, and when.
func (w *world) comesBack(i uint32, f *flight, o *origin) bool {
	src := draw.From(draw.Mix(f.key, 1<<32+uint64(f.reloads)))
	if draw.Unit(src.Uint64()) >= o.fleet.Reload.Share {
		return false
	}
	f.reloads++
	f.key = src.Uint64()
	w.rec.count(w.now, &w.rec.totals.Reloads)
	if _, came := w.rec.firstCalls[i]; !came {
		w.rec.firstCalls[i] = f.began
	}
	w.at(saturating.Add(w.now, o.reload.draw(&src)), eventCallAgain, f.gen, i)
	return true
}

// userBegan returns when the user of f made the first call, and forgets that time.
func (w *world) userBegan(i uint32, f *flight) time.Duration {
	began, came := w.rec.firstCalls[i]
	if !came {
		return f.began
	}
	delete(w.rec.firstCalls, i)
	return began
}
