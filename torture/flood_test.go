package torture

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// flood makes connections, a few at a time, each with one request, and resets them. It returns
// how many got an answer.
func flood(tb testing.TB, address string, connections int) int {
	const beside = 16
	request := []byte("GET /t/once-success/flood HTTP/1.1\r\nHost: here\r\n\r\n")
	var left, answered atomic.Int64
	left.Store(int64(connections))
	var group sync.WaitGroup
	for range beside {
		group.Go(func() {
			answer := make([]byte, 4096)
			for left.Add(-1) >= 0 {
				conn, err := net.Dial("tcp", address)
				if err != nil {
					tb.Error(err)
					return
				}
				conn.Write(request)
				if n, _ := conn.Read(answer); bytes.HasPrefix(answer[:n], []byte("HTTP/1.1 200 ")) {
					answered.Add(1)
				}
				reset(conn) // a port whose connection was closed is in use for another minute
			}
		})
	}
	group.Wait()
	return int(answered.Load())
}

// addressOf returns the host and the port of a server.
func addressOf(s *Server) string {
	return strings.TrimSuffix(strings.TrimPrefix(s.URL(), "http://"), "/")
}

// A flood of connections is answered. What is kept of it is bounded, and the server goes on.
func TestAFloodOfConnections(t *testing.T) {
	t.Parallel()
	const connections = mostAttempts / 10
	s := standingServer(t)
	if got := flood(t, addressOf(s), connections); got != connections {
		t.Errorf("%d of %d connections were answered", got, connections)
	}
	if status, text := fetch(t, s.URL()+"t/once-400/after"); status != 400 {
		t.Errorf("the next one gets %d, %s", status, text)
	}
	r, ok := s.Cards()[0].Result("once-success")
	if !ok || r.Attempts != connections || len(r.Events) > mostEvents+1 {
		t.Errorf("%d attempts and %d events are kept, want %d and at most %d", r.Attempts, len(r.Events), connections, mostEvents+1)
	}
}

// What there is no room for is not kept.
func TestAttemptsAreBounded(t *testing.T) {
	l := newLog(mostAttempts, func() {})
	for i := range mostAttempts + 1000 {
		l.arrive(Attempt{Call: i, Conn: i})
	}
	seen, events := l.seen(Case{})
	if !seen.Flood || len(seen.Attempts) != mostAttempts || len(l.numbers) > mostAttempts || len(l.carried) > mostAttempts || len(events) > mostEvents+1 {
		t.Errorf("flood is %v, %d attempts, %d calls, %d connections, %d events", seen.Flood, len(seen.Attempts), len(l.numbers), len(l.carried), len(events))
	}
}

// An error that will pass ends no server.
func TestAcceptGoesOn(t *testing.T) {
	inner := &full{left: 3, end: io.ErrClosedPipe}
	if _, err := (&gate{Listener: inner, log: newLog(1, nil)}).Accept(); !errors.Is(err, io.ErrClosedPipe) || inner.left != 0 {
		t.Errorf("%v, and %d errors were left", err, inner.left)
	}
}

// full is a listener that has too many files a few times, and then ends.
type full struct {
	net.Listener
	left int
	end  error
}

func (f *full) Accept() (net.Conn, error) {
	if f.left == 0 {
		return nil, f.end
	}
	f.left--
	return nil, passing{}
}

type passing struct{ error }

func (passing) Temporary() bool { return true }
