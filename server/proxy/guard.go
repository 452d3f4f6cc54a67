package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A guard follows the framing of the requests that a client sends over HTTP/1, and refuses what two parsers may read in two
// ways (request smuggling: RFC 9112, sections 5.1, 5.2, 6.3, 7.1 and 11.2). net/http accepts some of that and hides it from
// handlers: a Content-Length beside Transfer-Encoding, folded lines, lines that end with LF alone. What the guard passes,
// net/http reads as the same requests. After a request that may switch protocols (Upgrade, CONNECT) and after the preface of
// HTTP/2 it passes everything: the door closes the connection when such a request has not switched.
//
// The guard looks at lines, and skips bodies by their length. It keeps only the beginning of a line that comes in pieces.
type guard struct {
	at   place
	line []byte // what has come of a line
	cr   bool   // it has ended with CR, and an LF must follow
	left uint64 // bytes of a body or chunk
	n    int    // lines of this header, trailer or preface

	connect bool
	upgrade bool // to something else than h2c, which no door switches to
	old     bool // HTTP/1.0
	lengths bool // there was a Content-Length
	chunked bool // there was a Transfer-Encoding

	refusal string // why the connection was refused
}

// A place is what the next byte belongs to.
type place uint8

const (
	atStart place = iota // of a connection: a request or the preface
	inPreface
	atRequest
	inHeader
	inTrailer
	inBody
	atChunk // its size
	inChunk
	afterChunk
	beyond // another protocol
)

const (
	mostLines     = 400 // of a header; net/http takes 500 from Go 1.27 on
	mostExtension = 256 // bytes of extensions of a chunk
	mostDigits    = 16  // of the size of a chunk
	keptLine      = 512 // bytes of a line whose memory is kept for the next one

	// poison makes every parser in net/http fail, wherever it stands. It is as long as the preface, which net/http awaits first.
	poison = "\r\x00\r\n\r\n                  "
)

// preface has the lines of HTTP/2's.
var preface = [...]string{"PRI * HTTP/2.0", "", "SM", ""}

// The classes of bytes.
const (
	tokenByte  = 1 << iota // of a method or a name
	targetByte             // of a request's target
	valueByte              // of a value
)

var classes = func() (c [256]uint8) {
	for b := range c {
		if b >= ' ' && b != 0x7f || b == '\t' {
			c[b] |= valueByte
		}
		if b > ' ' && b != 0x7f && b != '#' {
			c[b] |= targetByte
		}
		if b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b < 0x80 && strings.IndexByte("!#$%&'*+-.^_`|~", byte(b)) >= 0 {
			c[b] |= tokenByte
		}
	}
	return c
}()

// scan follows p. It returns how many of its bytes may be passed on: all of them, unless the request is refused.
func (g *guard) scan(p []byte) int {
	start := 0 // of a line
	for i := 0; i < len(p); i++ {
		switch b := p[i]; {
		case g.at == beyond:
			return len(p)
		case g.at == inBody || g.at == inChunk:
			n := min(g.left, uint64(len(p)-i))
			i += int(n) - 1
			start = i + 1
			if g.left -= n; g.left > 0 {
				return len(p)
			}
			if g.at == inChunk {
				g.at = afterChunk
			} else {
				g.next()
			}
		case g.cr != (b == '\n'):
			return g.refuse(i, "a line does not end with CR LF")
		case b == '\n':
			line := p[start:i]
			if len(g.line) > 0 {
				g.line = append(g.line, line...)
				line = g.line
			}
			g.line, g.cr, start = g.line[:0], false, i+1
			if text := g.read(line[:len(line)-1]); text != "" {
				return g.refuse(i, text)
			}
		case b == '\r':
			g.cr = true
		case classes[b]&valueByte == 0:
			return g.refuse(i, "a line has a control character")
		default:
			for i+1 < len(p) && classes[p[i+1]]&valueByte != 0 {
				i++
			}
		}
	}
	g.line = append(g.line, p[start:]...)
	return len(p)
}

// refuse refuses the connection from the byte i of a Read on.
func (g *guard) refuse(i int, why string) int {
	g.refusal = why
	return i
}

// read reads a line. It returns why the request is refused.
func (g *guard) read(line []byte) string {
	switch g.at {
	case atStart, inPreface:
		if string(line) == preface[g.n] {
			g.at = inPreface
			if g.n++; g.n == len(preface) {
				g.at = beyond
			}
			return ""
		}
		if g.at == inPreface {
			return "the preface of HTTP/2 is incomplete"
		}
		return g.request(line)
	case atRequest:
		return g.request(line)
	case atChunk:
		return g.chunk(line)
	case afterChunk:
		if len(line) > 0 {
			return "no CR LF follows a chunk"
		}
		g.at = atChunk
		return ""
	}
	if len(line) == 0 {
		return g.headerEnded()
	}
	name, value, colon := bytes.Cut(line, []byte(":"))
	if !colon || !hasOnly(name, tokenByte) {
		return "a line of a header does not begin with a token and a colon"
	}
	if g.n++; g.n > mostLines {
		return "the header has too many lines"
	}
	if g.at == inTrailer {
		return trailer(name)
	}
	return g.header(name, bytes.Trim(value, " \t"))
}

