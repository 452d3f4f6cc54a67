package queuetest

import (
	"fmt"
	"sync"

	"github.com/lullgo/lull/queue"
)

var senderChecks = []check{
	{name: "Send/concurrently", run: sendConcurrently},
	{name: "Send/the same id", run: sendSame},
}

func sendConcurrently(b *tester) {
	const senders, each = 4, 10
	var work sync.WaitGroup
	for s := range senders {
		work.Go(func() {
			for i := range each {
				err := b.Sender.Send(b.ctx, queue.Outgoing{Group: b.group(), Body: fmt.Append(nil, s, ".", i)})
				if err != nil {
					b.Errorf("Send: %v", err)
				}
			}
		})
	}
	work.Wait()
	seen, ids := map[string]int{}, map[string]bool{}
	for len(seen) < senders*each {
		for _, d := range b.receive(b.Connection, 10) {
			seen[string(d.Body)]++
			if ids[d.ID] {
				b.Errorf("two messages have the id %s, or one was delivered after Ack", d.ID)
			}
			ids[d.ID] = true
			b.ack(d)
		}
	}
	for body, n := range seen {
		b.equal("how often message "+body+" came", n, 1)
	}
	b.expectEmpty("after Ack")
}

// Messages with one id are discarded but one, where the broker can do that. Dead letters of two messages never are.
func sendSame(b *tester) {
	if !b.can.Deduplicates {
		b.Skip("not for this broker: this broker does not deduplicate")
	}
	for range 3 {
		b.sendOne(queue.Outgoing{ID: "the-same", Group: "g", Body: []byte("hello")})
	}
	b.sendOne(queue.Outgoing{ID: "another", Group: "g", Body: []byte("hello")})
	var got []*queue.Delivery
	for range 2 {
		d := b.receiveOne()
		got = append(got, d)
		b.settle(b.Connection, d, queue.Settlement{Outcome: queue.DeadLetter, Envelope: envelope("one")})
	}
	if got[0].ID == got[1].ID {
		b.Errorf("two messages with one id %s", got[0].ID)
	}
	b.expectEmpty("of what was sent three times")
	b.equal("dead letters of two messages with one original id", len(b.letters(false)), 2)
}
