package torture

import (
	"crypto/tls"
	"encoding/binary"
	"net"
	"time"
)

// A framedGate accepts connections over TLS on which net/http speaks HTTP/2 (RFC 9113). A frame is changed on its way out: what
// net/http sends for a handler that gives up, RST_STREAM, becomes what the fault of the case plays.
type framedGate struct {
	*gate
	site   *site
	config *tls.Config
}

func (g framedGate) Accept() (net.Conn, error) {
	conn, err := g.gate.Accept()
	if err != nil {
		return nil, err
	}
	secured := tls.Server(conn, g.config)
	return &framedConn{Conn: secured, tls: secured, site: g.site}, nil
}

// A framedConn does not show that it is one of TLS: so net/http lets frames pass through it.
type framedConn struct {
	net.Conn
	tls   *tls.Conn // the same
	site  *site
	begun []byte // frames that have not been sent yet: the last is not whole
	over  bool   // nothing is sent any more
}

// Read makes the handshake first.
func (c *framedConn) Read(p []byte) (int, error) {
	if err := c.tls.Handshake(); err != nil {
		c.site.log.note(0, "TLS is not agreed on connection %d", withoutTLS(c.tls).(*countedConn).number)
		return 0, err
	}
	c.site.noteHandshake(c.tls)
	return c.Conn.Read(p)
}

// Write sends the frames that are whole.
func (c *framedConn) Write(p []byte) (int, error) {
	if c.tls.ConnectionState().NegotiatedProtocol != "h2" {
		return c.Conn.Write(p)
	}
	c.begun = append(c.begun, p...)
	for len(c.begun) >= frameHead && !c.over {
		n := frameHead + int(c.begun[0])<<16 + int(c.begun[1])<<8 + int(c.begun[2])
		if len(c.begun) < n {
			break
		}
		next := c.begun[:n]
		c.begun = c.begun[n:]
		if next[3] == frameRST {
			next = c.site.c.script[0].fault.frame(binary.BigEndian.Uint32(next[5:]))
		}
		if _, err := c.Conn.Write(next); err != nil {
			return 0, err
		}
		if next[3] == frameGone {
			// What was sent last must be read: a close while the client still writes would be a reset.
			c.over = true
			c.tls.CloseWrite()
			time.AfterFunc(500*time.Millisecond, func() { c.Close() })
		}
	}
	return len(p), nil
}

const (
	frameHead = 9 // bytes: length, type, flags and stream
	frameRST  = 3 // RST_STREAM
	frameGone = 7 // GOAWAY
)

// frame returns a frame without flags whose payload are numbers of four bytes.
func frame(kind byte, stream uint32, payload ...uint32) []byte {
	b := binary.BigEndian.AppendUint32([]byte{0, 0, byte(4 * len(payload)), kind, 0}, stream)
	for _, n := range payload {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return b
}
