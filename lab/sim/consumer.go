package sim

import (
	"slices"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/engine/consumers"
	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/lab/sim/internal/draw"
	"github.com/lullgo/lull/outlier"
)

// A consumer is one process of a topic's: a driver of the engine, as queue.Consumer is one.
type consumer struct {
	topic  *topic
	index  uint32 // in world.consumers
	state  *engine.State
	probes consumers.ProbeCounter[uint64]

	gen  uint32 // goes up when it stops waiting to look at its breaker again
	down bool
	free int // how many more messages it may handle

	// What it may fetch next, as the engine has allowed it; zero: to be asked again.
	most   int
	probe  bool
	paused bool
	asks   bool // it waits for up to want messages
	want   int

	crowd     consumers.Crowd
	line      []uint32 // deliveries that wait for their turn
	beginning bool     // some are being handed out to it

	deliveries []uint32 // its deliveries
	probing    int      // of these, what was fetched as a probe
	held       int      // of these, what waits for the breaker here
}

// maxBatch is the most messages that are fetched at a time.
const maxBatch = 10

// delivery is one delivery in the hands of a consumer.
type delivery struct {
	gen      uint32 // goes up with each wait that ends, and when the place is given back
	message  uint32
	receipt  uint32
	flight   uint32 // of the try under way, or none
	consumer *consumer
	began    time.Duration
	first    time.Duration // when the message was first handed out
	attempt  int
	crashes  int
	tries    int
	begun    bool // it has a place in the crowd
	inLine   bool // it waits for its turn
	place    int  // in consumer.deliveries
	verdict  lull.Verdict
	probe    bool
	held     bool // it waits until it may be tried
}

// none is no flight.
const noFlight = ^uint32(0)

// ofMessage is the slot of a flight that is a try of a message: its parent is the delivery.
const ofMessage = 255

// startConsumer begins the process of c. One that was killed remembers nothing.
func (w *world) startConsumer(c *consumer) {
	if !c.down {
		return
	}
	c.down = false
	if c.state == nil {
		c.state = c.topic.fresh()
	}
	c.probes.Forget()
	c.free, c.most, c.paused = c.topic.def.Consumers.concurrency(), 0, false
	w.fetchMessages(c)
}

// learnOutage has c find out that the service is down, by a failure each second, until its circuit
// is open, as if it had been at work before. It begins then.
func (w *world) learnOutage(c *consumer) {
	verdict := lull.Verdict{Kind: lull.KindTransient, Code: "503"}
	w.key, w.asked = draw.Mix(uint64(c.index), 1), 0
	const most = 1000
	for n := range time.Duration(most) {
		now := n * time.Second
		b := c.state.Breaker()
		if b == nil || b.State(now) != breaker.Closed {
			w.at(now, eventStartConsumer, 0, c.index)
			return
		}
		if call, step := c.state.Start(now, engine.Spec{}); !step.Done && !call.Attempt(now, w.random).Done {
			call.Next(now, verdict, w.random)
			call.Abandon(now)
		}
	}
}

// fetchMessages asks the broker for what the engine allows, if there is room for it.
func (w *world) fetchMessages(c *consumer) {
	if c.down || c.asks || c.beginning {
		return
	}
	w.startLined(c)
	if c.down || c.asks {
		return
	}
	if c.most == 0 {
		batch := c.crowd.Fetch(min(maxBatch, c.topic.def.Consumers.concurrency()))
		if batch == 0 {
			return // until a message has ended
		}
		f := c.state.Fetch(w.now, batch, c.probing+c.held > 0)
		c.gen++
		if f.Most == 0 {
			c.paused = true
			w.at(saturating.Add(w.now, f.Wait), eventFetchAgain, c.gen, c.index)
			return
		}
		if c.paused && !f.Probe {
			c.paused = false
			c.probes.Forget()
		}
		c.most, c.probe = f.Most, f.Probe
	}
	if c.free == 0 {
		return // until a message has ended
	}
	c.want = min(c.most, c.free)
	c.most = 0
	c.free -= c.want
	c.asks = true
	c.topic.asking = append(c.topic.asking, c)
	w.handOutMessages(c.topic)
}

func (w *world) beginDeliveries(c *consumer, got []uint32) {
	t := c.topic
	for _, i := range got {
		x := w.deliveries.at(i)
		m := w.messages.at(x.message)
		if t.holds {
			continue
		}
		d := w.describe(x)
		d.Lost, d.Crashes = m.lost, m.crashes
		d = t.plan.Counted(d, 0)
		x.attempt, x.crashes = d.Attempt, d.Crashes
	}
	slices.SortStableFunc(got, func(a, b uint32) int { return w.deliveries.at(a).crashes - w.deliveries.at(b).crashes })
	c.beginning = true
	for _, i := range got {
		w.beginDelivery(i, w.deliveries.at(i))
	}
	c.beginning = false
	w.fetchMessages(c)
}

