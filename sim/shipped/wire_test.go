package shipped

import (
	"context"
	"net"
	"sync"
)

type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// A wire is what requests go over: where a server listens, and how it is dialled.
type wire func() (net.Listener, dialer, error)

// loopback is sockets, on a port of its own.
func loopback() (net.Listener, dialer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	return l, (&net.Dialer{}).DialContext, err
}

// inMemory is pipes, for virtual time: nothing can be said of when a socket has something to read.
func inMemory() (net.Listener, dialer, error) {
	l := &memory{dialled: make(chan net.Conn), over: make(chan struct{})}
	return l, l.dial, nil
}

type memory struct {
	dialled chan net.Conn
	over    chan struct{}
	once    sync.Once
}

func (m *memory) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case m.dialled <- there:
		return here, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-m.over:
		return nil, errRefused
	}
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.dialled:
		return c, nil
	case <-m.over:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error {
	m.once.Do(func() { close(m.over) })
	return nil
}

func (m *memory) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
