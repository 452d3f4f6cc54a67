package queuetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/queue"
)

var orderChecks = []check{
	{name: "Order/one of a group at a time", run: orderOne},
	{name: "Order/who waits holds up its group", run: orderWaits},
	{name: "Order/a dead letter leaves it", run: orderDead},
	{name: "Order/over retries and consumers", run: orderRetries},
}

func (b *tester) needOrder() {
	b.Helper()
	if b.can.Order == queue.Unordered {
		b.Skip("not for this broker: no order is kept")
	}
}

func (b *tester) sendIn(group string, bodies ...string) {
	for _, body := range bodies {
		b.sendOne(queue.Outgoing{Group: group, Body: []byte(body)})
	}
}

func orderOne(b *tester) {
	b.needOrder()
	b.sendIn("a", "a1", "a2", "a3")
	if b.can.Order == queue.PerGroup {
		b.sendIn("b", "b1")
	}
	other := b.connect()
	out := b.receiveAll(b.Connection, map[queue.Order]int{queue.PerGroup: 2, queue.Total: 1}[b.can.Order])
	for _, d := range out {
		if !strings.HasSuffix(string(d.Body), "1") {
			b.Errorf("%s came before the first of its group was gone", d.Body)
		}
	}
	b.expectNothing(other, b.o.Lease/2, "while the first of each group is out with another connection")
	for _, d := range out {
		b.ack(d)
	}
	for _, want := range []string{"a2", "a3"} {
		b.take("the next", want)
	}
}

func orderWaits(b *tester) {
	b.needOrder()
	if b.can.MaxDelay == 0 {
		b.Skip("not for this broker: there are no delays")
	}
	for _, o := range []queue.MessageOutcome{queue.Retry, queue.Defer} {
		b.sendIn("a", "a1", "a2")
		d := b.receiveOne()
		b.equal("the first", string(d.Body), "a1")
		due := time.Now().Add(b.after(1500 * time.Millisecond))
		b.settle(b.Connection, d, queue.Settlement{Outcome: o, After: b.after(1500 * time.Millisecond)})
		if b.can.Order == queue.PerGroup {
			b.sendIn("b", "b1")
			b.take("while the first waits, from another group", "b1")
		}
		d = b.receiveOne()
		b.equal("after "+o.String(), string(d.Body), "a1")
		if now := time.Now(); now.Before(due) {
			b.Errorf("it came %v early", due.Sub(now))
		}
		b.ack(d)
		b.take("and then", "a2")
	}
}

func orderDead(b *tester) {
	b.needOrder()
	b.sendIn("a", "a1", "a2")
	b.settle(b.Connection, b.receiveOne(), queue.Settlement{Outcome: queue.DeadLetter})
	d := b.receiveOne()
	b.equal("after a dead letter", string(d.Body), "a2")
	b.equal("its attempt", d.Attempt, 1)
	b.ack(d)
}

// Two consumers handle groups in which some messages fail: each group comes in order, with retries before the next.
func orderRetries(b *tester) {
	b.needOrder()
	const n = 8
	var groups []string
	for i := range map[queue.Order]int{queue.PerGroup: 5, queue.Total: 1}[b.can.Order] {
		groups = append(groups, fmt.Sprint("g", i))
	}
	for i := range n {
		for _, g := range groups {
			b.sendIn(g, fmt.Sprintf("%s:%d", g, i))
		}
	}
	var mu sync.Mutex
	next, busy, handled := map[string]int{}, map[string]bool{}, 0
	handler := func(_ context.Context, m *queue.Message) error {
		group, number, _ := strings.Cut(string(m.Body), ":")
		mu.Lock()
		if busy[group] {
			b.Errorf("two of the group %s are handled at a time", group)
		}
		busy[group] = true
		if number != fmt.Sprint(next[group]) {
			b.Errorf("of the group %s came number %s, want %d", group, number, next[group])
		}
		mu.Unlock()
		time.Sleep(10 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		busy[group] = false
		if (number == "2" || number == "5") && m.Attempt == 1 {
			return lull.Transient(errBlip)
		}
		next[group]++
		handled++
		return nil
	}
	r1 := b.start(b.Connection, plain(5, 100*time.Millisecond), queue.Config{}, handler)
	r2 := b.start(b.connect(), plain(5, 100*time.Millisecond), queue.Config{}, handler)
	b.await("all are handled", func() bool { mu.Lock(); defer mu.Unlock(); return handled == n*len(groups) })
	r1.stop()
	r2.stop()
	b.expectEmpty("after all were handled")
}
