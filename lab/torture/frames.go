package torture

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"time"
)

// serveFrames speaks HTTP/2 (RFC 9113) frame by frame, as far as a case needs it: requests are
// counted, not read, and the only answer with a header is a 200 without a body. So it needs no
// HPACK.
func (s *site) serveFrames(g *gate, config *tls.Config) {
	for {
		raw, err := g.Accept()
		if err != nil {
			return
		}
		s.work.Go(func() {
			conn := tls.Server(raw, config)
			stop := make(chan struct{})
			defer close(stop)
			go func() {
				select {
				case <-s.over:
				case <-stop:
				}
				conn.Close()
			}()
			conn.SetDeadline(time.Now().Add(time.Minute))
			if conn.Handshake() != nil {
				s.log.note(0, "TLS is not agreed on connection %d", raw.(*counted).number)
				return
			}
			s.greeted(conn)
			if conn.ConnectionState().NegotiatedProtocol != "h2" {
				s.old(conn)
				return
			}
			f := &framer{site: s, conn: conn, number: raw.(*counted).number, streams: map[uint32]*stream{}}
			f.serve()
		})
	}
}

// old answers a client that speaks HTTP/1.1 alone: the case does not apply to it.
func (s *site) old(conn net.Conn) {
	in := bufio.NewReader(conn)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		index, _, _ := s.log.arrive(Attempt{Method: r.Method, Proto: r.Proto, Header: r.Header})
		s.read(r.Body, index, true)
		s.log.note(0, "it speaks %s; the case is about HTTP/2", r.Proto)
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}\n")
	}
}

const (
	frameData = iota
	frameHeaders
	framePriority
	frameRST
	frameSettings
	framePush
	framePing
	frameGone
	frameWindow
)

const (
	flagEndStream  = 1
	flagAck        = 1
	flagEndHeaders = 4
)

type stream struct {
	index, number int
	length        int64
}

type framer struct {
	site    *site
	conn    net.Conn
	number  int
	streams map[uint32]*stream
}

func (f *framer) send(kind, flags byte, id uint32, payload ...byte) error {
	head := make([]byte, 9, 9+len(payload))
	head[0], head[1], head[2] = byte(len(payload)>>16), byte(len(payload)>>8), byte(len(payload))
	head[3], head[4] = kind, flags
	binary.BigEndian.PutUint32(head[5:], id)
	_, err := f.conn.Write(append(head, payload...))
	return err
}

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// mostFrame is the largest frame that a client may send without being asked (RFC 9113, 4.2).
const mostFrame = 1 << 14

func (f *framer) serve() {
	in := bufio.NewReader(f.conn)
	begin := make([]byte, len(preface))
	if _, err := io.ReadFull(in, begin); err != nil || string(begin) != preface {
		return
	}
	f.send(frameSettings, 0, 0)
	head, payload := make([]byte, 9), make([]byte, mostFrame)
	for {
		if _, err := io.ReadFull(in, head); err != nil {
			return
		}
		n := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
		if n > mostFrame {
			return
		}
		if _, err := io.ReadFull(in, payload[:n]); err != nil {
			return
		}
		if !f.frame(head[3], head[4], binary.BigEndian.Uint32(head[5:])&0x7fffffff, payload[:n]) {
			return
		}
	}
}

// frame obeys a frame. It reports whether the connection goes on.
func (f *framer) frame(kind, flags byte, id uint32, payload []byte) bool {
	switch kind {
	case frameSettings:
		if flags&flagAck == 0 {
			return f.send(frameSettings, flagAck, 0) == nil
		}
	case framePing:
		if flags&flagAck == 0 {
			return f.send(framePing, flagAck, 0, payload...) == nil
		}
	case frameRST:
		if st := f.streams[id]; st != nil {
			f.site.log.change(st.index, func(a *Attempt) {
				a.Gone = f.site.log.now()
				f.site.log.noteLocked(0, "the client resets attempt %d", st.number)
			})
			delete(f.streams, id)
		}
	case frameHeaders:
		if f.streams[id] == nil {
			st := &stream{}
			st.index, st.number, _ = f.site.log.arrive(Attempt{Method: f.site.c.method, Proto: "HTTP/2.0", Conn: f.number})
			f.site.log.change(st.index, func(*Attempt) { f.site.log.proto2 = true })
			f.streams[id] = st
		}
		if flags&flagEndStream != 0 {
			return f.respond(id)
		}
	case frameData:
		st := f.streams[id]
		if st == nil {
			return true
		}
		st.length += int64(len(payload))
		if len(payload) > 0 {
			var n [4]byte
			binary.BigEndian.PutUint32(n[:], uint32(len(payload)))
			f.send(frameWindow, 0, 0, n[:]...)
			f.send(frameWindow, 0, id, n[:]...)
		}
		if flags&flagEndStream != 0 {
			return f.respond(id)
		}
	}
	return true
}

// respond answers a request that is complete.
func (f *framer) respond(id uint32) bool {
	st := f.streams[id]
	delete(f.streams, id)
	ans := f.site.answer(0, st.number)
	f.site.log.change(st.index, func(a *Attempt) {
		a.Answered, a.Length, a.Whole = f.site.log.now(), st.length, true
		a.Status, a.Good = ans.status, ans.fault == nil
		f.site.log.noteLocked(0, "attempt %d is answered: %s", st.number, ans.describe(nil))
	})
	if ans.fault != nil {
		return ans.fault.frames(f, id)
	}
	// The same answer as over HTTP/1.1: some clients take nothing for a success but what they can decode. In HPACK that is
	// the status 200, and a literal with the name of index 31.
	const jsonType = "application/json"
	fields := append([]byte{0x88, 0x0f, 31 - 15, byte(len(jsonType))}, jsonType...)
	return f.send(frameHeaders, flagEndHeaders, id, fields...) == nil && f.send(frameData, flagEndStream, id, []byte("{}\n")...) == nil
}

// reset ends a stream with an error of RFC 9113, 7.
func (f *framer) reset(stream, code uint32) bool {
	return f.send(frameRST, 0, stream, binary.BigEndian.AppendUint32(nil, code)...) == nil
}

// goaway ends the connection, with the last stream that may have been processed.
func (f *framer) goaway(last, code uint32) bool {
	f.send(frameGone, 0, 0, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, last), code)...)
	return f.leave()
}

// leave closes the connection so that what was sent last is read: a close while the client
// still writes would be a reset.
func (f *framer) leave() bool {
	if c, ok := f.conn.(*tls.Conn); ok {
		c.CloseWrite()
	}
	f.conn.SetDeadline(time.Now().Add(500 * time.Millisecond))
	io.Copy(io.Discard, f.conn)
	return false
}
