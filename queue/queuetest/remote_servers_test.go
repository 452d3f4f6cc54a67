//go:build servers

package queuetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/pace"
	"github.com/lullgo/lull/queue"
)

// This file is a queue.MemoryBroker behind loopback TCP, which worker processes can reach and
// which keeps its messages when it is "restarted": so that what needs such a broker is
// tested here too.

type server struct {
	held    bool         // no leases
	forget  bool         // broken: a delivery that was never settled does not count
	lose    bool         // broken: every tenth message that is to be tried again is lost, from the first on
	retries atomic.Int64 // of lose

	mu     sync.Mutex
	queues map[string]*queue.MemoryBroker
	l      net.Listener
	conns  map[net.Conn]bool
	served sync.WaitGroup
}

func startServer(t testing.TB) *server { return serve(t, false) }

func serve(t testing.TB, held bool) *server {
	t.Helper()
	s := &server{held: held, queues: map[string]*queue.MemoryBroker{}, conns: map[net.Conn]bool{}}
	s.listen(t, "127.0.0.1:0")
	t.Cleanup(s.close)
	return s
}

func (s *server) listen(t testing.TB, address string) {
	t.Helper()
	l := must.Have(net.Listen("tcp", address))
	s.l = l
	s.served.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns[c] = true
			s.mu.Unlock()
			s.served.Go(func() { s.serve(c) })
		}
	})
}