func (w *world) beginDelivery(i uint32, x *delivery) {
	c, m := x.consumer, w.messages.at(x.message)
	if c.topic.holds {
		w.tryMessage(i, x)
		return
	}
	d := w.describe(x)
	d.Lost, d.Crashes = m.lost, x.crashes
	w.key, w.asked = draw.Mix(m.key, uint64(x.receipt)), 0
	if r, ok := c.topic.plan.Deliver(d, w.random); !ok {
		w.conclude(i, x, r)
		return
	}
	begin, wait := c.crowd.Arrive(x.crashes)
	switch {
	case begin:
		x.begun = true
		w.tryMessage(i, x)
	case !wait && c.crowd.FreeDefer:
		w.giveBack(i, x)
	default:
		x.inLine = true
		c.line = append(c.line, i)
		if !c.topic.extends() {
			w.at(w.leaseEnds(x), eventResume, x.gen, i)
		}
	}
}

// giveBack is the end of a delivery for which there is no room.
func (w *world) giveBack(i uint32, x *delivery) {
	d := w.describe(x)
	d.Ending = true
	w.conclude(i, x, x.consumer.state.Refused(w.now, engine.Limited, x.verdict, d, w.random))
}

// startLined lets those begin whose turn it is.
func (w *world) startLined(c *consumer) {
	for c.crowd.BeginNext() {
		i := c.line[0]
		w.shiftLine(c)
		x := w.deliveries.at(i)
		x.gen++
		x.inLine, x.begun = false, true
		w.tryMessage(i, x)
	}
}

// shiftLine removes the first of those that wait for their turn.
func (w *world) shiftLine(c *consumer) {
	c.line = slices.Delete(c.line, 0, 1)
	if len(c.line) > 0 {
		c.crowd.SetNext(w.deliveries.at(c.line[0]).crashes)
	}
}

// tryMessage asks the engine whether the handler may run.
func (w *world) tryMessage(i uint32, x *delivery) {
	o := x.consumer.topic.o
	if x.consumer.topic.holds {
		x.attempt = x.tries + 1
	}
	m := w.messages.at(x.message)
	k, f := w.flights.take()
	f.origin, f.parent, f.slot, f.process, f.beside = o.index, i, ofMessage, 0, false
	f.key = draw.Mix(draw.Mix(m.key, uint64(x.receipt)), uint64(x.tries))
	f.operation, f.began = m.key, w.now
	if o.knowsProcess {
		f.process = x.consumer.index - x.consumer.topic.consumers[0].index
	}
	x.flight = k
	var step engine.Step
	f.call, step = x.consumer.state.ResumeDelivery(w.now, o.spec, w.describe(x))
	if step.Done {
		w.tryRefused(k, f, step.Reason)
		return
	}
	w.askForAttempt(k, f)
}

// runHandler runs the handler of a try that has begun: it makes one attempt of the service.
func (w *world) runHandler(k uint32, f *flight) {
	x := w.deliveries.at(f.parent)
	t := x.consumer.topic
	x.tries++
	t.tally.ran(w.now)
	if !w.messages.at(x.message).poison {
		w.sendNth(k, f, f.call.Attempts(), min(w.timeoutAt(f), w.leaseEnds(x)))
		return
	}
	if p := &t.def.Poison; p.Kills {
		// At once, but after whatever led here: that may still hold flights of this process.
		w.at(w.now, eventKill, 0, x.consumer.index)
		w.at(saturating.Add(w.now, p.down()), eventStartConsumer, 0, x.consumer.index)
		return
	}
	w.handlerEnded(k, f, engine.Handled{Verdict: lull.Verdict{Kind: lull.KindTransient, Code: "panicked"}, Panicked: true})
}

// handlerAnswered is the end of a handler whose attempt has ended. (It is a function of its own because
// a Handled in the frame of attemptEnded would make every attempt dearer.)
//
//go:noinline
func (w *world) handlerAnswered(k uint32, f *flight, verdict int) {
	w.handlerEnded(k, f, engine.Handled{Verdict: w.origins[f.origin].verdicts[verdict]})
}