func (g *guard) request(line []byte) string {
	method, rest, _ := bytes.Cut(line, []byte(" "))
	target, version, _ := bytes.Cut(rest, []byte(" "))
	g.connect, g.old = string(method) == http.MethodConnect, string(version) == "HTTP/1.0"
	g.at = inHeader
	switch {
	case !hasOnly(method, tokenByte):
		return "the method is not a token"
	case !hasOnly(target, targetByte):
		return "the target is not a URI without a fragment"
	case !g.old && string(version) != "HTTP/1.1":
		return "the version is neither HTTP/1.1 nor HTTP/1.0"
	}
	return ""
}

func (g *guard) header(name, value []byte) string {
	var err error
	switch {
	case bytes.EqualFold(name, []byte("Content-Length")):
		if g.lengths {
			return "there is more than one Content-Length"
		}
		g.lengths = true
		if g.left, err = strconv.ParseUint(string(value), 10, 63); err != nil {
			return "the Content-Length is not one number, or too large"
		}
	case bytes.EqualFold(name, []byte("Transfer-Encoding")):
		if g.chunked {
			return "there is more than one Transfer-Encoding"
		}
		g.chunked = true
		if !bytes.EqualFold(value, []byte("chunked")) {
			return "the Transfer-Encoding is not chunked"
		}
	case bytes.EqualFold(name, []byte("Upgrade")):
		g.upgrade = g.upgrade || !bytes.EqualFold(value, []byte("h2c"))
	}
	return ""
}

func trailer(name []byte) string {
	for _, other := range [...]string{"Content-Length", "Transfer-Encoding", "Host", "Trailer"} {
		if strings.EqualFold(string(name), other) {
			return "the trailer has a header that only a header may have"
		}
	}
	return ""
}

// headerEnded expects what follows a header or trailer.
func (g *guard) headerEnded() string {
	switch {
	case g.at == inTrailer:
		g.next()
	case g.chunked && g.lengths:
		return "there is a Transfer-Encoding beside a Content-Length"
	case g.chunked && g.old:
		return "HTTP/1.0 has no Transfer-Encoding"
	case g.connect && (g.chunked || g.left > 0):
		return "CONNECT has no body"
	case g.chunked:
		g.at = atChunk
	case g.left > 0:
		g.at = inBody
	default:
		g.next()
	}
	return ""
}

// chunk reads the size of a chunk.
func (g *guard) chunk(line []byte) (refusal string) {
	size, extension, _ := bytes.Cut(line, []byte(";"))
	var err error
	switch g.left, err = strconv.ParseUint(string(size), 16, 63); {
	case err != nil || len(size) > mostDigits:
		return "the size of a chunk is not a number in hex, or too large"
	case len(extension) > mostExtension:
		return "the extensions of a chunk are too long"
	case g.left > 0:
		g.at = inChunk
	default:
		g.at, g.n = inTrailer, 0
	}
	return ""
}

// next expects what follows a message.
func (g *guard) next() {
	next := guard{at: atRequest}
	if g.upgrade || g.connect {
		next.at = beyond
	}
	if cap(g.line) <= keptLine {
		next.line = g.line
	}
	*g = next
}

// Read passes on what the guard lets through. In place of a request that it refuses, net/http reads one that it answers with
// 400 in its turn: requests that came earlier on the connection still have their responses.
func (c *doorConn) Read(p []byte) (int, error) {
	for c.refused {
		if n := copy(p, c.poison); n > 0 {
			c.poison = c.poison[n:]
			return n, nil
		}
		if _, err := c.Conn.Read(p); err != nil || len(p) == 0 { // an error would end the earlier request
			return 0, err
		}
	}
	n, err := c.Conn.Read(p)
	if good := c.guard.scan(p[:n]); good < n {
		n = copy(p[good:], poison)
		c.refused, c.poison = true, poison[n:]
		return good + n, nil
	}
	if midway := c.guard.inABody(); midway != c.midway.Load() {
		c.midway.Store(midway)
	}
	return n, err
}

func (g *guard) inABody() bool { return g.at >= inTrailer && g.at < beyond }

// badRequest is what net/http answers when it cannot read a request.
const badRequest = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request"

// lastWords bounds how long a refused client may take to read the answer.
const lastWords = 500 * time.Millisecond

// Write adds to net/http's answer why a request was refused.
func (c *doorConn) Write(p []byte) (int, error) {
	if string(p) != badRequest || !c.refused { // in this order: handlers write while a Read is under way
		return c.Conn.Write(p)
	}
	c.report(c.guard.refusal)
	text := fmt.Sprintf(`{"type":"about:blank","title":"Bad Request","status":400,"detail":%q,"attempts":0}`, c.guard.refusal)
	_, err := fmt.Fprintf(c.Conn, "HTTP/1.1 400 Bad Request\r\nContent-Type: application/problem+json\r\nContent-Length: %d\r\n"+
		"Proxy-Status: lull; error=http_request_error\r\nConnection: close\r\n\r\n%s", len(text), text)
	if err == nil && c.CloseWrite() == nil {
		// Closing a connection with unread bytes resets it, and the answer may be lost.
		_ = c.Conn.SetReadDeadline(time.Now().Add(lastWords))
		_, _ = io.CopyN(io.Discard, c.Conn, 256<<10)
	}
	return len(p), err
}

func lower(b byte) byte {
	if b >= 'A' && b <= 'Z' {
		b += 'a' - 'A'
	}
	return b
}
