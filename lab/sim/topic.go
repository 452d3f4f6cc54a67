package sim

import (
	"container/heap"
	"time"

	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/engine/consumers"
	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/lab/sim/internal/draw"
)

// A topic is a Topic at work: its producers, and its broker, which does what queue.MemoryBroker
// does.
type topic struct {
	def       *Topic
	index     uint32
	o         *origin
	plan      *engine.Plan
	fresh     func() *engine.State // what a process that begins remembers
	holds     bool                 // Contender.Holds
	arrivals  stream
	consumers []*consumer

	// What the engine has to know.
	broker engine.BrokerCapabilities
	quick  engine.QuickRetries
	lease  consumers.Lease // at its beginning

	next    schedule    // messages by when they can be handed out; not those that are out and extended
	asking  []*consumer // in the order in which they asked
	due     time.Duration
	handing bool // messages are being handed out, further up the stack
	tally   topicTally
}

func (t *topic) extends() bool { return !t.def.Broker.FixedLeases && !t.holds }

// crowd is what runs in one process of the topic's, at first: nothing.
func (t *topic) crowd() consumers.Crowd {
	return consumers.Crowd{Most: t.def.Consumers.concurrency(), FreeDefer: t.broker.FreeDefer || t.holds}
}

// message is one message, from when it was sent until nobody holds it and it is gone.
type message struct {
	key        uint64 // of its randomness
	seq        uint64
	sent       time.Duration
	first      time.Duration // when it was first handed out; never: not yet
	at         time.Duration // when it can be handed out
	attempt    int           // the number of the latest
	lost       int           // as queue.Delivery.Lost, and
	crashes    int           // Crashes
	deliveries uint32        // how often it was handed out: the receipt of who has it
	holders    uint16        // deliveries that have not ended
	index      int32         // in topic.next; -1: not there
	delivered  bool
	ended      bool // handled, or dead
	poison     bool
}

func (w *world) scheduleProduce(t *topic) {
	if at := t.arrivals.at; at != never {
		w.at(at, eventProduce, 0, t.index)
	}
}

func (w *world) produce(t *topic) {
	s := &t.arrivals
	key := draw.Mix(s.key, s.made)
	s.made++
	i, m := w.messages.take()
	*m = message{key: key, seq: s.made, sent: w.now, first: never, at: w.now, index: -1}
	if p := t.def.Poison.Share; p > 0 {
		src := draw.From(key)
		m.poison = draw.Unit(src.Uint64()) < p
	}
	t.tally.sent(w.now)
	w.rec.begins(w.now, nil)
	s.findNext(w.now)
	w.scheduleProduce(t)
	w.scheduleMessage(t, i, m)
	w.handOutMessages(t)
}

func (w *world) scheduleMessage(t *topic, i uint32, m *message) {
	if m.index < 0 {
		heap.Push(&t.next, i)
	} else {
		heap.Fix(&t.next, int(m.index))
	}
}

// handOutMessages hands out what can be, to those who ask, and makes the event of what can be later.
func (w *world) handOutMessages(t *topic) {
	if t.handing {
		return // the loop that is under way sees to it
	}
	t.handing = true
	for len(t.asking) > 0 && len(t.next.of) > 0 && w.messages.at(t.next.of[0]).at <= w.now {
		c := t.asking[0]
		t.asking = t.asking[1:]
		var got [maxBatch]uint32
		n := 0
		for n < c.want && len(t.next.of) > 0 && w.messages.at(t.next.of[0]).at <= w.now {
			got[n] = w.deliverNext(t, c)
			n++
		}
		c.asks = false
		c.free += c.want - n
		w.beginDeliveries(c, got[:n])
	}
	t.handing = false
	if len(t.asking) > 0 && len(t.next.of) > 0 {
		if at := w.messages.at(t.next.of[0]).at; at != t.due {
			t.due = at
			w.at(at, eventHandOut, 0, t.index)
		}
	}
}

