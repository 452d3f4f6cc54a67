package queuetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/queue"
)

var consumerChecks = []check{
	{name: "Consumer/outcomes", run: consumerOutcomes},
	{name: "Consumer/a handler longer than the lease", run: consumerLong},
	{name: "Consumer/an open breaker costs nothing", run: consumerBreaker},
	{name: "Consumer/stops", run: consumerStops},
	{name: "Consumer/poison that exits", run: func(b *tester) { consumerPoison(b, "exit", 0, 1, 3) }, process: true},
	{name: "Consumer/poison that kills", run: func(b *tester) { consumerPoison(b, "kill", 0, 1, 3) }, process: true},
	{name: "Consumer/poison beside others", run: func(b *tester) { consumerPoison(b, "kill", 23, 2, 2) }, process: true},
}

var errBlip = errors.New("blip")

type tally struct {
	mu   sync.Mutex
	seen map[string][]int
}

func (t *tally) add(m *queue.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen == nil {
		t.seen = map[string][]int{}
	}
	t.seen[string(m.Body)] = append(t.seen[string(m.Body)], m.Attempt)
}

func (t *tally) all() map[string][]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.seen)
}

func consumerOutcomes(b *tester) {
	b.send("fine", "blip", "sick", "bad", "wrong schema", "panic", "duplicate", "too early")
	var deferrals atomic.Int64
	var seen tally
	r := b.start(b.Connection, plain(3, 50*time.Millisecond), queue.Config{}, func(_ context.Context, m *queue.Message) error {
		seen.add(m)
		switch string(m.Body) {
		case "blip":
			if m.Attempt == 1 {
				return lull.Transient(errBlip)
			}
		case "sick":
			return lull.Transient(errBlip)
		case "bad":
			return lull.Permanent(errBlip)
		case "wrong schema":
			return queue.DeadLetterAs("schema", errBlip)
		case "panic":
			panic(errBlip)
		case "duplicate":
			time.Sleep(time.Duration(m.Attempt-1) * time.Second) // for a broker that does not drop it
			return queue.DropMessage(errBlip)
		case "too early":
			if deferrals.Add(1) == 1 {
				return queue.DeferFor(nil, 100*time.Millisecond)
			}
		}
		return nil
	})
	b.await("all are settled", func() bool {
		return r.settled(queue.Ack) == 3 && r.settled(queue.DeadLetter) == 4 && r.settled(queue.Drop) == 1
	})
	r.stop()
	b.equal("attempts", seen.all(), map[string][]int{
		"fine": {1}, "blip": {1, 2}, "sick": {1, 2, 3}, "bad": {1}, "wrong schema": {1}, "panic": {1, 2, 3}, "duplicate": {1}, "too early": {1, 1 + b.price(queue.Defer)},
	})
	dead := map[string]string{}
	for _, l := range b.letters(false) {
		dead[string(l.Body)] = fmt.Sprint(l.Reason, " ", l.Attempts)
		if l.Source != "orders" || l.OriginalID == "" || len(l.Errors) == 0 || l.LastFailure.IsZero() || l.FirstFailure.IsZero() || l.Headers["kind"] != "test" {
			b.Errorf("letter %+v", *l)
		}
		if l.FirstFailure.After(l.LastFailure) {
			b.Errorf("%s: first failure %v after the last", l.Body, l.FirstFailure.Sub(l.LastFailure))
		}
	}
	b.equal("dead letters", dead, map[string]string{
		"sick": "attempts_exhausted 3", "bad": "permanent 1", "wrong schema": "schema 1", "panic": "panicked 3",
	})
	b.expectEmpty("after all were settled")
}

// A handler that is longer than its lease keeps its message; where no lease can be extended its context ends in time.
func consumerLong(b *tester) {
	b.send("long")
	var seen tally
	var ended []time.Duration // how long before the end of its lease the context did
	longest := 3 * b.o.Lease
	fixed := b.can.Leases && (!b.can.Extends || b.can.MaxLease > 0 && b.can.MaxLease <= longest)
	handler := func(ctx context.Context, m *queue.Message) error {
		seen.add(m)
		if fixed && m.Attempt == 2 {
			return nil
		}
		select {
		case <-time.After(longest):
			if fixed {
				b.Errorf("a lease that cannot be extended was outlived")
			}
			return nil
		case <-ctx.Done():
			until, _ := m.LeaseDeadline()
			ended = append(ended, time.Until(until))
			return ctx.Err()
		}
	}
	r := b.start(b.Connection, plain(3, 20*time.Millisecond), queue.Config{}, handler)
	other := b.start(b.connect(), plain(3, 20*time.Millisecond), queue.Config{}, handler)
	b.await("it is acknowledged", func() bool {
		return r.settled(queue.Ack)+other.settled(queue.Ack) == 1 || !fixed && len(seen.all()["long"]) > 1
	})
	r.stop()
	other.stop()
	if fixed {
		b.equal("attempts", seen.all()["long"], []int{1, 2})
		if len(ended) != 1 || ended[0] <= 0 {
			b.Errorf("the context ended %v before the lease", ended)
		}
	} else {
		b.equal("attempts", seen.all()["long"], []int{1})
		b.equal("contexts that ended", len(ended), 0)
		b.equal("leases that were lost", r.count(queue.EventLeaseLost)+other.count(queue.EventLeaseLost), 0)
	}
	b.expectEmpty("after Ack")
}

