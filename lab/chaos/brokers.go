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
	"github.com/lullgo/lull/internal/child"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/ports"
	"github.com/lullgo/lull/internal/rabbitmq"
	"github.com/lullgo/lull/internal/sleep"
	"github.com/lullgo/lull/queue"
)

// A brokerAddress is where a broker is.
type brokerAddress struct {
	URL  string
	Port int
	Dir  string
}

// A kind of broker: its server, what is there before the first message, and a producer that
// is not lull's.
type kind struct {
	start   func(dir string) serving
	connect func(ctx context.Context, at brokerAddress) broker
	// produce returns a function that sends message n, until the server has it.
	produce func(ctx context.Context, at brokerAddress) (send func(n int) error)
}

var kinds = map[string]*kind{
	"rabbitmq": {startRabbit, connectRabbit, produceRabbit},
	"nats":     {startNATS, connectNATS, produceNATS},
}

// serving is a server that is killed and started again.
type serving interface {
	at() brokerAddress
	kill()
	start() error
	stop() // for good
}

type broker interface {
	declare(ctx context.Context)
	queue(ctx context.Context, consumer string) queue.Broker
	letters(ctx context.Context) queue.DeadLetters
	sender(ctx context.Context, consumer string) queue.Sender
	close()
}

// RabbitMQ: an exchange, two queues, one queue of dead letters.

const (
	exchange = "events"
	dead     = "events.dead"
)

// handOn is after how long RabbitMQ tries again to hand on what waited in a delay level when it was killed, where the
// level started before the next queue: its default. Tests have less.
var handOn = 3 * time.Minute

type rabbitServer struct{ *rabbitmq.Server }

func startRabbit(string) serving {
	s := must.Have(rabbitmq.New("1GB", func(url string) error {
		conn, err := amqp.DialConfig(url, amqp.Config{})
		if err == nil {
			conn.Close()
		}
		return err
	}))
	err := s.Set(rabbitmq.HandOn(handOn))
	if err == nil {
		err = s.Start()
	}
	if err != nil {
		os.RemoveAll(s.Dir)
		must.Succeed(err)
	}
	return &rabbitServer{s}
}

func (s *rabbitServer) at() brokerAddress { return brokerAddress{URL: s.URL()} }
func (s *rabbitServer) kill()             { s.Kill() }
func (s *rabbitServer) start() error      { return s.Start() }
func (s *rabbitServer) stop() {
	s.Stop()
	os.RemoveAll(s.Dir)
}

type rabbit struct {
	url    string
	client *lullamqp.Client
}

func connectRabbit(_ context.Context, at brokerAddress) broker {
	return &rabbit{at.URL, lullamqp.New(lullamqp.Dial(at.URL))}
}

func (r *rabbit) config(consumer string) lullamqp.Config {
	return lullamqp.Config{Queue: consumer, DeadLetters: dead}
}

func (r *rabbit) declare(ctx context.Context) {
	// RabbitMQ 3.10 writes which queues there are to the disk three seconds later. Killed before, it loses what is in
	// them, whoever consumes.
	defer sleep.For(ctx, 6*time.Second)
	conn := must.Have(amqp.Dial(r.url))
	defer conn.Close()
	ch := must.Have(conn.Channel())
	must.Succeed(ch.ExchangeDeclare(exchange, "topic", true, false, false, false, nil))
	for _, name := range consumers {
		must.Succeed(r.client.Declare(ctx, r.config(name)))
		must.Succeed(ch.QueueBind(name, "#", exchange, false, nil))
	}
}

func (r *rabbit) queue(ctx context.Context, consumer string) queue.Broker {
	return must.Have(r.client.Open(ctx, r.config(consumer)))
}

func (r *rabbit) letters(ctx context.Context) queue.DeadLetters {
	return must.Have(r.client.Letters(ctx, dead, lullamqp.LettersConfig{}))
}

func (r *rabbit) sender(ctx context.Context, consumer string) queue.Sender {
	return must.Have(r.client.Sender(ctx, consumer))
}

func (r *rabbit) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r.client.Close(ctx)
}

func produceRabbit(ctx context.Context, at brokerAddress) func(n int) error {
	var conn *amqp.Connection
	var ch *amqp.Channel
	return func(n int) (err error) {
		defer must.Catch(&err)
		if ch == nil || ch.IsClosed() {
			if conn != nil {
				conn.Close()
			}
			conn = must.Have(amqp.Dial(at.URL))
			ch = must.Have(conn.Channel())
			must.Succeed(ch.Confirm(false))
		}
		confirm := must.Have(ch.PublishWithDeferredConfirmWithContext(ctx, exchange, "order.placed", true, false, amqp.Publishing{
			Headers: amqp.Table{numberHeader: strconv.Itoa(n)}, DeliveryMode: amqp.Persistent, ContentType: "application/json", Body: []byte("{}"),
		}))
		within, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if !must.Have(confirm.WaitContext(within)) {
			return errors.New("not taken")
		}
		return nil
	}
}

