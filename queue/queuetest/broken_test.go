package queuetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/queue"
)

// faulty is a MemoryBroker with one fault.
type faulty struct {
	*queue.MemoryBroker
	receive func(ctx context.Context, w queue.Want) ([]*queue.Delivery, error)
	extend  func(ctx context.Context, d *queue.Delivery, lease time.Duration) (time.Time, error)
	settle  func(ctx context.Context, d *queue.Delivery, s queue.Settlement) error
	send    func(ctx context.Context, o queue.Outgoing) error
	can     func(*queue.Capabilities)
}

func (f *faulty) Capabilities() queue.Capabilities {
	can := f.MemoryBroker.Capabilities()
	if f.can != nil {
		f.can(&can)
	}
	return can
}

func (f *faulty) Receive(ctx context.Context, w queue.Want) ([]*queue.Delivery, error) {
	if f.receive != nil {
		return f.receive(ctx, w)
	}
	return f.MemoryBroker.Receive(ctx, w)
}

func (f *faulty) Extend(ctx context.Context, d *queue.Delivery, lease time.Duration) (time.Time, error) {
	if f.extend != nil {
		return f.extend(ctx, d, lease)
	}
	return f.MemoryBroker.Extend(ctx, d, lease)
}

func (f *faulty) Settle(ctx context.Context, d *queue.Delivery, s queue.Settlement) error {
	if f.settle != nil {
		return f.settle(ctx, d, s)
	}
	return f.MemoryBroker.Settle(ctx, d, s)
}

func (f *faulty) Send(ctx context.Context, o queue.Outgoing) error {
	if f.send != nil {
		return f.send(ctx, o)
	}
	return f.MemoryBroker.Send(ctx, o)
}

// settling is a broker whose settlements are changed before they are made.
func settling(change func(s *queue.Settlement)) func(f *faulty) {
	return func(f *faulty) {
		f.settle = func(ctx context.Context, d *queue.Delivery, s queue.Settlement) error {
			change(&s)
			return f.MemoryBroker.Settle(ctx, d, s)
		}
	}
}

// swapped is a broker that carries out another outcome.
func swapped(from, to queue.MessageOutcome) func(f *faulty) {
	return settling(func(s *queue.Settlement) {
		if s.Outcome == from {
			s.Outcome, s.Envelope = to, envelope("x")
		}
	})
}

// settleWith is a broker with another Settle.
func settleWith(settle func(ctx context.Context, m *queue.MemoryBroker, d *queue.Delivery, s queue.Settlement) error) func(f *faulty) {
	return func(f *faulty) {
		f.settle = func(ctx context.Context, d *queue.Delivery, s queue.Settlement) error {
			return settle(ctx, f.MemoryBroker, d, s)
		}
	}
}

// receiveWith is a broker with another Receive.
func receiveWith(receive func(ctx context.Context, m *queue.MemoryBroker, w queue.Want) ([]*queue.Delivery, error)) func(f *faulty) {
	return func(f *faulty) {
		f.receive = func(ctx context.Context, w queue.Want) ([]*queue.Delivery, error) {
			return receive(ctx, f.MemoryBroker, w)
		}
	}
}

// receiving is a broker whose deliveries are changed before they are returned.
func receiving(change func(d *queue.Delivery)) func(f *faulty) {
	return func(f *faulty) {
		f.receive = func(ctx context.Context, w queue.Want) ([]*queue.Delivery, error) {
			got, err := f.MemoryBroker.Receive(ctx, w)
			for _, d := range got {
				change(d)
			}
			return got, err
		}
	}
}

// burying is a broker that writes the dead letters that write returns, or none if they
// have no body.
func burying(write func(d *queue.Delivery, e *queue.Envelope) queue.Outgoing) func(f *faulty) {
	return func(f *faulty) {
		f.settle = func(ctx context.Context, d *queue.Delivery, s queue.Settlement) error {
			if s.Outcome != queue.DeadLetter {
				return f.MemoryBroker.Settle(ctx, d, s)
			}
			if err := f.MemoryBroker.Settle(ctx, d, queue.Settlement{Outcome: queue.Ack}); err != nil {
				return err
			}
			if o := write(d, s.Envelope); len(o.Body) > 0 {
				return f.MemoryBroker.DeadLetters().Send(ctx, o)
			}
			return nil
		}
	}
}