// While the breaker is open nothing is tried, and no message loses an attempt.
func consumerBreaker(b *tester) {
	p := plain(3, 20*time.Millisecond)
	p.Breaker = queue.Policy().Breaker
	var seen tally
	r := b.start(b.Connection, p, queue.Config{Concurrency: 4}, func(_ context.Context, m *queue.Message) error {
		seen.add(m)
		return nil
	})
	b.send("before")
	b.await("the first is handled", func() bool { return r.settled(queue.Ack) == 1 })
	open := func() { r.dep.Breaker().ForceOpen(r.dep.Now()) }
	open()
	for i := range 10 {
		b.send(fmt.Sprint(i))
	}
	time.Sleep(2*b.o.Lease + b.o.Lease/2)
	b.equal("handled while the breaker is open", len(seen.all()), 1)
	r.dep.Breaker().ForceClosed(r.dep.Now())
	b.await("all are handled", func() bool { return r.settled(queue.Ack) == 11 })
	r.stop()
	// A server that pushes may hand a message out in the moment in which it is stopped.
	crossed, most := 0, 0
	if _, pushes := b.Broker.(queue.Pauser); pushes && !b.target.Virtual {
		most = 2
	}
	for body, attempts := range seen.all() {
		if fmt.Sprint(attempts) == "[2]" && crossed < most {
			crossed++
			b.Logf("%s was handed out as the consumer was paused", body)
			continue
		}
		b.equal("attempts of "+body, attempts, []int{1})
	}
	b.equal("dead letters", len(b.letters(false)), 0)
	b.expectEmpty("after Ack")
}

// A consumer that is stopped lets its handlers end; what does not end, or has failed, is given back.
func consumerStops(b *tester) {
	const inTime, cutOff, failed = "ends in time", "is cut off", "has failed"
	bodies := []string{inTime, cutOff, failed}
	together := choice.Either(b.can.Order == queue.Total, 1, len(bodies)) // where one message is out at a time
	for bodies := range slices.Chunk(bodies, together) {
		b.send(bodies...)
		running, stopping := make(chan struct{}, together), make(chan struct{})
		r := b.start(b.Connection, plain(3, 20*time.Millisecond), queue.Config{Drain: time.Second, Concurrency: together}, func(ctx context.Context, m *queue.Message) error {
			running <- struct{}{}
			<-stopping
			switch string(m.Body) {
			case inTime:
				time.Sleep(500 * time.Millisecond)
				return ctx.Err()
			case cutOff:
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return errBlip
		})
		for range together {
			<-running
		}
		r.cancel()
		close(stopping)
		r.stop()
		b.reconnect()
		back := slices.DeleteFunc(slices.Clone(bodies), func(s string) bool { return s == inTime })
		b.equal("acknowledged", r.settled(queue.Ack), together-len(back))
		b.equal("given back", r.settled(queue.Defer), len(back))
		for range back {
			d := b.receiveOne()
			// A server that pushes may have handed it out to a reader that was just ending.
			b.equal("attempt of what was given back: "+string(d.Body), d.Attempt-d.Lost, 1+b.price(queue.Defer))
			b.ack(d)
		}
	}
	b.expectEmpty("after Ack")
}

// One message kills its workers. Others in flight come back and are handled. At last it is alone, and becomes a dead letter.
func consumerPoison(b *tester, how string, others, workers, attempts int) {
	const most = 6 // runs of it, more than attempts: three may be in company
	var sent []string
	for i := range others {
		sent = append(sent, fmt.Sprint(i))
	}
	b.send(slices.Insert(sent, min(5, others), how)...)
	type said struct {
		line string // empty: it has ended
		by   int
	}
	lines := make(chan said, 1000)
	all := make([]*worker, workers)
	begin := func(i int) {
		all[i] = b.startWorker(workPoison, attempts, 1+others/2, func(line string) { lines <- said{line, i} })
	}
	for i := range all {
		begin(i)
	}
	done := map[string]bool{}
	runs, buried := 0, 0
	for len(done)+buried <= others {
		var s said
		select {
		case s = <-lines:
		case <-b.ctx.Done():
		}
		if runs > most+4 || b.ctx.Err() != nil {
			b.Fatalf("after %d runs the poison is not a dead letter; %d of %d others are handled", runs, len(done), others)
		}
		word, body, _ := strings.Cut(s.line, " ")
		switch word {
		case "done":
			done[body] = true
		case lineBuried:
			buried++
		case "run":
			runs++
		case "":
			begin(s.by)
		case lineLate:
			b.late()
		default:
			b.Logf("a worker says %q", s.line)
		}
	}
	for _, w := range all {
		w.stop()
		w.wait()
	}
	if runs > most {
		b.Errorf("the poison was handled %d times, want %d at most", runs, most)
	}
	l := b.letter()
	b.equal("body of the dead letter", string(l.Body), how)
	b.equal("reason", l.Reason, queue.ReasonCrashed)
	b.equal("header", l.Headers["kind"], "test")
	if others == 0 {
		b.equal("runs of the handler", runs, most)
		b.equal("attempts", l.Attempts, most)
		b.expectEmpty("after the poison")
	}
}
