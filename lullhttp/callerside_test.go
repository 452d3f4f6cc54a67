package lullhttp_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/outlier"
)

// network is a server in memory whose answers a test changes.
type network struct {
	serve func(conn net.Conn, r *bufio.Reader, req *http.Request)
	dial  error
}

func (n *network) transport() *http.Transport {
	return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		if n.dial != nil {
			return nil, n.dial
		}
		return served(func(conn net.Conn) {
			r := bufio.NewReader(conn)
			for {
				req, err := http.ReadRequest(r)
				if err != nil {
					return
				}
				if n.serve != nil {
					n.serve(conn, r, req)
					continue
				}
				if _, err := io.Copy(io.Discard, req.Body); err != nil {
					return
				}
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			}
		}), nil
	}}
}

func busyServer(conn net.Conn, _ *bufio.Reader, req *http.Request) {
	io.Copy(io.Discard, req.Body)
	io.WriteString(conn, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
}

// stalled is a reader that gives a little, and the rest when it is too late. (http.Transport waits for it.)
type stalled struct{ first io.Reader }

func (s stalled) Read(p []byte) (int, error) {
	if n, err := s.first.Read(p); err == nil {
		return n, nil
	}
	time.Sleep(10 * time.Second)
	return 1, nil
}

// A failure of the caller's own side says nothing about the dependency: it opens no circuit, costs no budget and ejects
// no endpoint, whatever became of the call. Others are not refused for it, and find the budget as it was.
func TestRule23TheCallersOwnSide(t *testing.T) {
	gone := errors.New("input/output error")
	brokenBodies := map[string]error{
		"own": gone, "unexpected EOF": io.ErrUnexpectedEOF, "timeout": os.ErrDeadlineExceeded, "canceled": context.Canceled,
		"deadline": context.DeadlineExceeded, "closed": net.ErrClosed, "closed pipe": io.ErrClosedPipe, "too large": &http.MaxBytesError{Limit: 7},
		"reset":   &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)},
		"refused": &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)},
		"below":   &lull.Error{Last: gone},
	}
	serverTLS, _ := secured(t)
	type situation struct {
		req      func(req *http.Request)
		options  []lullhttp.Option
		base     func(http.RoundTripper) http.RoundTripper
		set      func(*http.Transport, *network)
		busy     bool // the server asks each attempt to come again, but for those that fail on this side
		hold     bool // another request holds the only connection
		code     string
		attempts int
		panics   bool
		unseen   bool // it is not known of a first attempt in the caller's own context, but of the second
		answers  bool // the server's answers are all that the circuit learns of
	}
	put := func(body io.Reader, length int64) func(*http.Request) {
		return func(req *http.Request) {
			req.Method, req.Body, req.ContentLength = "PUT", io.NopCloser(body), length
		}
	}
	// base fails what is to fail, by fail, from the first attempt on or at the retry.
	base := func(atRetry bool, fail func() error) func(http.RoundTripper) http.RoundTripper {
		return func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Header.Get("Fail") == "" || atRetry && r.Header.Get("Lull-Attempt") == "" {
					return next.RoundTrip(r)
				}
				if r.Body != nil {
					r.Body.Close()
				}
				return nil, fail()
			})
		}
	}
	panics := func() error { panic(gone) }
	dialError := func(call string, err syscall.Errno) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError(call, err)}
	}
	dialFails := func(err error) func(*http.Transport, *network) {
		return func(_ *http.Transport, n *network) { n.dial = err }
	}
	asksForAPassword := func(tr *http.Transport, n *network) {
		tr.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy.test"})
		n.serve = func(conn net.Conn, _ *bufio.Reader, req *http.Request) {
			io.WriteString(conn, "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
		}
	}
	situations := map[string]situation{
		"the body is shorter than announced": {req: func(req *http.Request) { put(strings.NewReader("short"), 1000)(req) }, code: "request_body", attempts: 1},
		"the body is longer than announced": {set: func(_ *http.Transport, n *network) {
			n.serve = func(_ net.Conn, r *bufio.Reader, _ *http.Request) { io.Copy(io.Discard, r) } // or it might answer first
		}, req: func(req *http.Request) { put(strings.NewReader("too long"), 3)(req) }, code: "request_body", attempts: 1},
		"the body stalls": {req: func(req *http.Request) {
			put(stalled{strings.NewReader("x")}, 1000)(req)
		}, code: "timeout", attempts: 1},
		"the body stalls, of unknown length": {req: func(req *http.Request) { put(stalled{strings.NewReader("x")}, -1)(req) }, code: "timeout", attempts: 1},
		"the body stalls, with replay": {req: func(req *http.Request) { put(stalled{strings.NewReader("x")}, 1000)(req) },
			options: []lullhttp.Option{lullhttp.WithReplay(1 << 20)}, code: "timeout", attempts: 1},
		"the body stalls, of unknown length, with replay": {req: func(req *http.Request) { put(stalled{strings.NewReader("x")}, -1)(req) },
			options: []lullhttp.Option{lullhttp.WithReplay(1 << 20)}, code: "timeout", attempts: 1},
		"the body stalls, and the server tells": {req: func(req *http.Request) { put(stalled{strings.NewReader("x")}, 1000)(req) },
			set: func(_ *http.Transport, n *network) {
				n.serve = func(conn net.Conn, _ *bufio.Reader, _ *http.Request) {
					time.Sleep(100 * time.Millisecond)
					io.WriteString(conn, "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
				}
			}, options: []lullhttp.Option{lullhttp.WithReplay(1 << 20)}, code: "408", attempts: 1},
		"GetBody fails": {busy: true, req: func(req *http.Request) {
			put(strings.NewReader("x"), 1)(req)
			req.GetBody = func() (io.ReadCloser, error) { return nil, gone }
		}, code: "get_body", attempts: 2},
		"the second body breaks": {busy: true, req: func(req *http.Request) {
			put(strings.NewReader("x"), 1)(req)
			req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(iotest.ErrReader(gone)), nil }
		}, code: "request_body", attempts: 2},
		"BeforeRetry fails":  {busy: true, options: []lullhttp.Option{lullhttp.WithBeforeRetry(func(*http.Request, error) error { return gone })}, code: "before_retry", attempts: 2},
		"BeforeRetry panics": {busy: true, options: []lullhttp.Option{lullhttp.WithBeforeRetry(func(*http.Request, error) error { panic(gone) })}, panics: true},
		"the classifier panics": {busy: true, panics: true, options: []lullhttp.Option{lullhttp.WithClassifier(func(r *http.Response, _ error) lull.Verdict {
			if r != nil && r.StatusCode >= 500 && r.Request.Header.Get("Panic") != "" {
				panic(gone)
			}
			return lull.Verdict{}
		})}, req: func(req *http.Request) { req.Header.Set("Panic", "yes") }},
		"the base panics":              {panics: true, base: base(false, panics)},
		"the base panics at the retry": {busy: true, panics: true, base: base(true, panics)},
		"no more files":                {set: dialFails(dialError("socket", syscall.EMFILE)), code: "local_resources", attempts: 3},
		"no more ports":                {set: dialFails(dialError("connect", syscall.EADDRNOTAVAIL)), code: "local_resources", attempts: 3},
		"no more files at the retry": {busy: true, answers: true, base: base(true, func() error {
			return dialError("socket", syscall.ENFILE)
		}), code: "local_resources", attempts: 3},
		"the pool is full": {hold: true, set: func(tr *http.Transport, n *network) { tr.MaxConnsPerHost = 1 }, code: "timeout", attempts: 3},
		"unknown authority": {req: func(req *http.Request) { req.URL.Scheme = "https" }, set: func(tr *http.Transport, n *network) {
			tr.TLSClientConfig = &tls.Config{ServerName: "example.com"}
			tr.DialContext = func(context.Context, string, string) (net.Conn, error) {
				return served(func(conn net.Conn) { tls.Server(conn, serverTLS).Handshake() }), nil
			}
		}, code: "certificate", attempts: 1},
		"407 of a proxy": {set: asksForAPassword, code: "407", attempts: 1},
		"CONNECT 407":    {req: func(req *http.Request) { req.URL.Scheme = "https" }, set: asksForAPassword, code: "407", attempts: 1},
	}
	for name, err := range brokenBodies {
		code := "request_body"
		if name == "below" {
			code = "retried_below"
		}
		broken := func() io.Reader { return io.MultiReader(strings.NewReader("half"), iotest.ErrReader(err)) }
		situations["the body breaks: "+name] = situation{req: func(req *http.Request) { put(broken(), 1000)(req) }, code: code, attempts: 1}
		situations["the body breaks, with GetBody: "+name] = situation{req: func(req *http.Request) {
			put(broken(), 1000)(req)
			req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(broken()), nil }
		}, code: code, attempts: 1}
		situations["the body breaks at once: "+name] = situation{req: func(req *http.Request) { put(iotest.ErrReader(err), -1)(req) }, code: code, attempts: 1}
		situations["the body breaks, with replay: "+name] = situation{req: func(req *http.Request) { put(broken(), 1000)(req) },
			options: []lullhttp.Option{lullhttp.WithReplay(1 << 20)}, code: code, attempts: 1}
	}
	tokens := "https://tokens.test/token"
	for name, err := range map[string]error{
		"refused":            &url.Error{Op: "Post", URL: tokens, Err: dialError("connect", syscall.ECONNREFUSED)},
		"timed out":          &url.Error{Op: "Post", URL: tokens, Err: context.DeadlineExceeded},
		"cut":                &url.Error{Op: "Post", URL: tokens, Err: io.EOF},
		"503":                &retrieveError{Response: &http.Response{StatusCode: 503, Request: &http.Request{Method: "POST", URL: &url.URL{Scheme: "https", Host: "tokens.test"}}}},
		"another port":       &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)},
		"another name":       &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Name: "tokens.test", IsTemporary: true}},
		"refused, wrapped":   fmt.Errorf("oauth2: cannot fetch token: %w", &url.Error{Op: "Post", URL: tokens, Err: syscall.ECONNREFUSED}),
		"lull below gave up": &url.Error{Op: "Post", URL: tokens, Err: &lull.Error{Last: gone}},
	} {
		code := "another_host"
		if name == "lull below gave up" {
			code = "retried_below"
		}
		situations["no token: "+name] = situation{base: base(false, func() error { return err }), code: code, attempts: 1,
			unseen: strings.HasPrefix(name, "another")}
	}

	const calls = 40
	for name, s := range situations {
		for _, how := range []string{"plain", "within the caller's time", "hedged", "endpoints"} {
			run(t, name+", "+how, func(t *testing.T) {
				n := &network{}
				tr := n.transport()
				if s.set != nil {
					s.set(tr, n)
				}
				if s.busy {
					n.serve = busyServer
				}
				var base http.RoundTripper = tr
				if s.base != nil {
					base = s.base(tr)
				}
				var changes []string
				var last event.Event
				o := observe(func(e lull.Event) {
					if e.Circuit != nil {
						changes = append(changes, fmt.Sprint(*e.Circuit))
					}
					if e.Kind == event.CallEnded {
						last = e
					}
				})
				p := lull.Policy{Attempts: 3, AttemptTimeout: time.Second, Budget: budget.Config{Stock: 3}}
				options := append([]lullhttp.Option{lullhttp.WithObserver(o), lullhttp.WithBase(base)}, s.options...)
				p.Breaker.Off = s.answers
				var endpoints *lullhttp.Endpoints
				switch how {
				case "within the caller's time":
					p.AttemptTimeout = lull.NoTimeout
				case "hedged":
					p.Attempts, p.Hedge = 0, hedge.Config{Attempts: 3, Delay: time.Minute}
				case "endpoints":
					var err error
					if endpoints, err = lullhttp.NewEndpoints(outlier.Config{}, []string{"a.test", "b.test", "c.test"}); err != nil {
						t.Fatal(err)
					}
					options = append(options, lullhttp.WithEndpoints("orders.test", endpoints))
				}
				rt := transport(t, p, options...)
				newRequest := func(fails bool) (*http.Request, context.CancelFunc) {
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
					req, _ := http.NewRequestWithContext(ctx, "GET", "http://orders.test/", nil)
					if fails {
						req.Header.Set("Fail", "yes")
						if s.req != nil {
							s.req(req)
						}
					}
					return req, cancel
				}
				probe, _ := newRequest(true)
				d := rt.Dependency(probe)
				full := d.Budget().Balance(d.Now())
				release := make(chan struct{})
				if s.hold {
					n.serve = func(conn net.Conn, _ *bufio.Reader, req *http.Request) {
						<-release
						io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
					}
					for _, u := range []string{"http://orders.test/", "http://a.test/", "http://b.test/", "http://c.test/"} {
						go func() {
							req, _ := http.NewRequest("GET", u, nil)
							if resp, err := tr.RoundTrip(req); err == nil {
								resp.Body.Close()
							}
						}()
					}
					synctest.Wait()
				}
				for range calls {
					req, cancel := newRequest(true)
					func() {
						if s.panics {
							defer func() {
								if recover() == nil {
									t.Error("no panic")
								}
							}()
						}
						if resp, err := rt.RoundTrip(req); err == nil {
							resp.Body.Close()
						}
					}()
					cancel()
					if !s.panics && how != "hedged" && (last.Verdict.Code != s.code && !(s.hold && how == "within the caller's time") || !last.Verdict.CallerSide() || last.Attempt != s.attempts && !s.hold && !s.unseen) {
						t.Fatalf("%d attempts, %+v, %v; want code %q after %d", last.Attempt, last.Verdict, last.Err, s.code, s.attempts)
					}
					time.Sleep(500 * time.Millisecond)
				}
				if got := d.Budget().Balance(d.Now()); got != full {
					t.Errorf("%v tokens of %v are left", got, full)
				}
				if len(changes) > 0 {
					t.Errorf("the circuit: %v", changes)
				}
				if endpoints != nil && !s.busy {
					for _, e := range endpoints.Status() {
						if e.Ejected || e.Failures > 0 || e.Unanswered > 0 {
							t.Errorf("%+v", e)
						}
					}
				}
				close(release)
				time.Sleep(10 * time.Second) // for bodies that stall
				tr.CloseIdleConnections()
				synctest.Wait()
			})
		}
	}
}

