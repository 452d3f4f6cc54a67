package lullamqp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/sleep"
)

// A Dialer makes a connection. It is called again when the connection is lost.
type Dialer func(ctx context.Context) (*amqp.Connection, error)

// Dial makes connections to a server, such as "amqp://user:password@host/vhost". The heartbeat is
// 10 s unless the address sets it: a server that falls silent is detected after 30 s.
func Dial(url string) Dialer { return DialConfig(url, amqp.Config{}) }

// DialConfig is Dial with more settings: TLS, the length of the heartbeat, properties. c.Recovery
// must be nil: the adapter makes new connections itself, as it must know which deliveries are lost
// with the old ones. c.Dial replaces net.Dialer; it need not look at ctx.
func DialConfig(url string, c amqp.Config) Dialer {
	return func(ctx context.Context) (*amqp.Connection, error) {
		c := c // one for each connection: amqp.DialConfig writes into it
		if c.Properties == nil {
			c.Properties = amqp.NewConnectionProperties()
			c.Properties.SetClientConnectionName("lull")
		}
		if c.TLSClientConfig != nil {
			c.TLSClientConfig = c.TLSClientConfig.Clone()
		}
		dial := c.Dial
		if dial == nil {
			dial = func(network, addr string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, addr)
			}
		}
		c.Dial = func(network, addr string) (net.Conn, error) {
			conn, err := dial(network, addr)
			if err != nil {
				return nil, err
			}
			end := time.Now().Add(patience)
			if at, ok := ctx.Deadline(); ok && at.Before(end) {
				end = at
			}
			// This lasts until the handshake is over. Then the client removes it.
			if err := conn.SetDeadline(end); err != nil {
				conn.Close()
				return nil, err
			}
			return conn, nil
		}
		return amqp.DialConfig(url, c)
	}
}

// patience bounds calls to the server that nobody waits for any more.
const patience = 30 * time.Second

// A Client is two connections to RabbitMQ, for any number of queues of a virtual host. Messages are published on one of
// them. The server stops reading from that one when it has too little memory or disk, and must still read acknowledgements
// then. Connections are made when they are needed, and made again by the next call after they were lost. The methods of a
// Client may be called concurrently.
type Client struct {
	in, out *link

	mu     sync.Mutex
	queues map[*Broker]bool
	closed bool
}

// New returns a client that will connect with dial. It does not connect yet.
func New(dial Dialer) *Client {
	c := &Client{queues: map[*Broker]bool{}}
	if dial == nil {
		dial = func(context.Context) (*amqp.Connection, error) {
			return nil, lull.Permanent(errors.New("lullamqp: a client without a dialer"))
		}
	}
	c.in, c.out = newLink(dial), newLink(dial)
	return c
}

// Server returns the server's product and version. It connects if necessary.
func (c *Client) Server(ctx context.Context) (ServerInfo, error) {
	conn, err := c.in.get(ctx)
	if err != nil {
		return ServerInfo{}, err
	}
	return serverOf(conn), nil
}

// Close closes all queues (see Broker.Close, also for its error) and the connections. Close the client when the consumers'
// Run has returned.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	queues := slices.Collect(maps.Keys(c.queues))
	c.mu.Unlock()
	problems := choice.Each(queues, func(q *Broker) error { return q.Close(ctx) })
	problems = append(problems, c.in.close(ctx), c.out.close(ctx))
	return errors.Join(problems...)
}

// ErrClosed is the error of calls to a client or queue that was closed.
var ErrClosed = errors.New("lullamqp: closed")

// shared is one connection or channel for many callers. The first caller that needs it makes it for all.
type shared[T interface {
	comparable
	IsClosed() bool
}] struct {
	open func(ctx context.Context) (T, error)
	shut func(T) error

	mu     sync.Mutex
	value  T
	making *call[T]
	closed bool
}

// get returns the value. If there is none, one caller makes it for all.
func (s *shared[T]) get(ctx context.Context) (none T, err error) {
	if err := ctx.Err(); err != nil {
		return none, err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return none, lull.Permanent(ErrClosed)
	}
	if s.value != none && !s.value.IsClosed() {
		defer s.mu.Unlock()
		return s.value, nil
	}
	if s.making == nil {
		s.making = startCall(s.make)
	}
	making := s.making
	s.mu.Unlock()
	return making.wait(ctx)
}

