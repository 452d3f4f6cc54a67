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
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/lullhttp"
)

// served is a connection in memory whose other end serve gets. It has addresses, which SOCKS wants to know.
func served(serve func(net.Conn)) net.Conn {
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		serve(theirs)
	}()
	return &tcpLike{ours}
}

// handled is a network in memory on which handle serves each connection, with its number.
func handled(handle func(conn net.Conn, number int)) *http.Transport {
	var n atomic.Int64
	return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		number := int(n.Add(1))
		return served(func(conn net.Conn) { handle(conn, number) }), nil
	}}
}

// A response that was cut in its header is none: what may be repeated is, wherever it was cut.
func TestAResponseCutInItsHeaderIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		header := "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n"
		for _, method := range []string{"GET", "PUT", "DELETE", "POST"} {
			for cut := range len(header) {
				var seen atomic.Int64
				base := handled(func(conn net.Conn, number int) {
					req, err := http.ReadRequest(bufio.NewReader(conn))
					if err != nil {
						return
					}
					io.Copy(io.Discard, req.Body)
					if seen.Add(1) == 1 {
						io.WriteString(conn, header[:cut])
						return
					}
					io.WriteString(conn, header+"ok")
				})
				req, _ := http.NewRequest(method, host, strings.NewReader("body"))
				resp, err := client(t, eager, lullhttp.WithBase(base)).Do(req)
				if method == "POST" {
					var e *lull.Error
					if !errors.As(err, &e) || e.Reason != engine.NotIdempotent || seen.Load() != 1 {
						t.Errorf("POST, cut after %d: %v after %d requests", cut, err, seen.Load())
					}
					continue
				}
				if err != nil || seen.Load() != 2 || read(t, resp, err) != "ok" {
					t.Errorf("%s, cut after %d (%q): %v after %d requests", method, cut, header[max(0, cut-8):cut], err, seen.Load())
				}
				base.CloseIdleConnections()
			}
		}
	})
}

func get(t *testing.T) *http.Request {
	return must(http.NewRequestWithContext(t.Context(), "GET", host, nil))
}

// A server may close an idle connection just as a request goes out on it. http.Transport
// repeats GET and its like then; PUT and DELETE are lull's to repeat, and POST nobody's.
func TestAnIdleConnectionThatTheServerCloses(t *testing.T) {
	for method, want := range map[string]int64{"GET": 2, "PUT": 2, "DELETE": 2, "POST": 1} {
		run(t, method, func(t *testing.T) {
			var requests atomic.Int64
			var idle *endable
			base := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
				conn := &endable{Conn: served(func(conn net.Conn) {
					r := bufio.NewReader(conn)
					for {
						req, err := http.ReadRequest(r)
						if err != nil {
							return
						}
						io.Copy(io.Discard, req.Body)
						requests.Add(1)
						io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
					}
				}), closed: make(chan struct{})}
				if idle == nil {
					idle = conn
				}
				return conn, nil
			}}
			defer base.CloseIdleConnections()
			cl := client(t, eager, lullhttp.WithBase(base))
			do := func(ctx context.Context, method string) (*http.Response, error) {
				req, _ := http.NewRequestWithContext(ctx, method, host, nil)
				return cl.Do(req)
			}
			resp, err := do(t.Context(), "GET")
			read(t, resp, err)
			resp, err = do(idle.whenTaken(t.Context()), method)
			if (err == nil) != (method != "POST") || requests.Load() != want {
				t.Fatalf("%v after %d requests, want %d", err, requests.Load(), want)
			}
			var e *lull.Error
			if method == "POST" && (!errors.As(err, &e) || e.Reason != engine.NotIdempotent || e.Verdict.Code != "connection_closed") {
				t.Errorf("%v", err)
			}
			if err == nil {
				read(t, resp, err)
			}
		})
	}
}

