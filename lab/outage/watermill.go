package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	wmnats "github.com/ThreeDotsLabs/watermill-nats/v2/pkg/nats"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/nats-io/nats.go"
)

// watermillWith is watermill's router with its retry and poison queue middleware, and
// as many subscribers as there are workers.
func watermillWith(retry middleware.Retry) func(context.Context, place, handler) (func() int, func(), error) {
	return func(_ context.Context, at place, handle handler) (func() int, func(), error) {
		logger := watermill.NopLogger{}
		subscriber, err := wmnats.NewSubscriber(wmnats.SubscriberConfig{
			URL: at.url, QueueGroupPrefix: at.stream, SubscribersCount: at.workers, AckWaitTimeout: 30 * time.Second, // its default
			JetStream: wmnats.JetStreamConfig{DurablePrefix: at.stream, SubscribeOptions: []nats.SubOpt{nats.DeliverAll(), nats.AckExplicit()}},
		}, logger)
		if err != nil {
			return nil, nil, err
		}
		router, err := message.NewRouter(message.RouterConfig{CloseTimeout: time.Second}, logger)
		if err != nil {
			return nil, nil, err
		}
		var letters counter
		poison, err := middleware.PoisonQueue(&letters, "dead")
		if err != nil {
			return nil, nil, err
		}
		router.AddMiddleware(poison, retry.Middleware) // the outermost first
		router.AddConsumerHandler(at.stream, at.subject, subscriber, func(m *message.Message) error {
			return handle(m.Context(), string(m.Payload))
		})
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- router.Run(ctx) }()
		select {
		case <-router.Running():
		case err := <-ended:
			stop()
			return nil, nil, err
		}
		return letters.count, func() {
			stop()
			<-ended
		}, nil
	}
}

// counter is a publisher for the poison queue.
type counter struct{ n atomic.Int64 }

func (c *counter) Publish(_ string, messages ...*message.Message) error {
	c.n.Add(int64(len(messages)))
	return nil
}

func (c *counter) Close() error { return nil }

func (c *counter) count() int { return int(c.n.Load()) }
