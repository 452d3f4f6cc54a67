// Package memnet is a network in memory, for tests: listeners and connections that need no port, no
// system call and no real clock. In a bubble of package testing/synctest a connection that waits lets the
// virtual time go on, and a deadline is one of the virtual time.
//
// Its connections behave as those of TCP over a loopback device: what is written is buffered (64 KiB in each
// direction), one direction can be closed before the other, what was written before Close arrives, and
// a connection that is closed with unread data, or with a linger of zero, is reset. An address on which nobody listens refuses.
package memnet

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// network has the listeners of all tests of a program.
var network = struct {
	sync.Mutex
	next      int
	listeners map[string]*Listener
}{listeners: map[string]*Listener{}}

// A Listener accepts the connections that are dialled to its address.
type Listener struct {
	addr    addr
	queue   chan *Conn
	closed  chan struct{}
	closing sync.Once
}

// backlog is how many connections may wait until they are accepted.
const backlog = 4096

// Listen returns a listener on a port of 127.0.0.1 that is free. The port is one that operating systems do not
// give to programs by themselves, so that nobody answers a client that dials it outside of this package.
func Listen() *Listener {
	network.Lock()
	defer network.Unlock()
	for {
		at := addr("127.0.0.1:" + strconv.Itoa(firstPort+network.next))
		network.next = (network.next + 1) % (1<<16 - firstPort)
		if network.listeners[string(at)] == nil {
			return listen(at)
		}
	}
}

// firstPort is beyond the ephemeral ports of Linux (32768 to 60999).
const firstPort = 61_000

// ListenOn returns a listener on an address of the caller's choice, which may be a name with a port.
func ListenOn(address string) (*Listener, error) {
	network.Lock()
	defer network.Unlock()
	if network.listeners[address] != nil {
		return nil, opError("listen", addr(address), os.NewSyscallError("bind", syscall.EADDRINUSE))
	}
	return listen(addr(address)), nil
}

// listen is called with the network locked.
func listen(at addr) *Listener {
	l := &Listener{addr: at, queue: make(chan *Conn, backlog), closed: make(chan struct{})}
	network.listeners[string(at)] = l
	return l
}

// Accept returns the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case <-l.closed:
		return nil, opError("accept", l.addr, net.ErrClosed)
	default:
	}
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.closed:
		return nil, opError("accept", l.addr, net.ErrClosed)
	}
}

// Close frees the address. Connections that nobody has accepted are reset.
func (l *Listener) Close() error {
	err := opError("close", l.addr, net.ErrClosed)
	l.closing.Do(func() {
		err = nil
		network.Lock()
		if network.listeners[string(l.addr)] == l {
			delete(network.listeners, string(l.addr))
		}
		network.Unlock()
		close(l.closed)
		for {
			select {
			case c := <-l.queue:
				c.reset()
				continue
			default:
			}
			return
		}
	})
	return err
}

// Addr returns the address that reaches the listener.
func (l *Listener) Addr() net.Addr { return l.addr }

// Dial connects to the listener on address. It is a function for http.Transport.DialContext and its like; the
// network ("tcp") is not looked at. The context's httptrace.ClientTrace learns when connecting starts and is done.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, opError("dial", addr(address), err)
	}
	trace := httptrace.ContextClientTrace(ctx)
	if trace != nil && trace.ConnectStart != nil {
		trace.ConnectStart(network, address)
	}
	conn, err := connect(ctx, address)
	if trace != nil && trace.ConnectDone != nil {
		trace.ConnectDone(network, address, err)
	}
	return conn, err
}

func connect(ctx context.Context, address string) (net.Conn, error) {
	refused := opError("dial", addr(address), os.NewSyscallError("connect", syscall.ECONNREFUSED))
	network.Lock()
	l := network.listeners[address]
	network.Unlock()
	if l == nil {
		return nil, refused
	}
	client, server := Pipe(addr("127.0.0.1:0"), l.addr)
	select {
	case <-l.closed:
		return nil, refused
	default:
	}
	select {
	case l.queue <- server:
		return client, nil
	case <-l.closed:
		return nil, refused
	case <-ctx.Done():
		return nil, opError("dial", addr(address), ctx.Err())
	}
}

// Transport returns a transport like http.DefaultTransport that dials in memory. It has a pool of its own, whose idle
// connections are closed at the end of the test.
func Transport(tb testing.TB) *http.Transport {
	t := &http.Transport{DialContext: Dial, ForceAttemptHTTP2: true, MaxIdleConns: 100}
	tb.Cleanup(t.CloseIdleConnections)
	return t
}

// NewServer returns a server of HTTP that has been started, and is closed at the end of the test. Its Client, and
// each transport that dials by Dial, reach it.
func NewServer(tb testing.TB, h http.Handler) *httptest.Server {
	s := NewUnstartedServer(tb, h)
	Start(s)
	return s
}

// NewUnstartedServer is NewServer for a server that is yet to be configured. For its Client call
// [Start] or [StartTLS] instead of its methods.
func NewUnstartedServer(tb testing.TB, h http.Handler) *httptest.Server {
	s := &httptest.Server{Listener: Listen(), Config: &http.Server{Handler: h}}
	tb.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// Start starts a server that NewUnstartedServer has returned.
func Start(s *httptest.Server) {
	s.Start()
	dialInMemory(s)
}

// StartTLS starts it with TLS.
func StartTLS(s *httptest.Server) {
	s.StartTLS()
	dialInMemory(s)
}

func dialInMemory(s *httptest.Server) { s.Client().Transport.(*http.Transport).DialContext = Dial }

type addr string

func (addr) Network() string  { return "tcp" }
func (a addr) String() string { return string(a) }

func opError(op string, at net.Addr, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Addr: at, Err: err}
}
