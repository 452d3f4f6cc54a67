package lullhttp_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/lullhttp"
)

// secured are a certificate for example.com and those who trust it.
func secured(t *testing.T) (server, client *tls.Config) {
	s := memnet.NewTLSServer(t, http.NotFoundHandler())
	s.Close()
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return &tls.Config{Certificates: s.TLS.Certificates}, &tls.Config{RootCAs: pool, ServerName: "example.com"}
}

// echoes answers each request on conn with its body.
func echoes(conn net.Conn) {
	r := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
}

// bodies make the body of a request, in each way that decides about repeating it.
var sentBodies = map[string]func(req *http.Request){
	"no body": func(*http.Request) {},
	"from text": func(req *http.Request) {
		r, _ := http.NewRequest("POST", host, strings.NewReader("hello"))
		setBody(req, r)
	},
	"read once, of known length": func(req *http.Request) {
		req.Body, req.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader("hello"))), 5
	},
	"read once, of unknown length": func(req *http.Request) {
		req.Body, req.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader("hello"))), -1
	},
}

func setBody(req, from *http.Request) {
	req.Body, req.ContentLength, req.GetBody = from.Body, from.ContentLength, from.GetBody
}

// What failed before the request left was certainly not carried out: whatever the method, it is repeated.
func TestWhatWasNeverSentIsRepeated(t *testing.T) {
	serverTLS, clientTLS := secured(t)
	mute := func(conn net.Conn) { io.Copy(io.Discard, conn) }
	hangUp := func(conn net.Conn) { conn.Read(make([]byte, 1<<14)) }
	serve := map[string]func(net.Conn){
		"http": echoes,
		"https": func(conn net.Conn) {
			c := tls.Server(conn, serverTLS)
			echoes(c)
			c.Close()
		},
	}
	dialError := func(network string, err syscall.Errno) error {
		return &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", err)}
	}
	connectAnswer := func(status string) func(net.Conn) {
		return func(conn net.Conn) {
			http.ReadRequest(bufio.NewReader(conn))
			io.WriteString(conn, "HTTP/1.1 "+status+"\r\nRetry-After: 3\r\nContent-Length: 0\r\n\r\n")
		}
	}
	socksReply := func(bytes ...byte) func(net.Conn) {
		return func(conn net.Conn) {
			io.ReadFull(conn, make([]byte, 3))
			conn.Write([]byte{5, 0})
			io.ReadFull(conn, make([]byte, 5+len("example.com")+2))
			conn.Write(bytes)
		}
	}
	passesOn := func(proxied func(net.Conn)) map[string]func(net.Conn) {
		return map[string]func(net.Conn){
			"http": func(conn net.Conn) {
				r := bufio.NewReader(conn)
				if _, err := http.ReadRequest(r); err != nil {
					return
				}
				io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
				proxied(conn)
			},
			"socks5": func(conn net.Conn) {
				socksReply(5, 0, 0, 1, 0, 0, 0, 0, 0, 0)(conn)
				proxied(conn)
			},
		}
	}
	typed := func(transport *http.Transport) { // as the guide shows it
		transport.OnProxyConnectResponse = func(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
			if resp.StatusCode != http.StatusOK {
				return &lullhttp.StatusError{StatusCode: resp.StatusCode, Header: resp.Header}
			}
			return nil
		}
	}
	for name, c := range map[string]struct {
		scheme, proxy string
		dial          error          // of the first dial, or
		first         func(net.Conn) // what the other side does with the first connection, or
		hangs         bool           // the first dial does
		set           func(*http.Transport)
		code          string
		after         time.Duration
		callerSide    bool
	}{
		"refused":                    {scheme: "http", dial: dialError("tcp", syscall.ECONNREFUSED), code: "connection_refused"},
		"unreachable":                {scheme: "http", dial: dialError("tcp", syscall.EHOSTUNREACH), code: "unreachable"},
		"the dial timed out":         {scheme: "http", dial: dialError("tcp", syscall.ETIMEDOUT), code: engine.CodeTimeout},
		"no socket":                  {scheme: "http", dial: dialError("unix", syscall.ENOENT), code: "no_socket"},
		"a full backlog":             {scheme: "http", dial: dialError("unix", syscall.EAGAIN), code: "backlog_full"},
		"a resolver fails":           {scheme: "http", dial: &net.OpError{Op: "dial", Err: &net.DNSError{Name: "example.com", IsTemporary: true}}, code: "dns"},
		"too many files":             {scheme: "http", dial: dialError("tcp", syscall.EMFILE), code: "local_resources", callerSide: true},
		"too many files, system":     {scheme: "http", dial: dialError("tcp", syscall.ENFILE), code: "local_resources", callerSide: true},
		"no free port":               {scheme: "http", dial: dialError("tcp", syscall.EADDRNOTAVAIL), code: "local_resources", callerSide: true},
		"the dial hangs":             {scheme: "http", hangs: true, code: engine.CodeTimeout},
		"the handshake hangs":        {scheme: "https", first: mute, code: engine.CodeTimeout},
		"the handshake's timeout":    {scheme: "https", first: mute, set: func(tr *http.Transport) { tr.TLSHandshakeTimeout = time.Second }, code: engine.CodeTimeout},
		"the handshake is cut":       {scheme: "https", first: hangUp, code: "unexpected_eof"},
		"CONNECT 429":                {scheme: "https", proxy: "http", first: connectAnswer("429 Too Many Requests"), code: "429"},
		"CONNECT 502":                {scheme: "https", proxy: "http", first: connectAnswer("502 Bad Gateway"), code: "502"},
		"CONNECT 503":                {scheme: "https", proxy: "http", first: connectAnswer("503 Service Unavailable"), code: "503"},
		"CONNECT 504":                {scheme: "https", proxy: "http", first: connectAnswer("504 Gateway Timeout"), code: "504"},
		"CONNECT 503, typed":         {scheme: "https", proxy: "http", first: connectAnswer("503 Not Now"), set: typed, code: "503", after: 3 * time.Second},
		"CONNECT 429, typed":         {scheme: "https", proxy: "http", first: connectAnswer("429 Not Now"), set: typed, code: "429", after: 3 * time.Second},
		"CONNECT is cut":             {scheme: "https", proxy: "http", first: hangUp, code: "unexpected_eof"},
		"CONNECT hangs":              {scheme: "https", proxy: "http", first: mute, code: engine.CodeTimeout},
		"handshake behind a proxy":   {scheme: "https", proxy: "http", first: passesOn(hangUp)["http"], code: "unexpected_eof"},
		"SOCKS fails":                {scheme: "http", proxy: "socks5", first: socksReply(5, 1, 0, 1, 0, 0, 0, 0, 0, 0), code: "socks_failure"},
		"SOCKS network unreachable":  {scheme: "http", proxy: "socks5", first: socksReply(5, 3, 0, 1, 0, 0, 0, 0, 0, 0), code: "unreachable"},
		"SOCKS host unreachable":     {scheme: "https", proxy: "socks5", first: socksReply(5, 4, 0, 1, 0, 0, 0, 0, 0, 0), code: "unreachable"},
		"SOCKS refused":              {scheme: "http", proxy: "socks5", first: socksReply(5, 5, 0, 1, 0, 0, 0, 0, 0, 0), code: "connection_refused"},
		"SOCKS TTL expired":          {scheme: "http", proxy: "socks5", first: socksReply(5, 6, 0, 1, 0, 0, 0, 0, 0, 0), code: "unreachable"},
		"SOCKS is cut":               {scheme: "http", proxy: "socks5", first: hangUp, code: "unexpected_eof"},
		"SOCKS is cut in its answer": {scheme: "http", proxy: "socks5", first: socksReply(5, 0), code: "unexpected_eof"},
		"SOCKS hangs":                {scheme: "http", proxy: "socks5", first: mute, code: engine.CodeTimeout},
		"handshake behind SOCKS":     {scheme: "https", proxy: "socks5", first: passesOn(hangUp)["socks5"], code: "unexpected_eof"},
	} {
		for _, method := range []string{"GET", "POST"} {
			for body, set := range sentBodies {
				for _, wrapped := range []bool{false, true} {
					run(t, strings.Join([]string{name, method, body, fmt.Sprint("wrapped ", wrapped)}, ", "), func(t *testing.T) {
						var dials atomic.Int64
						ended := make(chan struct{})
						good := serve[c.scheme]
						if c.proxy != "" {
							good = passesOn(good)[c.proxy]
						}
						tr := &http.Transport{TLSClientConfig: clientTLS.Clone(), DialContext: func(context.Context, string, string) (net.Conn, error) {
							serve := good
							if dials.Add(1) == 1 {
								switch {
								case c.hangs:
									<-ended
									return nil, errors.New("too late")
								case c.dial != nil:
									return nil, c.dial
								}
								serve = c.first
							}
							ours, theirs := net.Pipe()
							go func() { serve(theirs); theirs.Close() }()
							return &tcpLike{ours}, nil
						}}
						if c.proxy != "" {
							tr.Proxy = http.ProxyURL(&url.URL{Scheme: c.proxy, Host: "proxy.example.com:3128"})
						}
						if c.set != nil {
							c.set(tr)
						}
						var base http.RoundTripper = tr
						if wrapped {
							base = roundTripper(func(r *http.Request) (*http.Response, error) { return tr.RoundTrip(r) })
						}
						var failed []lull.Verdict
						o := observer(func(_ context.Context, e lull.Event) {
							if e.Kind == event.RetryScheduled {
								failed = append(failed, e.Verdict)
							}
						})
						p := eager
						p.Timeouts = lull.TimeoutsNever // which never sees a server at work
						cl := client(t, p, lullhttp.WithBase(base), lullhttp.WithObserver(o))
						req, _ := http.NewRequest(method, c.scheme+"://example.com/", nil)
						set(req)
						resp, err := cl.Do(req)
						close(ended)
						want := ""
						if req.Body != nil {
							want = "hello"
						}
						if got := read(t, resp, err); got != want || dials.Load() != 2 {
							t.Errorf("%q after %d dials", got, dials.Load())
						}
						v := lull.Verdict{Kind: lull.KindTransient, NeverSent: true, After: c.after, Code: c.code}
						if c.code == "429" || c.after > 0 {
							v.Kind = lull.KindRateLimited
						}
						if c.callerSide {
							v.Kind = engine.KindCallerTransient
						}
						if len(failed) != 1 || failed[0] != v {
							t.Errorf("%+v, want %+v", failed, v)
						}
						tr.CloseIdleConnections()
						synctest.Wait()
					})
				}
			}
		}
	}
}

// tcpLike is a connection in memory with addresses, which SOCKS wants to know.
type tcpLike struct{ net.Conn }

func (*tcpLike) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 40000} }
func (*tcpLike) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1080} }