// http.Client.Timeout and Request.Cancel are the caller's time and the caller's word, and
// nothing that lull knows nothing of.
func TestRule20ClientTimeoutAndRequestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reasons []lull.Reason
		var codes []string
		silent := handled(func(conn net.Conn, _ int) { io.Copy(io.Discard, conn) })
		o := observe(func(e lull.Event) {
			if e.Kind == event.CallEnded {
				reasons, codes = append(reasons, e.Reason), append(codes, e.Verdict.Code)
			}
		})
		rt := transport(t, eager, lullhttp.WithBase(silent), lullhttp.WithObserver(o))
		cl := &http.Client{Transport: rt, Timeout: time.Second}
		for range 200 { // which of the two timers is first is left to chance
			start := time.Now()
			_, err := cl.Get(host)
			var timeout interface{ Timeout() bool }
			if !errors.As(err, &timeout) || !timeout.Timeout() || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
				t.Fatalf("%v after %v", err, time.Since(start))
			}
		}
		for i := range reasons {
			if reasons[i] != engine.Deadline || codes[i] != engine.CodeTimeout {
				t.Fatalf("Client.Timeout: %v, code %q; want the deadline, a timeout", reasons[i], codes[i])
			}
		}
		reasons, codes = nil, nil
		for _, timeout := range []time.Duration{0, time.Minute} {
			cl.Timeout = timeout
			req, _ := http.NewRequest("GET", host, nil)
			cancel := make(chan struct{})
			req.Cancel = cancel //lint:ignore SA1019 it is what is tested
			time.AfterFunc(time.Second, func() { close(cancel) })
			start := time.Now()
			_, err := cl.Do(req)
			if !errors.Is(err, context.Canceled) || time.Since(start) != time.Second {
				t.Errorf("Request.Cancel: %v after %v", err, time.Since(start))
			}
		}
		check.Equal(t, fmt.Sprint(reasons), "[canceled canceled]", "Request.Cancel: %v, codes %q", reasons, codes)
		silent.CloseIdleConnections()
	})
}

// An error that carries a response means what the response means.
func TestAnErrorThatCarriesAResponse(t *testing.T) {
	for _, c := range []struct {
		status int
		header http.Header
		want   lull.Verdict
	}{
		{503, http.Header{}, lull.Verdict{Kind: lull.KindTransient, Code: "503"}},
		{429, http.Header{"Retry-After": {"3"}}, lull.Verdict{Kind: lull.KindRateLimited, After: 3 * time.Second, Code: "429"}},
		{400, http.Header{}, lull.Verdict{Kind: lull.KindPermanent, Code: "400"}},
		{200, http.Header{}, lull.Verdict{Kind: lull.KindUnclassified, Code: engine.CodeUnclassified}},
	} {
		resp := &http.Response{StatusCode: c.status, Header: c.header}
		for _, err := range []error{&retrieveError{resp, nil, "code"}, azureError{nil, "x", resp}} {
			check.Equal(t, lullhttp.ClassifyError(fmt.Errorf("token: %w", err)), c.want, "%T with %d", err, c.status)
		}
	}
	for _, err := range []error{&retrieveError{}, (*retrieveError)(nil), hiddenResponse{&http.Response{StatusCode: 503}}} {
		if got := lullhttp.ClassifyError(err); got.Kind != lull.KindUnclassified {
			t.Errorf("%T without a response to be seen: %+v", err, got)
		}
	}
}

// retrieveError has the fields of golang.org/x/oauth2's.
type retrieveError struct {
	Response  *http.Response
	Body      []byte
	ErrorCode string
}

func (*retrieveError) Error() string { return "cannot fetch token" }

type azureError struct {
	inner       error
	ErrorCode   string
	RawResponse *http.Response
}

func (azureError) Error() string { return "azure" }

type hiddenResponse struct{ response *http.Response }

func (hiddenResponse) Error() string { return "hidden" }

// endable is a connection that ends, for who reads it, as soon as somebody has taken it from
// the pool; what is written to it is lost then.
type endable struct {
	net.Conn
	ended  atomic.Bool
	closed chan struct{}
	once   sync.Once
}

// whenTaken is a context whose request ends the connection when it gets it.
func (c *endable) whenTaken(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if info.Conn == net.Conn(c) {
			c.ended.Store(true)
			c.Conn.SetReadDeadline(time.Unix(1, 0))
			<-c.closed
		}
	}})
}

func (c *endable) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.ended.Load() {
		return 0, io.EOF
	}
	return n, err
}

func (c *endable) Write(p []byte) (int, error) {
	if c.ended.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c *endable) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// secured are a certificate for example.com and those who trust it.
func secured(t *testing.T) (server, client *tls.Config) {
	s := memnet.NewUnstartedServer(t, http.NotFoundHandler())
	memnet.StartTLS(s)
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
							return served(serve), nil
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
						o := observe(func(e lull.Event) {
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

type tcpLike struct{ net.Conn }

func (*tcpLike) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 40000} }
func (*tcpLike) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1080} }
