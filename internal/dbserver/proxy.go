package dbserver

import (
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
)

// A Proxy is between clients and a server, counts the connections, and cuts some of them.
type Proxy struct {
	l     net.Listener
	to    string
	Dials atomic.Int64
	Cuts  atomic.Int64
	Down  atomic.Bool // connections are accepted and closed
	// cutShare of the connections is cut after a random number of bytes, fewer than cutWithin, in either direction.
	cutShare  float64
	cutWithin int
	rand      *rand.Rand
}

// NewProxy starts a proxy on a free port, for the duration of the test. It cuts the given share of the connections, each after
// a random number of bytes below within.
func NewProxy(t testing.TB, to string, share float64, within int) *Proxy {
	l := must.Have(net.Listen("tcp", "127.0.0.1:0"))
	p := &Proxy{l: l, to: to, cutShare: share, cutWithin: within, rand: seed.Rand(t)}
	var under sync.WaitGroup
	t.Cleanup(func() { l.Close(); under.Wait() })
	under.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.Dials.Add(1)
			if p.Down.Load() {
				c.Close()
				continue
			}
			s, err := net.Dial("tcp", p.to)
			if err != nil {
				c.Close()
				continue
			}
			w := &wire{p: p, client: c.(*net.TCPConn), server: s.(*net.TCPConn), left: -1}
			if p.rand.Float64() < p.cutShare {
				w.left, w.reset = p.rand.Int64N(int64(p.cutWithin)), p.rand.IntN(2) == 0
			}
			under.Go(func() { w.pass(w.client, w.server) })
			under.Go(func() { w.pass(w.server, w.client) })
		}
	})
	return p
}

// Addr is host and port of the proxy.
func (p *Proxy) Addr() string { return p.l.Addr().String() }

// wire is one connection through the proxy.
type wire struct {
	p              *Proxy
	client, server *net.TCPConn
	mu             sync.Mutex
	left           int64 // bytes until it is cut; negative: never
	reset          bool  // and how
}

func (w *wire) pass(from, to *net.TCPConn) {
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		n, cut := w.admit(n)
		to.Write(buf[:n])
		if cut || err != nil {
			w.client.Close()
			w.server.Close()
			return
		}
	}
}

// admit returns how many of n bytes pass, and whether the connection is cut after them.
func (w *wire) admit(n int) (int, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left < 0 || int64(n) <= w.left {
		if w.left >= 0 {
			w.left -= int64(n)
		}
		return n, false
	}
	n = int(w.left)
	w.left = 0
	w.p.Cuts.Add(1)
	if w.reset {
		w.client.SetLinger(0)
		w.server.SetLinger(0)
	}
	return n, true
}