// letters is a reading with which something is wrong.
type letters struct {
	queue.DeadLetters
	next   func(ctx context.Context, max int) ([]*queue.Letter, error)
	remove func(ctx context.Context, l *queue.Letter) error
	close  func(ctx context.Context) error
}

func (x *letters) Next(ctx context.Context, max int) ([]*queue.Letter, error) {
	if x.next != nil {
		return x.next(ctx, max)
	}
	return x.DeadLetters.Next(ctx, max)
}

func (x *letters) Remove(ctx context.Context, l *queue.Letter) error {
	if x.remove != nil {
		return x.remove(ctx, l)
	}
	return x.DeadLetters.Remove(ctx, l)
}

func (x *letters) Close(ctx context.Context) error {
	if x.close != nil {
		return x.close(ctx)
	}
	return x.DeadLetters.Close(ctx)
}

// reads is a connection whose readings are changed.
func reads(change func(x *letters)) func(m *queue.MemoryBroker) *Connection {
	return func(m *queue.MemoryBroker) *Connection {
		var all []queue.DeadLetters
		return &Connection{
			Broker: m, Sender: m,
			Letters: func(context.Context) (queue.DeadLetters, error) {
				from, err := queue.Scan(m.DeadLetters(), queue.ScanConfig{Lease: 2 * time.Second, Idle: 100 * time.Millisecond})
				all = append(all, from)
				x := &letters{DeadLetters: from}
				change(x)
				return x, err
			},
			Close: func() error {
				for _, from := range all {
					from.Close(context.Background())
				}
				return nil
			},
		}
	}
}

var groups = queue.MemoryBrokerConfig{Order: queue.PerGroup}

