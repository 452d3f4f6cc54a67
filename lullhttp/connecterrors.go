package lullhttp

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
)

// Some errors of connecting have no type by which they could be recognised. net/http is made to
// return them, as in references.

// handshakeTimeout is the error of http.Transport.TLSHandshakeTimeout. Its type is not exported,
// but its values are equal.
var handshakeTimeout = sync.OnceValue(func() error {
	err := roundTripOver(context.Background(), &http.Transport{TLSHandshakeTimeout: -1}, newScriptedConn("", false), "https")
	if t, ok := err.(net.Error); ok && t.Timeout() && errors.Unwrap(err) == nil && err != context.DeadlineExceeded {
		return err
	}
	return errUnprovoked
})

// errUnprovoked is equal to no error of net/http.
var errUnprovoked = errors.New("net/http returns an unknown error")

// socksReplies are the refusals of a SOCKS proxy (RFC 1928, 6; RFC 1929), and what they mean.
var socksReplies = [...]struct {
	reply string
	kind  engine.VerdictKind
	code  string
}{
	{"\x05\x00\x05\x01", lull.KindTransient, "socks_failure"},    // of the proxy
	{"\x05\x00\x05\x02", engine.KindCallerSide, "proxy_refused"}, // by its rules
	{"\x05\x00\x05\x03", lull.KindTransient, "unreachable"},      // network
	{"\x05\x00\x05\x04", lull.KindTransient, "unreachable"},      // host
	{"\x05\x00\x05\x05", lull.KindTransient, "connection_refused"},
	{"\x05\x00\x05\x06", lull.KindTransient, "unreachable"},      // the packets went in circles
	{"\x05\xff", engine.KindCallerSide, "proxy_refused"},         // it wants credentials
	{"\x05\x02\x01\x01", engine.KindCallerSide, "proxy_refused"}, // it wants others
}

// socksTexts are the innermost errors for socksReplies.
var socksTexts = sync.OnceValue(func() (texts [len(socksReplies)]string) {
	for i := range socksReplies {
		// Nothing reads the rest, an address.
		conn := newScriptedConn(socksReplies[i].reply+"\x00\x01\x00\x00\x00\x00\x00\x00", false)
		proxy := &url.URL{Scheme: "socks5", Host: "localhost:1080", User: url.UserPassword("u", "p")}
		texts[i] = innermostText(roundTripOver(context.Background(), &http.Transport{Proxy: http.ProxyURL(proxy)}, conn, "http"))
	}
	return texts
})

// classifySOCKS returns what a SOCKS proxy's reply means, if err is one, else v, the verdict on a
// dial.
func classifySOCKS(err error, v lull.Verdict) lull.Verdict {
	op, _ := errors.AsType[*net.OpError](err)
	if op == nil || op.Op != "socks connect" {
		return v
	}
	text := innermostText(op)
	for i, t := range socksTexts() {
		if t != "" && t == text {
			v.Kind, v.Code = socksReplies[i].kind, socksReplies[i].code
		}
	}
	return v
}

// refusedConnect reports whether net/http returns the reason phrase if a proxy answers CONNECT with
// 503.
var refusedConnect = sync.OnceValue(func() (found bool) {
	const reason = "a reason"
	proxy := &url.URL{Scheme: "http", Host: "localhost:3128"}
	conn := newScriptedConn("HTTP/1.1 503 "+reason+"\r\n\r\n", false)
	err := roundTripOver(context.Background(), &http.Transport{Proxy: http.ProxyURL(proxy)}, conn, "https")
	return err != nil && err.Error() == reason
})

// classifyRefusedConnect returns what the status means with which a proxy has refused CONNECT, if
// err is such an error. Its text is the reason phrase, so call it only for a request that was not
// sent.
func classifyRefusedConnect(err error) (lull.Verdict, bool) {
	if !refusedConnect() {
		return lull.Verdict{}, false
	}
	text := innermostText(err)
	for status := 400; status < 600; status++ {
		if reason := http.StatusText(status); reason != "" && reason == text {
			return ClassifyStatus(status), true
		}
	}
	return lull.Verdict{}, false
}

// roundTripOver makes a request on a connection in memory, and returns its error.
func roundTripOver(ctx context.Context, t *http.Transport, conn net.Conn, scheme string) error {
	t.DisableKeepAlives = true
	t.DialContext = func(context.Context, string, string) (net.Conn, error) { return conn, nil }
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, scheme+"://localhost/", nil)
	if err != nil {
		return err
	}
	resp, err := t.RoundTrip(req)
	if err == nil {
		resp.Body.Close()
	}
	return err
}

// scriptedConn is a connection that answers with a text. Then it ends, or stays silent.
type scriptedConn struct {
	net.Conn
	in     *strings.Reader
	ends   bool
	once   sync.Once
	closed chan struct{}
}

func newScriptedConn(in string, ends bool) *scriptedConn {
	return &scriptedConn{in: strings.NewReader(in), ends: ends, closed: make(chan struct{})}
}

func (c *scriptedConn) Read(p []byte) (int, error) {
	if n, err := c.in.Read(p); err == nil || c.ends {
		return n, err
	}
	<-c.closed
	return 0, net.ErrClosed
}

func (c *scriptedConn) Write(p []byte) (int, error) { return len(p), nil }
func (c *scriptedConn) Close() error                { c.once.Do(func() { close(c.closed) }); return nil }
func (c *scriptedConn) LocalAddr() net.Addr         { return &net.TCPAddr{} }
func (c *scriptedConn) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1080}
}
func (c *scriptedConn) SetDeadline(time.Time) error      { return nil }
func (c *scriptedConn) SetReadDeadline(time.Time) error  { return nil }
func (c *scriptedConn) SetWriteDeadline(time.Time) error { return nil }