func (s *server) serve(c net.Conn) {
	x := &Remote{s: s, ends: map[string]*end{}}
	r := rpc.NewServer()
	r.Register(x)
	r.ServeCodec(jsonrpc.NewServerCodec(c))
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	for _, e := range x.ends {
		if e.held != nil {
			e.held.end()
		}
	}
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

func (s *server) close() {
	s.l.Close()
	s.mu.Lock()
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.served.Wait()
}

func (s *server) restart(t testing.TB) {
	address := s.l.Addr().String()
	s.close()
	s.listen(t, address)
}

func (s *server) declare(t testing.TB, o Options) string {
	m := must.Have(queue.NewMemoryBroker(queue.MemoryBrokerConfig{Order: o.Order}))
	s.mu.Lock()
	defer s.mu.Unlock()
	name := fmt.Sprint("q", len(s.queues))
	s.queues[name] = m
	return s.l.Addr().String() + "/" + name + "/" + o.Lease.String()
}

func (s *server) target() Target {
	return Target{
		Declare: s.declare, Connect: connect, Restart: s.restart,
		// With half a second a worker on a busy machine may not get round to extending it.
		Lease: pace.Stretch(time.Second),
	}
}

// end is a queue as one connection sees it.
type end struct {
	queue.Broker
	m    *queue.MemoryBroker
	held *held
}

// Remote is the server's side of one connection.
type Remote struct {
	s      *server
	mu     sync.Mutex
	ends   map[string]*end
	closed bool
}

// Call is a request, with the fields that Do needs.
type Call struct {
	Queue, Do  string // the name of the queue; "dead/" before it is that of its dead letters
	Want       queue.Want
	Delivery   queue.Delivery
	Lease      time.Duration
	Settlement queue.Settlement
	Outgoing   queue.Outgoing
}

// Answer is the answer.
type Answer struct {
	Deliveries      []*queue.Delivery
	Until           time.Time
	Can             queue.Capabilities
	N               int
	Lost, Permanent bool
	Err             string
}

func (r *Remote) end(name string) *end {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.ends[name]; e != nil {
		return e
	}
	r.s.mu.Lock()
	m := r.s.queues[strings.TrimPrefix(name, "dead/")]
	r.s.mu.Unlock()
	if strings.HasPrefix(name, "dead/") {
		m = m.DeadLetters()
	}
	e := &end{m: m, Broker: m}
	if r.s.held {
		e.held = hold(m)
		e.held.forget = r.s.forget
		e.Broker = e.held
	}
	r.ends[name] = e
	return e
}

// Do carries out c.
func (r *Remote) Do(c *Call, a *Answer) error {
	e := r.end(c.Queue)
	ctx := context.Background()
	if n, ok := c.Delivery.Receipt.(float64); ok { // JSON has no int
		c.Delivery.Receipt = int(n)
	}
	var err error
	switch c.Do {
	case "capabilities":
		a.Can = e.Capabilities()
	case "depth":
		a.N = e.m.Len()
	case "receive":
		ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		if a.Deliveries, err = e.Receive(ctx, c.Want); ctx.Err() != nil {
			err = nil
		}
	case "extend":
		a.Until, err = e.Extend(ctx, &c.Delivery, c.Lease)
	case "settle":
		if r.s.lose && c.Settlement.Outcome == queue.Retry && r.s.retries.Add(1)%10 == 1 {
			c.Settlement.Outcome = queue.Drop
		}
		err = e.Settle(ctx, &c.Delivery, c.Settlement)
	case "send":
		err = e.m.Send(ctx, c.Outgoing)
	}
	if err != nil {
		a.Lost, a.Permanent, a.Err = errors.Is(err, queue.ErrLost), lull.Classify(err).Kind == lull.KindPermanent, err.Error()
	}
	return nil
}

// remote is the client's side of a queue.
type remote struct {
	c    *rpc.Client
	name string
	can  queue.Capabilities
}

func connect(ctx context.Context, address string) (*Connection, error) {
	parts := strings.Split(address, "/")
	lease, err := time.ParseDuration(parts[2])
	if err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", parts[0])
	if err != nil {
		return nil, err
	}
	c := jsonrpc.NewClient(conn)
	b := &remote{c: c, name: parts[1]}
	a, err := b.do(ctx, &Call{Do: "capabilities"})
	if err != nil {
		return nil, err
	}
	b.can = a.Can
	return &Connection{
		Broker: b, Sender: b,
		Letters: func(context.Context) (queue.DeadLetters, error) {
			dead := &remote{c: c, name: "dead/" + b.name, can: b.can}
			dead.can.Order = queue.Unordered
			return queue.Scan(dead, queue.ScanConfig{Lease: lease, Idle: 200 * time.Millisecond})
		},
		Depth: func(ctx context.Context) (int, error) {
			a, err := b.do(ctx, &Call{Do: "depth"})
			return a.N, err
		},
		Close: c.Close,
	}, nil
}

func (r *remote) do(ctx context.Context, c *Call) (a Answer, err error) {
	if err := ctx.Err(); err != nil {
		return a, err
	}
	c.Queue = r.name
	c.Delivery.Headers, c.Delivery.Body = maps.Clone(c.Delivery.Headers), nil
	call := r.c.Go("Remote.Do", c, &a, make(chan *rpc.Call, 1))
	<-call.Done
	switch {
	case call.Error != nil:
		return a, call.Error
	case a.Lost:
		return a, queue.ErrLost
	case a.Permanent:
		return a, lull.Permanent(errors.New(a.Err))
	case a.Err != "":
		return a, errors.New(a.Err)
	}
	return a, nil
}

func (r *remote) Capabilities() queue.Capabilities { return r.can }

func (r *remote) Receive(ctx context.Context, w queue.Want) ([]*queue.Delivery, error) {
	for {
		a, err := r.do(ctx, &Call{Do: "receive", Want: w})
		if err != nil || len(a.Deliveries) > 0 {
			return a.Deliveries, err
		}
	}
}

func (r *remote) Extend(ctx context.Context, d *queue.Delivery, lease time.Duration) (time.Time, error) {
	a, err := r.do(ctx, &Call{Do: "extend", Delivery: *d, Lease: lease})
	return a.Until, err
}

func (r *remote) Settle(ctx context.Context, d *queue.Delivery, s queue.Settlement) error {
	_, err := r.do(ctx, &Call{Do: "settle", Delivery: *d, Settlement: s})
	return err
}

func (r *remote) Send(ctx context.Context, o queue.Outgoing) error {
	_, err := r.do(ctx, &Call{Do: "send", Outgoing: o})
	return err
}

// The whole suite in real time, over a network, with processes that are killed: what the comment of the package shows,
// as it stands there.

func TestMain(m *testing.M) {
	os.Exit(Main(m, connect)) // runs the tests; or, in a worker process, does its work and exits
}

func TestConformance(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	Run(t, Target{Declare: s.declare, Connect: connect, Restart: s.restart})
}

func TestNothingLost(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	NothingLost(t, Target{Declare: s.declare, Connect: connect, Restart: s.restart})
}

// Crashes that are not counted: poison is tried for ever.
func TestBrokenPoison(t *testing.T) {
	t.Parallel()
	s := serve(t, true)
	s.forget = true
	r := &recorder{TB: t}
	r.run(func(t testing.TB) {
		consumerPoison(newTester(t, s.target().withDefaults(), queue.Unordered), "exit", 0, 1, 3)
	})
	if !r.Failed() || !strings.Contains(r.text(), "is not a dead letter") {
		t.Errorf("poison that is tried for ever is not found: %q", r.said)
	}
}

// Messages that are lost on their way to another attempt.
func TestBrokenNothingLost(t *testing.T) {
	t.Parallel()
	s := serve(t, false)
	s.lose = true
	target := s.target().withDefaults()
	target.Messages, target.stall = 200, 4*time.Second
	target.Restart = nil
	r := &recorder{TB: t}
	r.run(func(t testing.TB) { nothingLost(t, target, queue.Unordered) })
	if !r.Failed() || !strings.Contains(r.text(), "nothing has happened") {
		t.Errorf("lost messages are not found: %q", r.said)
	}
}