// broken are brokers that are not as they should be, and the subtests that must find
// that out.
var broken = []struct {
	what   string
	config queue.MemoryBrokerConfig
	fault  func(f *faulty)
	wrap   func(m *queue.MemoryBroker) *Connection // instead of fault
	found  []string
}{
	{what: "Retry does not count", fault: swapped(queue.Retry, queue.Defer), found: []string{"Attempt/rises with Retry"}},
	{what: "Defer counts", fault: swapped(queue.Defer, queue.Retry), found: []string{"Attempt/and Defer", "Consumer/stops"}},
	{what: "what was never settled does not count", fault: func(f *faulty) {
		lapsed := map[string]int{}
		out := map[string]bool{}
		f.receive = func(ctx context.Context, w queue.Want) ([]*queue.Delivery, error) {
			got, err := f.MemoryBroker.Receive(ctx, w)
			for _, d := range got {
				if out[d.ID] {
					lapsed[d.ID]++
				}
				out[d.ID] = true
				d.Attempt -= lapsed[d.ID]
			}
			return got, err
		}
		f.settle = func(ctx context.Context, d *queue.Delivery, s queue.Settlement) error {
			delete(out, d.ID)
			return f.MemoryBroker.Settle(ctx, d, s)
		}
	}, found: []string{"Attempt/rises when nobody settles"}},
	{what: "attempts are counted by the connection", fault: func(f *faulty) {
		seen := map[string]int{}
		receiving(func(d *queue.Delivery) { seen[d.ID]++; d.Attempt = seen[d.ID] })(f)
	}, found: []string{"Attempt/over connections"}},
	{what: "attempts are counted from zero", fault: receiving(func(d *queue.Delivery) { d.Attempt-- }), found: []string{"Receive/as it was sent", "Attempt/rises with Retry"}},
	{what: "each delivery has an id of its own", fault: receiving(func(d *queue.Delivery) { d.ID = fmt.Sprint(d.ID, ".", d.Attempt) }), found: []string{"Attempt/rises with Retry"}},
	{what: "the first failure is overwritten", fault: func(f *faulty) {
		last := time.Time{}
		f.settle = func(ctx context.Context, d *queue.Delivery, s queue.Settlement) error {
			last = s.FirstFailed
			return f.MemoryBroker.Settle(ctx, d, s)
		}
		receiving(func(d *queue.Delivery) { d.FirstFailed = last })(f)
	}, found: []string{"Attempt/rises with Retry"}},
	{what: "what was sent again counts as new", fault: receiving(func(d *queue.Delivery) { d.Enqueued = time.Now(); d.FirstSeen = time.Now() }), found: []string{"Attempt/rises when nobody settles"}},

	{what: "no delays", fault: settling(func(s *queue.Settlement) { s.After = 0 }), found: []string{"Delay/Retry", "Delay/Defer", "Delay/longest"}},
	{what: "delays a little short", fault: settling(func(s *queue.Settlement) { s.After = max(s.After-time.Millisecond, 0) }), found: []string{"Delay/Retry", "Delay/Defer"}},
	{what: "long delays are refused", fault: settleWith(func(ctx context.Context, m *queue.MemoryBroker, d *queue.Delivery, s queue.Settlement) error {
		if s.After > time.Hour {
			return errBlip
		}
		return m.Settle(ctx, d, s)
	}), found: []string{"Delay/longest"}},
	{what: "some of what is to be tried again is lost", fault: func(f *faulty) {
		n := 0
		settling(func(s *queue.Settlement) {
			if n++; n%3 == 0 && s.Outcome == queue.Retry {
				s.Outcome = queue.Drop
			}
		})(f)
	}, found: []string{"Delay/Retry", "Attempt/rises with Retry"}},

	{what: "a dead letter without its envelope", fault: burying(func(d *queue.Delivery, e *queue.Envelope) queue.Outgoing {
		return queue.Outgoing{Headers: d.Headers, Body: d.Body, Group: d.Group}
	}), found: []string{"Settle/dead letter", "Consumer/outcomes", "Settle/dead letter of a redriven message"}},
	{what: "a dead letter without its headers", fault: burying(func(d *queue.Delivery, e *queue.Envelope) queue.Outgoing {
		return queue.Outgoing{Headers: queue.LetterHeaders(nil, e), Body: d.Body, Group: d.Group}
	}), found: []string{"Settle/dead letter", "Redrive/all"}},
	{what: "a dead letter with part of its body", fault: burying(func(d *queue.Delivery, e *queue.Envelope) queue.Outgoing {
		return queue.Outgoing{Headers: queue.LetterHeaders(d.Headers, e), Body: bytes.TrimRight(d.Body, "\x00\xff"), Group: d.Group}
	}), found: []string{"Settle/dead letter"}},
	{what: "a dead letter without its group", config: groups, fault: burying(func(d *queue.Delivery, e *queue.Envelope) queue.Outgoing {
		return queue.Outgoing{Headers: queue.LetterHeaders(d.Headers, e), Body: d.Body}
	}), found: []string{"Settle/dead letter"}},
	{what: "the envelope of the last time", fault: burying(func(d *queue.Delivery, e *queue.Envelope) queue.Outgoing {
		h := queue.LetterHeaders(d.Headers, e)
		maps.Copy(h, d.Headers)
		return queue.Outgoing{Headers: h, Body: d.Body}
	}), found: []string{"Settle/dead letter of a redriven message"}},
	{what: "no dead letter", fault: burying(func(*queue.Delivery, *queue.Envelope) queue.Outgoing { return queue.Outgoing{} }),
		found: []string{"Settle/dead letter", "Letters/read and removed", "Letters/of one group", "Redrive/some", "Redrive/canceled"}},
	{what: "a dead letter, and the message too", fault: settleWith(func(ctx context.Context, m *queue.MemoryBroker, d *queue.Delivery, s queue.Settlement) error {
		if s.Outcome == queue.DeadLetter {
			return m.DeadLetters().Send(ctx, queue.Outgoing{Headers: queue.LetterHeaders(d.Headers, s.Envelope), Body: d.Body})
		}
		return m.Settle(ctx, d, s)
	}), found: []string{"Settle/dead letter", "Consumer/outcomes"}},
	{what: "terminal errors are tried again by the broker", fault: settleWith(func(ctx context.Context, m *queue.MemoryBroker, d *queue.Delivery, s queue.Settlement) error {
		if s.Outcome == queue.DeadLetter && d.Attempt < 3 {
			s = queue.Settlement{Outcome: queue.Retry}
		}
		return m.Settle(ctx, d, s)
	}), found: []string{"Consumer/outcomes"}},

	{what: "an acknowledgement is lost", fault: settleWith(func(ctx context.Context, m *queue.MemoryBroker, d *queue.Delivery, s queue.Settlement) error {
		if s.Outcome == queue.Ack {
			return ctx.Err()
		}
		return m.Settle(ctx, d, s)
	}), found: []string{"Settle/ack", "Send/concurrently"}},
	{what: "a drop is lost", fault: swapped(queue.Drop, queue.Retry), found: []string{"Settle/drop", "Consumer/outcomes"}},
	{what: "a dropped message becomes a dead letter", fault: swapped(queue.Drop, queue.DeadLetter), found: []string{"Settle/drop"}},
	{what: "ErrLost is never said", fault: func(f *faulty) {
		f.settle = func(ctx context.Context, d *queue.Delivery, s queue.Settlement) error {
			if err := f.MemoryBroker.Settle(ctx, d, s); !errors.Is(err, queue.ErrLost) {
				return err
			}
			return nil
		}
		f.extend = func(ctx context.Context, d *queue.Delivery, lease time.Duration) (time.Time, error) {
			t, err := f.MemoryBroker.Extend(ctx, d, lease)
			if errors.Is(err, queue.ErrLost) {
				return time.Now().Add(lease), nil
			}
			return t, err
		}
	}, found: []string{"Settle/twice", "Settle/once more while it waits", "Settle/what was lost, ack", "Extend/says what was lost"}},
	{what: "whoever has had a message can settle it", fault: func(f *faulty) {
		// as a broker does that knows messages, not deliveries
		latest, _ := latestOf.LoadOrStore(f.MemoryBroker, &sync.Map{})
		receiving(func(d *queue.Delivery) { latest.(*sync.Map).Store(d.ID, d) })(f)
		f.settle = func(ctx context.Context, d *queue.Delivery, s queue.Settlement) error {
			if x, ok := latest.(*sync.Map).Load(d.ID); ok {
				d = x.(*queue.Delivery)
			}
			return f.MemoryBroker.Settle(ctx, d, s)
		}
	}, found: []string{"Settle/once more while it waits",
		"Settle/what was lost, ack", "Settle/what was lost, retry", "Settle/what was lost, defer", "Settle/what was lost, dead letter", "Settle/what was lost, drop"}},
	{what: "one settlement at a time, others fail", fault: func(f *faulty) {
		var busy sync.Mutex
		f.settle = func(ctx context.Context, d *queue.Delivery, s queue.Settlement) error {
			if !busy.TryLock() {
				return errBlip
			}
			defer busy.Unlock()
			time.Sleep(time.Millisecond) //clock: run in a bubble
			return f.MemoryBroker.Settle(ctx, d, s)
		}
	}, found: []string{"Settle/concurrently"}},

	{what: "losses are not told", fault: receiving(func(d *queue.Delivery) { d.Lost = 0 }), found: []string{"Attempt/what was lost"}},
	{what: "crashes are forgotten", fault: settling(func(s *queue.Settlement) { s.Crashes = 0 }), found: []string{"Attempt/what was lost"}},
	{what: "lost deliveries stay attempts", fault: settling(func(s *queue.Settlement) { s.Uncount = 0 }), found: []string{"Attempt/what was lost"}},

	{what: "leases lapse early", fault: func(f *faulty) {
		f.receive = func(ctx context.Context, w queue.Want) ([]*queue.Delivery, error) {
			w.Lease = w.Lease * 3 / 4
			got, err := f.MemoryBroker.Receive(ctx, w)
			for _, d := range got {
				d.Lease = d.Lease.Add(w.Lease / 3)
			}
			return got, err
		}
		f.extend = func(ctx context.Context, d *queue.Delivery, lease time.Duration) (time.Time, error) {
			_, err := f.MemoryBroker.Extend(ctx, d, lease*3/4)
			return time.Now().Add(lease), err
		}
	}, found: []string{"Receive/out with one only", "Extend/ends when it says"}},
	{what: "leases lapse at once", fault: receiveWith(func(ctx context.Context, m *queue.MemoryBroker, w queue.Want) ([]*queue.Delivery, error) {
		got, err := m.Receive(ctx, queue.Want{Max: w.Max, Lease: 1})
		for _, d := range got {
			d.Lease = d.Lease.Add(w.Lease)
		}
		return got, err
	}), found: []string{"Receive/out with one only"}},
	{what: "leases are not extended", fault: func(f *faulty) {
		f.extend = func(ctx context.Context, d *queue.Delivery, lease time.Duration) (time.Time, error) {
			return time.Now().Add(lease), nil
		}
	}, found: []string{"Extend/keeps the message", "Extend/says what was lost", "Extend/ends when it says", "Consumer/a handler longer than the lease"}},
	{what: "what is extended counts", config: queue.MemoryBrokerConfig{}, fault: func(f *faulty) {
		f.extend = func(ctx context.Context, d *queue.Delivery, lease time.Duration) (time.Time, error) {
			f.MemoryBroker.Settle(ctx, d, queue.Settlement{Outcome: queue.Retry})
			return time.Now().Add(lease), ctx.Err()
		}
	}, found: []string{"Extend/keeps the message", "Consumer/a handler longer than the lease"}},
	{what: "no lease is told", fault: receiving(func(d *queue.Delivery) { d.Lease = time.Time{} }), found: []string{"Receive/as it was sent"}},
	{what: "a lease is told where there is none", fault: func(f *faulty) { f.can = func(c *queue.Capabilities) { c.Leases, c.Extends = false, false } }, found: []string{"Receive/as it was sent"}},

	{what: "an order is promised and not kept", fault: func(f *faulty) { f.can = func(c *queue.Capabilities) { c.Order = queue.PerGroup } },
		found: []string{"Order/one of a group at a time", "Order/who waits holds up its group", "Order/over retries and consumers"}},
	{what: "an order is promised, and is that of the dead", config: groups, fault: swapped(queue.DeadLetter, queue.Retry), found: []string{"Order/a dead letter leaves it"}},
	{what: "a group that is all groups", config: queue.MemoryBrokerConfig{Order: queue.Total}, fault: func(f *faulty) { f.can = func(c *queue.Capabilities) { c.Order = queue.PerGroup } },
		found: []string{"Order/one of a group at a time", "Order/who waits holds up its group"}},

	{what: "what is called with a context that has ended is done", fault: settleWith(func(ctx context.Context, m *queue.MemoryBroker, d *queue.Delivery, s queue.Settlement) error {
		return errors.Join(m.Settle(context.WithoutCancel(ctx), d, s), ctx.Err())
	}), found: []string{"Contexts that have ended change nothing"}},
	{what: "what is sent with a context that has ended is sent", fault: func(f *faulty) {
		f.send = func(ctx context.Context, o queue.Outgoing) error {
			return errors.Join(f.MemoryBroker.Send(context.WithoutCancel(ctx), o), ctx.Err())
		}
	}, found: []string{"Contexts that have ended change nothing"}},
	{what: "messages are lost with a context that has ended", fault: receiveWith(func(ctx context.Context, m *queue.MemoryBroker, w queue.Want) ([]*queue.Delivery, error) {
		if err := ctx.Err(); err != nil {
			m.Receive(context.WithoutCancel(ctx), w)
			return nil, err
		}
		return m.Receive(ctx, w)
	}), found: []string{"Contexts that have ended change nothing"}},
	{what: "Receive does not end with its context", fault: receiveWith(func(ctx context.Context, m *queue.MemoryBroker, w queue.Want) ([]*queue.Delivery, error) {
		got, err := m.Receive(ctx, w)
		if err != nil {
			time.Sleep(2 * time.Minute)
		}
		return got, err
	}), found: []string{"Receive/ends with its context"}},
	{what: "a Receive that has ended takes what comes", fault: receiveWith(func(ctx context.Context, m *queue.MemoryBroker, w queue.Want) ([]*queue.Delivery, error) {
		got, err := m.Receive(ctx, w)
		if err != nil {
			late, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Millisecond) //clock: run in a bubble
			defer cancel()
			m.Receive(late, w)
		}
		return got, err
	}), found: []string{"Receive/ends while messages come"}},
	{what: "Receive returns at once", fault: receiveWith(func(ctx context.Context, m *queue.MemoryBroker, w queue.Want) ([]*queue.Delivery, error) {
		if m.Len() == 0 {
			return nil, errBlip
		}
		return m.Receive(ctx, w)
	}), found: []string{"Receive/waits"}},
	{what: "Receive waits for all that was asked for", fault: func(f *faulty) {
		f.receive = func(ctx context.Context, w queue.Want) (all []*queue.Delivery, err error) {
			for len(all) < w.Max && err == nil {
				var got []*queue.Delivery
				got, err = f.MemoryBroker.Receive(ctx, queue.Want{Max: w.Max - len(all), Lease: w.Lease})
				all = append(all, got...)
			}
			return all, err
		}
	}, found: []string{"Receive/waits"}},
	{what: "Receive returns more than asked for", fault: func(f *faulty) {
		f.receive = func(ctx context.Context, w queue.Want) ([]*queue.Delivery, error) {
			return f.MemoryBroker.Receive(ctx, queue.Want{Max: w.Max + 1, Lease: w.Lease})
		}
	},
		found: []string{"Send/concurrently"}},
	{what: "headers are in lower case", fault: receiving(func(d *queue.Delivery) {
		h := queue.Headers{}
		for name, value := range d.Headers {
			h[strings.ToLower(name)] = value
		}
		d.Headers = h
	}), found: []string{"Receive/as it was sent", "Redrive/all"}},
	{what: "bodies are text", fault: receiving(func(d *queue.Delivery) { d.Body = []byte(strings.ToValidUTF8(string(d.Body), "?")) }), found: []string{"Receive/any body"}},
	{what: "no body is a space", fault: receiving(func(d *queue.Delivery) {
		if len(d.Body) == 0 {
			d.Body = []byte(" ")
		}
	}), found: []string{"Receive/any body"}},
	{what: "capabilities change", fault: func(f *faulty) {
		n := time.Duration(0)
		f.can = func(c *queue.Capabilities) { n++; c.MaxDelay += n }
	}, found: []string{"Capabilities"}},

	{what: "deduplication is promised and not done", config: queue.MemoryBrokerConfig{Duplicates: -1}, fault: func(f *faulty) { f.can = func(c *queue.Capabilities) { c.Deduplicates = true } },
		found: []string{"Send/the same id", "Redrive/cut between sending and removing"}},
	{what: "messages with one body are taken for one", fault: func(f *faulty) {
		f.send = func(ctx context.Context, o queue.Outgoing) error {
			o.ID = string(o.Body)
			return f.MemoryBroker.Send(ctx, o)
		}
	}, found: []string{"Send/the same id"}},
	{what: "letters of messages that are alike are taken for one", fault: func(f *faulty) {
		f.send = func(ctx context.Context, o queue.Outgoing) error {
			if o.Letter != nil {
				o.ID = "redrive-" + o.Letter.OriginalID
			}
			return f.MemoryBroker.Send(ctx, o)
		}
	}, found: []string{"Redrive/letters that are alike"}},
	{what: "of those sent at a time one is lost", fault: func(f *faulty) {
		n := 0
		var mu sync.Mutex
		f.send = func(ctx context.Context, o queue.Outgoing) error {
			mu.Lock()
			n++
			lost := n == 7
			mu.Unlock()
			if lost {
				return nil
			}
			return f.MemoryBroker.Send(ctx, o)
		}
	}, found: []string{"Send/concurrently"}},

	{what: "a pause costs an attempt", wrap: aheadConnection(queue.Retry), found: []string{"Pause", "Consumer/an open breaker costs nothing"}},
	{what: "a pause forgets what was fetched", wrap: aheadConnection(0), found: []string{"Pause"}},
	{what: "a pause fails", wrap: func(m *queue.MemoryBroker) *Connection { return &Connection{Broker: &unpausable{m}, Sender: m} }, found: []string{"Pause"}},

	{what: "letters are not removed", wrap: reads(func(x *letters) {
		x.remove = func(ctx context.Context, _ *queue.Letter) error { return ctx.Err() }
	}), found: []string{"Letters/read and removed", "Letters/of one group", "Redrive/all", "Redrive/some", "Redrive/canceled"}},
	{what: "letters cannot be removed twice", wrap: reads(func(x *letters) {
		gone := map[*queue.Letter]bool{}
		x.remove = func(ctx context.Context, l *queue.Letter) error {
			if gone[l] {
				return errBlip
			}
			gone[l] = true
			return x.DeadLetters.Remove(ctx, l)
		}
	}), found: []string{"Letters/read and removed"}},
	{what: "letters are removed by reading", wrap: reads(func(x *letters) {
		x.next = func(ctx context.Context, max int) ([]*queue.Letter, error) {
			got, err := x.DeadLetters.Next(ctx, max)
			for _, l := range got {
				x.DeadLetters.Remove(ctx, l)
			}
			return got, err
		}
	}), found: []string{"Letters/read and removed", "Letters/when the reader dies", "Letters/with a context that has ended"}},
	{what: "letters are not given back", wrap: reads(func(x *letters) {
		x.close = func(ctx context.Context) error { return nil }
	}), found: []string{"Letters/read and removed"}},
	{what: "letters are returned twice", wrap: reads(func(x *letters) {
		var last []*queue.Letter
		x.next = func(ctx context.Context, max int) ([]*queue.Letter, error) {
			if len(last) > 0 {
				got := last
				last = nil
				return got, nil
			}
			got, err := x.DeadLetters.Next(ctx, max)
			last = got
			return got, err
		}
	}), found: []string{"Letters/read and removed"}},
	{what: "more letters than asked for", wrap: reads(func(x *letters) {
		x.next = func(ctx context.Context, max int) ([]*queue.Letter, error) { return x.DeadLetters.Next(ctx, max+1) }
	}), found: []string{"Letters/read and removed"}},
	{what: "a reading ends early", wrap: reads(func(x *letters) {
		n := 0
		x.next = func(ctx context.Context, max int) ([]*queue.Letter, error) {
			if n++; n > 2 {
				return nil, io.EOF
			}
			return x.DeadLetters.Next(ctx, max)
		}
	}), found: []string{"Letters/read and removed"}},
	{what: "there are letters where there are none", wrap: reads(func(x *letters) {
		n := 0
		x.next = func(ctx context.Context, max int) ([]*queue.Letter, error) {
			if n++; n == 1 {
				return []*queue.Letter{{}}, nil
			}
			return x.DeadLetters.Next(ctx, max)
		}
	}), found: []string{"Settle/ack"}},
	{what: "letters are removed with a context that has ended", wrap: reads(func(x *letters) {
		x.remove = func(ctx context.Context, l *queue.Letter) error {
			return errors.Join(x.DeadLetters.Remove(context.WithoutCancel(ctx), l), ctx.Err())
		}
	}), found: []string{"Letters/with a context that has ended"}},
}