// NATS: a stream in which each of two consumers has an interest, one stream of dead letters.

const stream = "EVENTS"

type natsServer struct {
	where brokerAddress
	child *child.Child
}

func startNATS(dir string) serving {
	var port int
	must.Succeed(ports.Free(&port))
	s := &natsServer{where: brokerAddress{URL: fmt.Sprintf("nats://127.0.0.1:%d", port), Port: port, Dir: filepath.Join(dir, "jetstream")}}
	must.Succeed(s.start())
	return s
}

func (s *natsServer) at() brokerAddress { return s.where }
func (s *natsServer) kill()             { s.child.Kill() }
func (s *natsServer) stop()             { s.child.Kill() }

func (s *natsServer) start() (err error) {
	defer must.Catch(&err)
	s.child = startPart(partOrder{Part: "server", At: s.where}, os.Stderr)
	return s.child.Await(func() error {
		conn, err := nats.Connect(s.where.URL)
		if err == nil {
			conn.Close()
		}
		return err
	}, 50*time.Millisecond, 30*time.Second)
}

// serveNATS is a server, until it is killed.
func serveNATS(at brokerAddress) {
	s := must.Have(server.NewServer(&server.Options{Host: "127.0.0.1", Port: at.Port, JetStream: true, StoreDir: at.Dir, NoSigs: true, NoLog: true}))
	s.Start()
	if !s.ReadyForConnections(30 * time.Second) {
		must.Fail("the server does not start")
	}
	select {}
}

type natsBroker struct {
	conn *nats.Conn
	js   jetstream.JetStream
}

func dialNATS(url string) *natsBroker {
	conn := must.Have(nats.Connect(url, nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true), nats.ReconnectWait(100*time.Millisecond), nats.ReconnectBufSize(-1)))
	return &natsBroker{conn, must.Have(jetstream.New(conn))}
}

func connectNATS(ctx context.Context, at brokerAddress) broker {
	j := dialNATS(at.URL)
	j.await(ctx)
	return j
}

func (j *natsBroker) await(ctx context.Context) {
	for !j.conn.IsConnected() && ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
	}
	must.Succeed(ctx.Err())
}

func (j *natsBroker) config(consumer string) lullnats.Config {
	return lullnats.Config{Stream: stream, Consumer: consumer, Subject: "order.>", Source: consumer, Policy: policy(), Lease: lease}
}

func (j *natsBroker) declare(ctx context.Context) {
	must.Have(j.js.CreateStream(ctx, jetstream.StreamConfig{Name: stream, Subjects: []string{"order.>"}, Retention: jetstream.InterestPolicy}))
	must.Have(j.js.CreateStream(ctx, jetstream.StreamConfig{Name: stream + "_DEAD", Subjects: []string{"dead.>"}}))
	for _, name := range consumers {
		must.Succeed(lullnats.Declare(ctx, j.js, j.config(name)))
	}
}

// queue is that of a consumer, and a reaper beside it, until ctx ends.
func (j *natsBroker) queue(ctx context.Context, consumer string) queue.Broker {
	for {
		b, err := lullnats.Open(ctx, j.js, j.config(consumer))
		var r *lullnats.Reaper
		if err == nil {
			r, err = lullnats.NewReaper(ctx, j.js, j.config(consumer))
		}
		if err == nil {
			go r.Run(ctx, time.Second, nil)
			return b
		}
		select {
		case <-ctx.Done():
			must.Succeed(err)
		case <-time.After(100 * time.Millisecond): // the server is not there
		}
	}
}

func (j *natsBroker) letters(ctx context.Context) queue.DeadLetters {
	j.await(ctx)
	return must.Have(lullnats.LettersIn(ctx, j.js, stream+"_DEAD"))
}

func (j *natsBroker) sender(context.Context, string) queue.Sender {
	return must.Have(lullnats.NewSender(j.js, stream, "order.>")) // where each came from
}

func (j *natsBroker) close() { j.conn.Close() }

func produceNATS(ctx context.Context, at brokerAddress) func(n int) error {
	j := dialNATS(at.URL)
	return func(n int) error {
		within, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		_, err := j.js.PublishMsg(within, &nats.Msg{Subject: "order.placed", Header: nats.Header{numberHeader: {strconv.Itoa(n)}}, Data: []byte("{}")})
		return err
	}
}
