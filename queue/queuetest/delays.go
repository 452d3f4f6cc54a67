package queuetest

import (
	"slices"
	"strconv"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/queue"
)

var delayChecks = []check{
	{name: "Delay/Retry", run: func(b *tester) { delayed(b, queue.Retry) }},
	{name: "Delay/Defer", run: func(b *tester) { delayed(b, queue.Defer) }},
	{name: "Delay/longest", run: longestDelay},
}

// No message comes before its delay is over. How late it comes is logged.
func delayed(b *tester, o queue.MessageOutcome) {
	delays := []time.Duration{0, time.Millisecond, 30 * time.Millisecond, 210 * time.Millisecond, 900 * time.Millisecond, 1100 * time.Millisecond, 2500 * time.Millisecond}
	if b.can.Order == queue.Total { // its messages wait for each other
		delays = []time.Duration{0, 210 * time.Millisecond, 1100 * time.Millisecond}
	}
	delays = slices.DeleteFunc(delays, func(d time.Duration) bool { return d > b.can.MaxDelay })
	together := choice.Either(b.can.Order == queue.Total, 1, len(delays))
	due, late := make([]time.Time, len(delays)), []time.Duration(nil)
	for i := range delays {
		b.send(strconv.Itoa(i))
	}
	for len(late) < len(delays) {
		for _, d := range b.receiveAll(b.Connection, together) {
			i, _ := strconv.Atoi(string(d.Body))
			due[i] = time.Now().Add(delays[i])
			b.settle(b.Connection, d, queue.Settlement{Outcome: o, After: delays[i]})
		}
		for range together {
			late = append(late, b.arrive(due))
		}
	}
	slices.Sort(late)
	b.Logf("lateness of %d delays up to %v: median %v, longest %v", len(delays), delays[len(delays)-1], late[len(late)/2], late[len(late)-1])
	b.expectEmpty("after all were acknowledged")
}

// arrive takes the next message and returns how late it is.
func (b *tester) arrive(due []time.Time) time.Duration {
	d := b.receiveOne()
	now := time.Now()
	i, _ := strconv.Atoi(string(d.Body))
	if due[i].IsZero() {
		b.Fatalf("the message %d came again before it was settled", i)
	}
	if now.Before(due[i]) {
		b.Errorf("a message came %v early", due[i].Sub(now))
	}
	b.ack(d)
	return now.Sub(due[i])
}

// The longest delay is taken. A longer one, or an invalid settlement, is refused permanently and changes nothing.
func longestDelay(b *tester) {
	b.send("hello")
	d := b.receiveOne()
	for _, s := range []queue.Settlement{{}, {Outcome: queue.Retry, After: b.can.MaxDelay + 1}, {Outcome: queue.Defer, After: -1}} {
		if err := b.Broker.Settle(b.ctx, d, s); lull.Classify(err).Kind != lull.KindPermanent {
			b.Errorf("%+v is not refused permanently: %v", s, err)
		}
	}
	if b.can.MaxDelay == 0 {
		b.ack(d)
		return
	}
	b.settle(b.Connection, d, queue.Settlement{Outcome: queue.Retry, After: b.can.MaxDelay})
	b.expectNothing(b.Connection, min(b.can.MaxDelay*9/10, 2*time.Second), "a message that waits for "+b.can.MaxDelay.String())
}
