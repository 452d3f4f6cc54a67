//go:build servers

package torture

import (
	"bytes"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lullgo/lull/internal/check"
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
	check.Equal(t, flood(t, addressOf(s), connections), connections, "connections that were answered")
	if status, text := fetch(s.URL() + "t/once-400/after"); status != 400 {
		t.Errorf("the next one gets %d, %s", status, text)
	}
	r, ok := s.Cards()[0].Result("once-success")
	if !ok || r.Attempts != connections || len(r.Events) > mostEvents+1 {
		t.Errorf("%d attempts and %d events are kept, want %d and at most %d", r.Attempts, len(r.Events), connections, mostEvents+1)
	}
}
