package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull/integrations/lullamqp"
	"github.com/lullgo/lull/integrations/lullnats"
	"github.com/lullgo/lull/internal/ports"
	"github.com/lullgo/lull/internal/rabbitmq"
	"github.com/lullgo/lull/queue"
)

// A place is where a broker is.
type place struct {
	URL  string
	Port int
	Dir  string
}

// A kind of broker: its server, what is there before the first message, and a producer that
// is not lull's.
type kind struct {
	start   func(dir string) (serving, error)
	connect func(ctx context.Context, at place) (broker, error)
	// produce sends message n, until the server has it, and returns how often it had to be sent again.
	produce func(ctx context.Context, at place) (send func(n int) error, err error)
}

var known = map[string]*kind{
	"rabbitmq": {startRabbit, connectRabbit, produceRabbit},
	"nats":     {startNATS, connectNATS, produceNATS},
}

// serving is a server that is killed and started again.
type serving interface {
	at() place
	kill()
	start() error
	stop() // for good
}

// broker is a connection to one.
type broker interface {
	declare(ctx context.Context) error
	queue(ctx context.Context, consumer string) (queue.Broker, error)
	letters(ctx context.Context) (queue.DeadLetters, error)
	sender(ctx context.Context, consumer string) (queue.Sender, error)
	close()
}

func connect(ctx context.Context, o order) (broker, error) { return known[o.Broker].connect(ctx, o.At) }

// RabbitMQ: an exchange, two queues, one queue of dead letters.

const (
	exchange = "events"
	dead     = "events.dead"
)

// handOn is after how long RabbitMQ tries again to hand on what waited in a delay level when it was killed, where the
// level started before the next queue: its default. Tests have less.
var handOn = 3 * time.Minute

type rabbitServer struct{ *rabbitmq.Server }