func (w *world) handlerEnded(k uint32, f *flight, h engine.Handled) {
	i := f.parent
	x := w.deliveries.at(i)
	c, m := x.consumer, w.messages.at(x.message)
	w.seedFor(f, false)
	free := func(most int) bool { return c.probes.Free(m.seq, most) }
	r := f.call.Handled(w.now, h, w.describe(x), free, w.random)
	w.endTry(k, f, x)
	x.verdict = h.Verdict
	if c.topic.holds && r.Outcome == engine.Retry {
		r.Here, r.Wait = true, min(r.After, max(w.leaseEnds(x)-w.now, 0))
	}
	if r.Here {
		w.at(saturating.Add(w.now, r.Wait), eventResume, x.gen, i)
		return
	}
	w.conclude(i, x, r)
}

func (w *world) tryRefused(k uint32, f *flight, why engine.Reason) {
	i := f.parent
	x := w.deliveries.at(i)
	w.seedFor(f, true)
	r := x.consumer.state.Refused(w.now, why, x.verdict, w.describe(x), w.random)
	w.endTry(k, f, x)
	if !r.Here {
		w.conclude(i, x, r)
		return
	}
	x.held = true
	x.consumer.held++
	w.at(min(saturating.Add(w.now, r.Wait), max(w.leaseEnds(x), w.now)), eventResume, x.gen, i)
}

// endTry gives back the flight of a try that has ended.
func (w *world) endTry(k uint32, f *flight, x *delivery) {
	f.gen++
	f.slot = 0
	w.flights.release(k)
	delete(w.hostsTried, k)
	x.flight = noFlight
}

// resumeDelivery continues with a message that was kept.
func (w *world) resumeDelivery(i uint32, x *delivery) {
	x.gen++
	if x.inLine { // its lease ends
		if c := x.consumer; c.line[0] == i {
			c.crowd.DropNext()
			w.shiftLine(c)
		} else {
			c.line = slices.DeleteFunc(c.line, func(o uint32) bool { return o == i })
		}
		x.inLine = false
		w.giveBack(i, x)
		return
	}
	if x.held {
		x.held = false
		x.consumer.held--
	}
	switch {
	case w.now < w.leaseEnds(x):
		w.tryMessage(i, x)
	case x.consumer.topic.holds: // it sleeps no longer, and gives up
		w.conclude(i, x, engine.Redelivery{Outcome: engine.DeadLetter, Reason: engine.Deadline})
	default: // the consumer must let go of it
		d := w.describe(x)
		d.Stopping = true
		w.conclude(i, x, x.consumer.state.Refused(w.now, engine.CircuitOpen, x.verdict, d, w.random))
	}
}

// killConsumer ends the process of c without a word. What it had in hand comes back when its leases
// lapse.
func (w *world) killConsumer(c *consumer) {
	if c.down {
		return
	}
	t := c.topic
	c.down = true
	c.gen++
	if c.asks {
		t.asking = slices.DeleteFunc(t.asking, func(x *consumer) bool { return x == c })
		c.asks = false
	}
	for len(c.deliveries) > 0 {
		i := c.deliveries[0]
		x := w.deliveries.at(i)
		if x.flight != noFlight {
			f := w.flights.at(x.flight)
			f.gen++
			if t.o.target.def.CancelWork {
				w.cancelAttempt(f)
			}
			if t.o.pooled {
				w.abandonConnection(x.flight, f)
			}
			w.reportOutcome(x.flight, outlier.Neutral)
			delete(w.waitingForRoom, x.flight)
			w.endTry(x.flight, f, x)
		}
		if m := w.messages.at(x.message); m.delivered && m.deliveries == x.receipt && t.extends() {
			beat := t.lease.AfterExtension(false) // it was extended so often
			m.at = saturating.Add(x.began, (w.now-x.began)/beat*beat+t.lease.First)
			w.scheduleMessage(t, x.message, m)
		}
		w.endDelivery(i, x)
	}
	if b := c.state.Breaker(); b != nil && b.State(w.now) != breaker.Closed {
		w.openBreakers--
	}
	c.state = nil
	c.line, c.crowd = nil, t.crowd()
	w.handOutMessages(t)
}

func (w *world) describe(x *delivery) engine.Delivery {
	t := x.consumer.topic
	d := engine.Delivery{
		BrokerCapabilities: t.broker, QuickRetries: t.quick, Attempt: x.attempt, Runs: x.tries,
		RetryLeft: engine.Never, KeepLeft: engine.Never, Lease: t.lease.First,
	}
	if limit := t.plan.Policy().Deadline; limit > 0 {
		d.RetryLeft = limit - (w.now - x.first)
	}
	if t.lease.Final {
		d.KeepLeft = w.leaseEnds(x) - w.now
	}
	return d
}

// leaseEnds is when a handler must end because its lease does.
func (w *world) leaseEnds(x *delivery) time.Duration {
	t := x.consumer.topic
	if !t.lease.Final {
		return never
	}
	return saturating.Add(x.began, t.lease.First-t.lease.Margin())
}