// What the user says of a failure decides whether it is repeated, and facts decide whose it was.
func TestMarksAndFacts(t *testing.T) {
	broken := func(err error) func() io.Reader {
		return func() io.Reader { return io.MultiReader(strings.NewReader("half"), iotest.ErrReader(err)) }
	}
	blip := errors.New("blip")
	repeats := lullhttp.WithClassifier(func(_ *http.Response, err error) lull.Verdict {
		if err != nil {
			return lull.Verdict{Kind: lull.KindTransient, Code: "mine"}
		}
		return lull.Verdict{}
	})
	for name, c := range map[string]struct {
		body     func() io.Reader
		options  []lullhttp.Option
		want     lull.Verdict
		attempts int
	}{
		"a broken body":         {broken(blip), nil, lull.Verdict{Kind: engine.KindCallerSide, Code: "request_body"}, 1},
		"marked as transient":   {broken(lull.Transient(blip)), nil, lull.Verdict{Kind: engine.KindCallerTransient, Code: "request_body"}, 3},
		"marked as never sent":  {broken(lull.NeverSent(blip)), nil, lull.Verdict{Kind: engine.KindCallerSide, Code: "request_body"}, 1},
		"a classifier's errors": {broken(blip), []lullhttp.Option{repeats}, lull.Verdict{Kind: engine.KindCallerSide, Code: "request_body"}, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := &network{}
			tr := n.transport()
			var last lull.Event
			o := observe(func(e lull.Event) { last = e })
			req, _ := http.NewRequest("PUT", host, c.body())
			req.ContentLength = 1000
			req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(c.body()), nil }
			_, err := client(t, eager, append(c.options, lullhttp.WithBase(tr), lullhttp.WithObserver(o))...).Transport.RoundTrip(req)
			if err == nil || last.Verdict != c.want || last.Attempt != c.attempts {
				t.Errorf("%s: %d attempts, %+v, %v", name, last.Attempt, last.Verdict, err)
			}
			tr.CloseIdleConnections()
			synctest.Wait()
		})
	}
}

