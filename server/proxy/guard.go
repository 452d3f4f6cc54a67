package proxy

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// A guard follows the framing of the requests that a client sends over HTTP/1, and refuses what two parsers may read in two
// ways (request smuggling: RFC 9112, sections 5.1, 5.2, 6.3, 7.1 and 11.2). net/http accepts some of that and hides it from
// handlers: a Content-Length beside Transfer-Encoding, folded lines, lines that end with LF alone. What the guard passes,
// net/http reads as the same requests. After a request that may switch protocols (Upgrade, CONNECT) and after the preface of
// HTTP/2 it passes everything: the door closes the connection when such a request has not switched.
//
// The guard is a state machine over single bytes. It keeps no bytes and allocates nothing. Bodies are skipped by their length.
type guard struct {
	at    place
	n     int      // the position in what is being read
	token [17]byte // the beginning of a method or of a header's name, in lower case
	left  uint64   // bytes of a body or chunk
	lines int      // of this header or trailer

	old      bool // HTTP/1.0
	connect  bool
	upgrade  bool // to something else than h2c, which no door switches to
	lengths  bool // there was a Content-Length
	chunked  bool // there was a Transfer-Encoding
	trailing bool // in the trailer
	ended    bool // of a value: only blanks may follow

	refusal string // why the connection was refused
}

// A place is what the next byte belongs to.
type place uint8

const (
	inPreface place = iota
	inMethod
	inTarget
	inVersion
	atLine // the first byte of a line of a header
	inName
	inValue
	inLength  // the value of Content-Length
	inCoding  // the value of Transfer-Encoding
	inUpgrade // the value of Upgrade
	lineLF
	lastLF // of a header or trailer
	inBody
	inChunkSize
	inChunkExtension
	chunkLF
	inChunk
	chunkEndCR
	chunkEndLF
	beyond // another protocol
)

const (
	preface       = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	mostLines     = 400 // of a header; net/http takes 500 from Go 1.27 on
	mostExtension = 256 // bytes of extensions of a chunk
	mostDigits    = 16  // of the size of a chunk

	// poison makes every parser in net/http fail, wherever it stands. It is as long as the preface, which net/http awaits first.
	poison = "\r\x00\r\n\r\n                  "
)

var prefaceBytes = []byte(preface)

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
	for i := 0; i < len(p); i++ {
		b := p[i]
		switch g.at {
		case inPreface:
			if b == preface[g.n] {
				if g.n++; g.n == len(preface) {
					g.at = beyond
				}
				continue
			}
			n := g.n
			g.begin()
			if g.scan(prefaceBytes[:n]) < n {
				return i
			}
			i--
		case inMethod:
			switch {
			case classes[b]&tokenByte != 0:
				g.take(b)
			case b == ' ' && g.n > 0:
				g.connect = string(g.token[:min(g.n, len(g.token))]) == "connect"
				g.at, g.n = inTarget, 0
			default:
				return g.refuse(i, "the method is not a token")
			}
		case inTarget:
			start := i
			for i < len(p) && classes[p[i]]&targetByte != 0 {
				i++
			}
			g.n += i - start
			switch {
			case i == len(p):
			case p[i] == ' ' && g.n > 0:
				g.at, g.n = inVersion, 0
			default:
				return g.refuse(i, "the target is not a URI without a fragment")
			}
		case inVersion:
			const version = "HTTP/1."
			switch {
			case g.n < len(version) && b == version[g.n], g.n == len(version) && (b == '0' || b == '1'):
				g.old = b == '0'
				g.n++
			case g.n == len(version)+1 && b == '\r':
				g.at = lineLF
			default:
				return g.refuse(i, "the version is neither HTTP/1.1 nor HTTP/1.0, or the line does not end with CR LF")
			}
		case atLine:
			switch {
			case b == '\r':
				g.at = lastLF
			case classes[b]&tokenByte != 0:
				if g.lines++; g.lines > mostLines {
					return g.refuse(i, "the header has too many lines")
				}
				g.at, g.n = inName, 0
				g.take(b)
			case b == ' ' || b == '\t':
				return g.refuse(i, "a line begins with a blank (obsolete folding)")
			default:
				return g.refuse(i, "a header's name is not a token")
			}
		case inName:
			switch {
			case classes[b]&tokenByte != 0:
				for g.take(b); i+1 < len(p) && classes[p[i+1]]&tokenByte != 0; i++ {
					g.take(p[i+1])
				}
			case b == ':':
				if text := g.named(); text != "" {
					return g.refuse(i, text)
				}
			default:
				return g.refuse(i, "a header's name is not a token with a colon behind it")
			}
		case inValue:
			for i < len(p) && classes[p[i]]&valueByte != 0 {
				i++
			}
			switch {
			case i == len(p):
			case p[i] == '\r':
				g.at = lineLF
			default:
				return g.refuse(i, "a header's value has a control character, or its line ends with LF alone")
			}
		case inLength:
			switch {
			case b >= '0' && b <= '9' && !g.ended:
				if g.left > (math.MaxInt64-uint64(b-'0'))/10 {
					return g.refuse(i, "the Content-Length is too large")
				}
				g.left = g.left*10 + uint64(b-'0')
				g.n++
			case b == ' ' || b == '\t':
				g.ended = g.n > 0
			case b == '\r' && g.n > 0:
				g.at = lineLF
			default:
				return g.refuse(i, "the Content-Length is not one number")
			}
		case inCoding:
			const chunked = "chunked"
			switch {
			case !g.ended && g.n < len(chunked) && lower(b) == chunked[g.n]:
				g.n++
			case b == ' ' || b == '\t':
				g.ended = g.n > 0
			case b == '\r' && g.n == len(chunked):
				g.at = lineLF
			default:
				return g.refuse(i, "the Transfer-Encoding is not chunked")
			}
		case inUpgrade:
			const h2c = "h2c"
			switch {
			case !g.ended && g.n < len(h2c) && lower(b) == h2c[g.n]:
				g.n++
			case b == ' ' || b == '\t':
				g.ended = g.n > 0
			case b == '\r' && g.n == len(h2c):
				g.at = lineLF
			default:
				g.at, g.upgrade = inValue, true
				i--
			}
		case lineLF, lastLF, chunkLF, chunkEndLF:
			if b != '\n' {
				return g.refuse(i, "a CR stands alone")
			}
			if text := g.lineEnded(); text != "" {
				return g.refuse(i, text)
			}
		case inBody, inChunk:
			n := min(g.left, uint64(len(p)-i))
			i += int(n) - 1
			if g.left -= n; g.left > 0 {
				continue
			}
			if g.at == inChunk {
				g.at = chunkEndCR
			} else {
				g.next()
			}
		case inChunkSize:
			digit, ok := hexDigit(b)
			switch {
			case ok && g.n < mostDigits && g.left <= math.MaxInt64>>4:
				g.left = g.left<<4 | uint64(digit)
				g.n++
			case b == ';' && g.n > 0:
				g.at, g.n = inChunkExtension, 0
			case b == '\r' && g.n > 0:
				g.at = chunkLF
			default:
				return g.refuse(i, "the size of a chunk is not a number in hex, or too large")
			}
		case inChunkExtension:
			switch g.n++; {
			case g.n > mostExtension:
				return g.refuse(i, "the extensions of a chunk are too long")
			case classes[b]&valueByte != 0:
			case b == '\r':
				g.at = chunkLF
			default:
				return g.refuse(i, "an extension of a chunk has a control character")
			}
		case chunkEndCR:
			if b != '\r' {
				return g.refuse(i, "no CR LF follows a chunk")
			}
			g.at = chunkEndLF
		case beyond:
			return len(p)
		}
	}
	return len(p)
}

