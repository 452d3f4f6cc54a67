//go:build servers

package neterr

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
)

// The errors of this file are those of the kernel.

func listen(t *testing.T) *net.TCPListener {
	t.Helper()
	l := must.Have(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { l.Close() })
	return l.(*net.TCPListener)
}

// pair returns both ends of a connection.
func pair(t *testing.T) (client, server *net.TCPConn) {
	t.Helper()
	l := listen(t)
	c := must.Have(net.Dial("tcp", l.Addr().String()))
	s := must.Have(l.AcceptTCP())
	t.Cleanup(func() { c.Close(); s.Close() })
	return c.(*net.TCPConn), s
}

func TestRefused(t *testing.T) {
	l := listen(t)
	addr := l.Addr().String()
	l.Close()
	_, err := net.Dial("tcp", addr)
	check(t, err, Class{Kind: Transient, NeverSent: true, Code: "connection_refused"})
}

// A connected UDP socket hears "refused" on a later read or write: the datagram
// had left.
func TestRefusedAfterSendingIsNotNeverSent(t *testing.T) {
	pc := must.Have(net.ListenPacket("udp", "127.0.0.1:0"))
	addr := pc.LocalAddr().String()
	pc.Close()
	c := must.Have(net.Dial("udp", addr))
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	c.Write([]byte("x"))
	_, err := c.Read(make([]byte, 1))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Skip("this system does not report ICMP errors on UDP sockets")
	}
	check(t, err, Class{Kind: Transient, Code: "connection_refused"})
}

func TestReset(t *testing.T) {
	c, s := pair(t)
	s.SetLinger(0) // close with RST
	s.Close()
	_, err := c.Read(make([]byte, 1))
	check(t, err, Class{Kind: Transient, Code: "connection_reset"})
}

func TestBrokenPipe(t *testing.T) {
	c, s := pair(t)
	s.SetLinger(0)
	s.Close()
	c.Read(make([]byte, 1)) // take the RST in
	_, err := c.Write([]byte("x"))
	check(t, err, Class{Kind: Transient, Code: "connection_reset"})
}

func TestReadTimeout(t *testing.T) {
	c, _ := pair(t)
	c.SetReadDeadline(time.Unix(1, 0))
	_, err := c.Read(make([]byte, 1))
	check(t, err, Class{Kind: Transient, Code: "timeout"})
}