// The same over HTTP/1.1 and HTTP/2: the body is not read again, though it could be.
func TestRule23BrokenBodiesOverBothVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, h2 := range []bool{false, true} {
			s := memnet.NewUnstartedServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, err := io.Copy(io.Discard, r.Body); err != nil {
					if r.Header.Get("Abort") != "" {
						panic(http.ErrAbortHandler)
					}
					w.WriteHeader(http.StatusInternalServerError) // as many do
				}
			}))
			s.EnableHTTP2 = h2
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			memnet.StartTLS(s)
			for name, body := range map[string]func() io.Reader{
				"broken": func() io.Reader {
					return io.MultiReader(strings.NewReader("half"), iotest.ErrReader(io.ErrUnexpectedEOF))
				},
				"too few": func() io.Reader { return strings.NewReader("half") },
			} {
				for _, abort := range []string{"", "yes"} {
					var calls []lull.Event
					o := observe(func(e lull.Event) {
						if e.Kind == event.CallEnded || e.Circuit != nil {
							calls = append(calls, e)
						}
					})
					req, _ := http.NewRequest("PUT", s.URL, io.NopCloser(body()))
					req.Header.Set("Abort", abort)
					req.ContentLength = 1 << 20
					again := 0
					req.GetBody = func() (io.ReadCloser, error) { again++; return io.NopCloser(body()), nil }
					resp, err := client(t, eager, lullhttp.WithBase(s.Client().Transport), lullhttp.WithObserver(o)).Transport.RoundTrip(req)
					if err == nil {
						resp.Body.Close()
					}
					if again > 0 || len(calls) != 1 || !calls[0].Verdict.CallerSide() {
						t.Errorf("HTTP/2 %v, %s, abort %q: %v; read again %d times; %+v", h2, name, abort, err, again, calls)
					}
				}
			}
		}
	})
}