func startRabbit(string) (serving, error) {
	s, err := rabbitmq.New("1GB", func(url string) error {
		conn, err := amqp.DialConfig(url, amqp.Config{})
		if err == nil {
			conn.Close()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if err = s.Set(rabbitmq.HandOn(handOn)); err == nil {
		err = s.Start()
	}
	if err != nil {
		os.RemoveAll(s.Dir)
		return nil, err
	}
	return &rabbitServer{s}, nil
}

func (s *rabbitServer) at() place    { return place{URL: s.URL()} }
func (s *rabbitServer) kill()        { s.Kill() }
func (s *rabbitServer) start() error { return s.Start() }
func (s *rabbitServer) stop() {
	s.Stop()
	os.RemoveAll(s.Dir)
}

type rabbit struct {
	url    string
	client *lullamqp.Client
}

func connectRabbit(_ context.Context, at place) (broker, error) {
	return &rabbit{at.URL, lullamqp.New(lullamqp.Dial(at.URL))}, nil
}

func (r *rabbit) config(consumer string) lullamqp.Config {
	return lullamqp.Config{Queue: consumer, DeadLetters: dead}
}

func (r *rabbit) declare(ctx context.Context) error {
	// RabbitMQ 3.10 writes which queues there are to the disk three seconds later. Killed before, it loses what is in
	// them, whoever consumes.
	defer sleep(ctx, 6*time.Second)
	for _, name := range consumers {
		if err := r.client.Declare(ctx, r.config(name)); err != nil {
			return err
		}
	}
	conn, err := amqp.Dial(r.url)
	if err != nil {
		return err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := ch.ExchangeDeclare(exchange, "topic", true, false, false, false, nil); err != nil {
		return err
	}
	for _, name := range consumers {
		if err := ch.QueueBind(name, "#", exchange, false, nil); err != nil {
			return err
		}
	}
	return nil
}

func (r *rabbit) queue(ctx context.Context, consumer string) (queue.Broker, error) {
	return r.client.Open(ctx, r.config(consumer))
}

func (r *rabbit) letters(ctx context.Context) (queue.DeadLetters, error) {
	return r.client.Letters(ctx, dead, lullamqp.Reading{})
}

func (r *rabbit) sender(ctx context.Context, consumer string) (queue.Sender, error) {
	return r.client.Sender(ctx, consumer)
}

func (r *rabbit) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r.client.Close(ctx)
}

func produceRabbit(ctx context.Context, at place) (func(n int) error, error) {
	var conn *amqp.Connection
	var ch *amqp.Channel
	return func(n int) error {
		if ch == nil || ch.IsClosed() {
			var err error
			if conn != nil {
				conn.Close()
			}
			if conn, err = amqp.Dial(at.URL); err != nil {
				return err
			}
			if ch, err = conn.Channel(); err != nil {
				return err
			}
			if err = ch.Confirm(false); err != nil {
				return err
			}
		}
		confirm, err := ch.PublishWithDeferredConfirmWithContext(ctx, exchange, "order.placed", true, false, amqp.Publishing{
			Headers: amqp.Table{numberHeader: strconv.Itoa(n)}, DeliveryMode: amqp.Persistent, ContentType: "application/json", Body: []byte("{}"),
		})
		if err != nil {
			return err
		}
		within, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		taken, err := confirm.WaitContext(within)
		if err == nil && !taken {
			err = errors.New("not taken")
		}
		return err
	}, nil
}

// NATS: a stream in which each of two consumers has an interest, one stream of dead letters.

const stream = "EVENTS"

type natsServer struct {
	where place
	child *child
}

func startNATS(dir string) (serving, error) {
	var port int
	if err := ports.Free(&port); err != nil {
		return nil, err
	}
	s := &natsServer{where: place{URL: fmt.Sprintf("nats://127.0.0.1:%d", port), Port: port, Dir: filepath.Join(dir, "jetstream")}}
	return s, s.start()
}

func (s *natsServer) at() place { return s.where }
func (s *natsServer) kill()     { s.child.kill() }
func (s *natsServer) stop()     { s.child.kill() }

func (s *natsServer) start() (err error) {
	if s.child, err = startPart(order{Part: "server", At: s.where}, os.Stderr); err != nil {
		return err
	}
	for range 600 {
		conn, err := nats.Connect(s.where.URL)
		if err == nil {
			conn.Close()
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("the server does not answer")
}

// serveNATS is a server, until it is killed.
func serveNATS(at place) error {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: at.Port, JetStream: true, StoreDir: at.Dir, NoSigs: true, NoLog: true})
	if err != nil {
		return err
	}
	s.Start()
	if !s.ReadyForConnections(30 * time.Second) {
		return errors.New("the server does not start")
	}
	select {}
}

type jet struct {
	conn *nats.Conn
	js   jetstream.JetStream
}

func dialNATS(url string) (*jet, error) {
	conn, err := nats.Connect(url, nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true), nats.ReconnectWait(100*time.Millisecond), nats.ReconnectBufSize(-1))
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(conn)
	return &jet{conn, js}, err
}

func connectNATS(ctx context.Context, at place) (broker, error) {
	j, err := dialNATS(at.URL)
	if err != nil {
		return nil, err
	}
	return j, j.connected(ctx)
}

// connected waits until it is.
func (j *jet) connected(ctx context.Context) error {
	for !j.conn.IsConnected() && ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
	}
	return ctx.Err()
}

func (j *jet) config(consumer string) lullnats.Config {
	return lullnats.Config{Stream: stream, Consumer: consumer, Subject: "order.>", Source: consumer, Policy: policy(), Lease: lease}
}

func (j *jet) declare(ctx context.Context) error {
	if _, err := j.js.CreateStream(ctx, jetstream.StreamConfig{Name: stream, Subjects: []string{"order.>"}, Retention: jetstream.InterestPolicy}); err != nil {
		return err
	}
	if _, err := j.js.CreateStream(ctx, jetstream.StreamConfig{Name: stream + "_DEAD", Subjects: []string{"dead.>"}}); err != nil {
		return err
	}
	for _, name := range consumers {
		if err := lullnats.Declare(ctx, j.js, j.config(name)); err != nil {
			return err
		}
	}
	return nil
}

// queue is that of a consumer, and a reaper beside it, until ctx ends.
func (j *jet) queue(ctx context.Context, consumer string) (queue.Broker, error) {
	for {
		b, err := lullnats.Open(ctx, j.js, j.config(consumer))
		var r *lullnats.Reaper
		if err == nil {
			r, err = lullnats.NewReaper(ctx, j.js, j.config(consumer))
		}
		if err == nil {
			go r.Run(ctx, time.Second, nil)
			return b, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(100 * time.Millisecond): // the server is not there
		}
	}
}

func (j *jet) letters(ctx context.Context) (queue.DeadLetters, error) {
	if err := j.connected(ctx); err != nil {
		return nil, err
	}
	return lullnats.LettersIn(ctx, j.js, stream+"_DEAD")
}

func (j *jet) sender(context.Context, string) (queue.Sender, error) {
	return lullnats.NewSender(j.js, stream, "order.>") // where each came from
}

func (j *jet) close() { j.conn.Close() }

func produceNATS(ctx context.Context, at place) (func(n int) error, error) {
	j, err := dialNATS(at.URL)
	if err != nil {
		return nil, err
	}
	return func(n int) error {
		within, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		_, err := j.js.PublishMsg(within, &nats.Msg{Subject: "order.placed", Header: nats.Header{numberHeader: {strconv.Itoa(n)}}, Data: []byte("{}")})
		return err
	}, nil
}
