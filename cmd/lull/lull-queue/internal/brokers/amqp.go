package brokers

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/url"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	lullamqp "github.com/lullgo/lull/integrations/lullamqp"
	"github.com/lullgo/lull/queue"
)

func init() { Kinds["amqp"], Kinds["amqps"] = openAMQP, openAMQP }

// rabbit is RabbitMQ, or a server with the same protocol.
type rabbit struct {
	client  *lullamqp.Client
	reading lullamqp.LettersConfig
}

// openAMQP connects. ?management=URL is the management plugin's HTTP API, which has facts that AMQP does not show.
func openAMQP(ctx context.Context, u *url.URL) (Broker, error) {
	server := *u
	q := server.Query()
	r := &rabbit{}
	if at := q.Get("management"); at != "" {
		password, _ := u.User.Password()
		m := &lullamqp.Management{URL: at, User: cmp.Or(u.User.Username(), "guest"), Password: cmp.Or(password, "guest")}
		if len(u.Path) > 1 {
			m.Vhost = u.Path[1:]
		}
		r.reading.Management = m
		q.Del("management")
		server.RawQuery = q.Encode()
	}
	client := lullamqp.New(lullamqp.Dial(server.String()))
	if _, err := client.Server(ctx); err != nil {
		client.Close(context.WithoutCancel(ctx))
		return nil, unreachable(err)
	}
	r.client = client
	return r, nil
}

// unreachable marks err as ErrUnreachable if it is one of the network.
func unreachable(err error) error {
	if network, ok := errors.AsType[net.Error](err); ok && network != nil {
		return markedAs(ErrUnreachable, err)
	}
	return err
}

func (r *rabbit) Letters(ctx context.Context, name string) (queue.DeadLetters, error) {
	letters, err := r.client.Letters(ctx, name, r.reading)
	return letters, missing(err)
}

// missing marks err as ErrNoQueue if the server did not find the queue.
func missing(err error) error {
	if e, ok := errors.AsType[*amqp091.Error](err); ok && e.Code == amqp091.NotFound {
		return markedAs(ErrNoQueue, err)
	}
	return err
}

func (r *rabbit) Sender(ctx context.Context, name string) (queue.Sender, error) {
	s, err := r.client.Sender(ctx, name)
	return s, missing(err)
}

func (r *rabbit) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return r.client.Close(ctx)
}
