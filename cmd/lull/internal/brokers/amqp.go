package brokers

import (
	"context"
	"errors"
	"net"
	"net/url"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull/integrations/amqp"
	"github.com/lullgo/lull/queue"
)

func init() { kinds["amqp"], kinds["amqps"] = openAMQP, openAMQP }

// rabbit is RabbitMQ, or what speaks as it does.
type rabbit struct{ client *lullamqp.Client }

func openAMQP(ctx context.Context, u *url.URL) (Broker, error) {
	client := lullamqp.New(lullamqp.Dial(u.String()))
	if _, err := client.Server(ctx); err != nil {
		client.Close(context.WithoutCancel(ctx))
		return nil, unreachable(err)
	}
	return &rabbit{client}, nil
}

// unreachable marks err if nobody has answered.
func unreachable(err error) error {
	if network, ok := errors.AsType[net.Error](err); ok && network != nil {
		return as(ErrUnreachable, err)
	}
	return err
}

func (r *rabbit) Letters(ctx context.Context, name string) (queue.DeadLetters, error) {
	letters, err := r.client.Letters(ctx, name, 0)
	if e, ok := errors.AsType[*amqp091.Error](err); ok && e.Code == amqp091.NotFound {
		return nil, as(ErrNoQueue, err)
	}
	return letters, err
}

// Sender is there only if the queue is.
func (r *rabbit) Sender(ctx context.Context, name string) (queue.Sender, error) {
	there, err := r.Letters(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := there.Close(ctx); err != nil {
		return nil, err
	}
	return r.client.Open(lullamqp.Config{Queue: name})
}

func (r *rabbit) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return r.client.Close(ctx)
}