func (w *world) deliverNext(t *topic, c *consumer) uint32 {
	k := t.next.of[0]
	m := w.messages.at(k)
	if m.delivered {
		t.tally.Lapsed++
		m.lost++
	}
	m.attempt++
	m.deliveries++
	m.holders++
	m.delivered = true
	m.first = min(m.first, w.now)
	i, x := w.deliveries.take()
	*x = delivery{gen: x.gen, message: k, receipt: m.deliveries, consumer: c, began: w.now, first: m.first, attempt: m.attempt, flight: noFlight, probe: c.probe, place: len(c.deliveries)}
	c.deliveries = append(c.deliveries, i)
	if c.probe {
		c.probing++
	}
	if t.extends() {
		heap.Pop(&t.next) // its lease lapses when its consumer is killed
		return i
	}
	m.at = saturating.Add(w.now, t.lease.First)
	w.scheduleMessage(t, k, m)
	return i
}

// conclude does what was decided about a delivery, if the message is still its holder's.
func (w *world) conclude(i uint32, x *delivery, r engine.Redelivery) {
	c := x.consumer
	t := c.topic
	m := w.messages.at(x.message)
	lapsed := !t.extends() && w.now >= saturating.Add(x.began, t.lease.First)
	if m.delivered && m.deliveries == x.receipt && (!lapsed || r.Outcome == engine.Ack) {
		m.delivered = false
		if t.broker.Losses {
			m.attempt, m.lost, m.crashes = x.attempt, 0, x.crashes
		}
		switch r.Outcome {
		case engine.Ack, engine.DeadLetter:
			w.removeMessage(t, m, r)
		default:
			if r.Outcome == engine.Defer {
				t.tally.Deferred++
				if t.broker.FreeDefer {
					m.attempt--
				}
			}
			m.at = saturating.Add(w.now, r.After)
			w.scheduleMessage(t, x.message, m)
		}
	}
	w.endDelivery(i, x)
	w.fetchMessages(c)
	w.handOutMessages(t)
}

// removeMessage takes a message out of the queue, which is handled or dead.
func (w *world) removeMessage(t *topic, m *message, r engine.Redelivery) {
	m.ended = true
	if m.index >= 0 {
		heap.Remove(&t.next, int(m.index))
	}
	why := r.Reason
	if r.Outcome == engine.Ack {
		why = engine.Success
	}
	t.tally.ended(w.now, m, why)
	w.rec.ends(w.now, m.sent, why, m.attempt, nil)
	if w.onMessageEnd != nil {
		w.onMessageEnd(MessageEnd{t.def.Name, int64(m.seq), m.sent, w.now, m.attempt, why})
	}
}

func (w *world) endDelivery(i uint32, x *delivery) {
	c := x.consumer
	last := len(c.deliveries) - 1
	c.deliveries[x.place] = c.deliveries[last]
	w.deliveries.at(c.deliveries[last]).place = x.place
	c.deliveries = c.deliveries[:last]
	c.free++
	if x.begun {
		c.crowd.End(x.crashes)
		x.begun = false
	}
	if x.probe {
		c.probing--
	}
	if x.held {
		c.held--
	}
	m := w.messages.at(x.message)
	if m.holders--; m.ended && m.holders == 0 {
		w.messages.release(x.message)
	}
	x.gen++
	w.deliveries.release(i)
}

// A schedule is a heap of messages by when they can be handed out, then by age.
type schedule struct {
	of       []uint32
	messages *slab[message]
}

func (s *schedule) Len() int { return len(s.of) }

func (s *schedule) Less(i, j int) bool {
	a, b := s.messages.at(s.of[i]), s.messages.at(s.of[j])
	if a.at != b.at {
		return a.at < b.at
	}
	return a.seq < b.seq
}

func (s *schedule) Swap(i, j int) {
	s.of[i], s.of[j] = s.of[j], s.of[i]
	s.messages.at(s.of[i]).index, s.messages.at(s.of[j]).index = int32(i), int32(j)
}

func (s *schedule) Push(x any) {
	i := x.(uint32)
	s.messages.at(i).index = int32(len(s.of))
	s.of = append(s.of, i)
}

func (s *schedule) Pop() any {
	last := len(s.of) - 1
	i := s.of[last]
	s.messages.at(i).index = -1
	s.of = s.of[:last]
	return i
}
