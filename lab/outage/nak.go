package main

import (
	"context"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/lullgo/lull/internal/must"
)

const maxDeliver = 10

// nak is a loop over nats.go in which a failure is answered with Nak, and MaxDeliver is
// relied on.
func nak(ctx context.Context, at place, handle handler) (letters func() int, stop func()) {
	conn, js := connect(at.url)
	c := must.Have(js.CreateConsumer(ctx, at.stream, jetstream.ConsumerConfig{Durable: "nak", AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: maxDeliver}))
	// What was delivered too often stays in the stream, and nobody gets it any more.
	var lost atomic.Int64
	must.Have(conn.Subscribe("$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES."+at.stream+".>", func(*nats.Msg) { lost.Add(1) }))
	slots := make(chan struct{}, at.workers)
	consuming := must.Have(c.Consume(func(m jetstream.Msg) {
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			if handle(context.Background(), string(m.Data())) != nil {
				m.Nak()
				return
			}
			m.Ack()
		}()
	}))
	return func() int { return int(lost.Load()) }, func() {
		consuming.Stop()
		conn.Close()
	}
}