// begin expects a request.
func (g *guard) begin() { *g = guard{at: inMethod} }

// next expects what follows a message.
func (g *guard) next() {
	switching := g.upgrade || g.connect
	g.begin()
	if switching {
		g.at = beyond
	}
}

// take takes a byte of a method or name.
func (g *guard) take(b byte) {
	if g.n < len(g.token) {
		g.token[g.n] = lower(b)
	}
	g.n++
}

// named begins the value of a header whose name has been read. It returns why the request is refused.
func (g *guard) named() string {
	g.at = inValue
	if g.n > len(g.token) {
		return ""
	}
	name := g.token[:g.n]
	if g.trailing {
		switch string(name) {
		case "content-length", "transfer-encoding", "host", "trailer":
			return "the trailer has a header that only a header may have"
		}
		return ""
	}
	switch string(name) {
	case "content-length":
		if g.lengths {
			return "there is more than one Content-Length"
		}
		g.at, g.lengths, g.n, g.left, g.ended = inLength, true, 0, 0, false
	case "transfer-encoding":
		if g.chunked {
			return "there is more than one Transfer-Encoding"
		}
		g.at, g.chunked, g.n, g.ended = inCoding, true, 0, false
	case "upgrade":
		g.at, g.n, g.ended = inUpgrade, 0, false
	}
	return ""
}

// lineEnded expects what follows a line. It returns why the request is refused.
func (g *guard) lineEnded() string {
	switch {
	case g.at == lineLF:
		g.at = atLine
	case g.at == chunkEndLF:
		g.at, g.n = inChunkSize, 0
	case g.at == chunkLF && g.left > 0:
		g.at = inChunk
	case g.at == chunkLF:
		g.at, g.trailing, g.lines = atLine, true, 0
	case g.trailing:
		g.next()
	case g.chunked && g.lengths:
		return "there is a Transfer-Encoding beside a Content-Length"
	case g.chunked && g.old:
		return "HTTP/1.0 has no Transfer-Encoding"
	case g.connect && (g.chunked || g.left > 0):
		return "CONNECT has no body"
	case g.chunked:
		g.at, g.n = inChunkSize, 0
	case g.left > 0:
		g.at = inBody
	default:
		g.next()
	}
	return ""
}

// refuse refuses the connection from the byte i of a Read on.
func (g *guard) refuse(i int, why string) int {
	g.refusal = why
	return i
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

func (g *guard) inABody() bool { return g.at >= inBody && g.at < beyond || g.trailing }

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

func hexDigit(b byte) (byte, bool) {
	switch b = lower(b); {
	case b >= '0' && b <= '9':
		return b - '0', true
	case b >= 'a' && b <= 'f':
		return b - 'a' + 10, true
	}
	return 0, false
}
