package main

import (
	"context"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const maxDeliver = 10

// nak is a loop over nats.go in which a failure is answered with Nak, and MaxDeliver is
// relied on.
func nak(ctx context.Context, at place, handle handler) (letters func() int, stop func(), err error) {
	conn, js, err := connect(at.url)
	if err != nil {
		return nil, nil, err
	}
	c, err := js.CreateConsumer(ctx, at.stream, jetstream.ConsumerConfig{Durable: "nak", AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: maxDeliver})
	if err != nil {
		return nil, nil, err
	}
	// What was delivered too often stays in the stream, and nobody gets it any more.
	var mu sync.Mutex
	lost := 0
	if _, err := conn.Subscribe("$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES."+at.stream+".>", func(*nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		lost++
	}); err != nil {
		return nil, nil, err
	}
	slots := make(chan struct{}, at.workers)
	consuming, err := c.Consume(func(m jetstream.Msg) {
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			if handle(context.Background(), string(m.Data())) != nil {
				m.Nak()
				return
			}
			m.Ack()
		}()
	})
	if err != nil {
		return nil, nil, err
	}
	return func() int {
			mu.Lock()
			defer mu.Unlock()
			return lost
		}, func() {
			consuming.Stop()
			conn.Close()
		}, nil
}