func (s *shared[T]) make() (none T, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	is, err := s.open(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.making = nil
	switch {
	case err != nil:
		return none, err
	case s.closed:
		go s.shut(is)
		return none, lull.Permanent(ErrClosed)
	}
	s.value = is
	return is, nil
}

// end makes all later calls fail. It returns the value to be closed, if there is one.
func (s *shared[T]) end() (open T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.value != open && !s.value.IsClosed() {
		open = s.value
	}
	return open
}

type link struct {
	shared[*amqp.Connection]
	blocked atomic.Pointer[blocked]
}

// blocked is why the server does not read from a connection.
type blocked struct {
	conn *amqp.Connection
	why  string
}

func newLink(dial Dialer) *link {
	l := &link{}
	l.shut = closeConnection
	l.open = func(ctx context.Context) (*amqp.Connection, error) {
		conn, err := dial(ctx)
		if err != nil {
			return nil, explain("connect", err)
		}
		go l.watch(conn, conn.NotifyBlocked(make(chan amqp.Blocking, 8)))
		return conn, nil
	}
	return l
}

func (l *link) close(ctx context.Context) error {
	conn := l.end()
	if conn == nil {
		return nil
	}
	err := runWithin(ctx, func() error { return closeConnection(conn) })
	if errors.Is(err, amqp.ErrClosed) {
		err = nil
	}
	return err
}

// watch records whether the server reads from conn, until conn ends.
func (l *link) watch(conn *amqp.Connection, blockings <-chan amqp.Blocking) {
	for b := range blockings {
		switch {
		case conn.IsClosed():
		case b.Active:
			l.blocked.Store(&blocked{conn, b.Reason})
		default:
			l.blocked.Store(nil)
		}
	}
}

// blockedError returns why nothing can be published now, if that is known.
func (l *link) blockedError() error {
	if b := l.blocked.Load(); b != nil && !b.conn.IsClosed() {
		return lull.Transient(fmt.Errorf("lullamqp: the server takes no messages now: %s", b.why))
	}
	return nil
}

// closeConnection closes conn. It does not wait long for a server that does not answer.
func closeConnection(conn *amqp.Connection) error {
	return conn.CloseDeadline(time.Now().Add(5 * time.Second))
}

// A call is under way, or has ended. The client's calls do not look at a context: a call continues until it is answered
// or its connection ends, even if nobody waits for it any more.
type call[T any] struct {
	done  chan struct{}
	value T
	err   error
}

func startCall[T any](f func() (T, error)) *call[T] {
	c := &call[T]{done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.value, c.err = f()
	}()
	return c
}

func (c *call[T]) wait(ctx context.Context) (none T, err error) {
	select {
	case <-c.done:
	case <-ctx.Done():
		if !sleep.IsOver(c.done) {
			return none, ctx.Err()
		}
	}
	return c.value, c.err
}

// callWithin waits for f, or for ctx to end.
func callWithin[T any](ctx context.Context, f func() (T, error)) (T, error) {
	return startCall(f).wait(ctx)
}

// startRun is startCall for a function that returns only an error.
func startRun(f func() error) *call[struct{}] {
	return startCall(func() (struct{}, error) { return struct{}{}, f() })
}

// runWithin is callWithin for such a function.
func runWithin(ctx context.Context, f func() error) error {
	_, err := startRun(f).wait(ctx)
	return err
}

// temporary reports whether a refusal may be temporary: a limit on connections or channels (530), or a
// queue whose node is down (404).
func temporary(e *amqp.Error) bool {
	return e.Code == amqp.NotAllowed && strings.Contains(e.Reason, "limit") ||
		e.Code == amqp.NotFound && strings.Contains(e.Reason, "down or inaccessible")
}

// explain adds the operation to err. It marks errors that the server will repeat as permanent.
func explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	out := fmt.Errorf("lullamqp: %s: %w", doing, err)
	// The client makes errors of its own when a handshake is cut short, and they look like a
	// refusal. So only the server's errors count.
	if e, ok := errors.AsType[*amqp.Error](err); ok && e.Server && !temporary(e) {
		switch e.Code {
		case amqp.AccessRefused, amqp.NotFound, amqp.PreconditionFailed, amqp.NotAllowed, amqp.NotImplemented:
			return lull.Permanent(out)
		}
	}
	return out
}

// ErrNative is returned when Config.Native is refused: the server has no delayed retries.
var ErrNative = errors.New("lullamqp: Config.Native needs RabbitMQ 4.3 or later")

// A ServerInfo is how a server describes itself when a connection is made.
type ServerInfo struct {
	Product string // "RabbitMQ"
	Version string // such as "3.10.8"
	Cluster string // the cluster's name
}

func serverOf(c *amqp.Connection) ServerInfo {
	text := func(name string) string {
		s, _ := c.Properties[name].(string)
		return s
	}
	return ServerInfo{Product: text("product"), Version: text("version"), Cluster: text("cluster_name")}
}

func (s ServerInfo) String() string { return strings.TrimSpace(s.Product + " " + s.Version) }

// AtLeast reports whether it is RabbitMQ of the given version or a later one. It returns false for
// a version that cannot be read.
func (s ServerInfo) AtLeast(major, minor int) bool {
	if s.Product != "RabbitMQ" {
		return false
	}
	a, b, ok := parseVersion(s.Version)
	return ok && (a > major || a == major && b >= minor)
}

// parseVersion reads the first two numbers of "4.3.6", "4.3.0-rc.1", "4.3.6+14.g0abc".
func parseVersion(s string) (major, minor int, ok bool) {
	n, _ := fmt.Sscanf(s, "%d.%d", &major, &minor)
	return major, minor, n == 2 && major >= 0 && minor >= 0
}

func (c *Config) supported(s ServerInfo) error {
	if c.Native != (Native{}) && !s.AtLeast(4, 3) {
		return fmt.Errorf("%w: this is %v, which takes such arguments and ignores them", ErrNative, s)
	}
	return nil
}