var latestOf sync.Map // by *queue.MemoryBroker

// unpausable is a Pauser that fails.
type unpausable struct{ *queue.MemoryBroker }

func (u *unpausable) Pause(context.Context, time.Time) error { return errBlip }

// The suite finds what is wrong: each broken broker fails the subtests that are there to
// find it, and there is no subtest that nothing fails.
func TestBroken(t *testing.T) {
	t.Parallel()
	byName := map[string]check{}
	never := map[string]bool{}
	for _, c := range checks {
		byName[c.name] = c
		never[c.name] = !c.process
	}
	for _, x := range broken {
		t.Run(x.what, func(t *testing.T) {
			wrap := x.wrap
			if wrap == nil {
				wrap = func(m *queue.MemoryBroker) *Connection {
					f := &faulty{MemoryBroker: m}
					x.fault(f)
					return &Connection{Broker: f, Sender: f}
				}
			}
			target := memoryTarget(x.config, wrap).withDefaults()
			m, _ := queue.NewMemoryBroker(x.config)
			order := wrap(m).Broker.Capabilities().Order
			for _, name := range x.found {
				c, ok := byName[name]
				if !ok {
					t.Fatalf("no subtest %q", name)
				}
				never[name] = false
				r := &recorder{TB: t}
				synctest.Test(t, func(t *testing.T) {
					r.run(func(t testing.TB) { c.run(newTester(t, target, order)) })
				})
				if !r.Failed() {
					t.Errorf("%s finds nothing wrong (skipped: %v)\n%s", name, r.Skipped(), r.text())
				} else if testing.Verbose() {
					t.Logf("%s: %s", name, r.said[0])
				}
			}
		})
	}
	var names []string
	for name, yes := range never {
		if yes {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		t.Errorf("no broken broker is found by %s", name)
	}
}
