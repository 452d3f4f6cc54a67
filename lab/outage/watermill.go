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

	"github.com/lullgo/lull/internal/must"
)

// watermillWith is watermill's router with its retry and poison queue middleware, and
// as many subscribers as there are workers.
func watermillWith(retry middleware.Retry) func(context.Context, place, handler) (func() int, func()) {
	return func(_ context.Context, at place, handle handler) (func() int, func()) {
		logger := watermill.NopLogger{}
		subscriber := must.Have(wmnats.NewSubscriber(wmnats.SubscriberConfig{
			URL: at.url, QueueGroupPrefix: at.stream, SubscribersCount: at.workers, AckWaitTimeout: 30 * time.Second, // its default
			JetStream: wmnats.JetStreamConfig{DurablePrefix: at.stream, SubscribeOptions: []nats.SubOpt{nats.DeliverAll(), nats.AckExplicit()}},
		}, logger))
		router := must.Have(message.NewRouter(message.RouterConfig{CloseTimeout: time.Second}, logger))
		var letters counter
		router.AddMiddleware(must.Have(middleware.PoisonQueue(&letters, "dead")), retry.Middleware) // the outermost first
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
			must.Succeed(err)
		}
		return letters.count, func() {
			stop()
			<-ended
		}
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
