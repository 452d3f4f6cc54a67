//go:build servers

package proxy_test

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/pace"
	"github.com/lullgo/lull/server/proxy"
)

func TestMain(m *testing.M) {
	pace.Overlap(8)
	os.Exit(m.Run())
}

// patience is how long a test waits for what must come. It is measured once: that takes a while.
var patience = sync.OnceValue(func() time.Duration { return pace.Stretch(10 * time.Second) })

// running is a proxy that serves its doors.
type running struct {
	t       *testing.T
	proxy   *proxy.Proxy
	records chan *proxy.Record
	stop    context.CancelFunc
	ended   chan error
}

// quick is a policy that waits for nothing.
var quick = lull.Policy{Attempts: 3, Backoff: backoff.Schedule{Base: time.Millisecond, Cap: 2 * time.Millisecond}}

func run(t *testing.T, c proxy.Config, more ...proxy.Wiring) *running {
	t.Helper()
	if c.Policy == nil {
		c.Policy = func(string) lull.Policy { return quick }
	}
	r := &running{t: t, records: make(chan *proxy.Record, 10_000), ended: make(chan error, 1)}
	var w proxy.Wiring
	if len(more) > 0 {
		w = more[0]
	}
	w.Drain = cmp.Or(w.Drain, pace.Stretch(time.Second))
	w.Record = func(one *proxy.Record) { r.records <- one }
	var err error
	if r.proxy, err = proxy.New(c, w); err != nil {
		t.Fatal(err)
	}
	if err := r.proxy.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() { r.ended <- r.proxy.Serve(ctx) }()
	t.Cleanup(stop)
	return r
}

// upstream runs a proxy with one upstream, "service".
func upstream(t *testing.T, u proxy.Upstream, more ...proxy.Wiring) *running {
	t.Helper()
	u.Listen = "127.0.0.1:0"
	return run(t, proxy.Config{Upstreams: map[string]proxy.Upstream{"service": u}}, more...)
}

func (r *running) address(door string) string {
	r.t.Helper()
	at := r.proxy.Address(door)
	if at == nil {
		r.t.Fatalf("door %s is not open", door)
	}
	return at.String()
}

func (r *running) url() string { return "http://" + r.address("service") }

// record returns the record of the next request that has ended.
func (r *running) record() *proxy.Record {
	r.t.Helper()
	select {
	case one := <-r.records:
		return one
	case <-time.After(patience()):
		r.t.Fatal("no record")
		return nil
	}
}

// noMore fails if there is another record.
func (r *running) noMore() {
	r.t.Helper()
	select {
	case one := <-r.records:
		r.t.Errorf("a second record: %+v", one)
	default:
	}
}

// dial opens a connection to a door, and writes text.
func (r *running) dial(door, text string) *wire { return dialTo(r.t, r.address(door), text) }

// A wire is a connection whose bytes a test reads and writes.
type wire struct {
	t *testing.T
	net.Conn
	*bufio.Reader
}

func (w *wire) Read(p []byte) (int, error) { return w.Reader.Read(p) }

func dialTo(t *testing.T, address, text string) *wire {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return newWire(t, c).send(text)
}

func newWire(t *testing.T, c net.Conn) *wire {
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(2 * patience()))
	return &wire{t, c, bufio.NewReader(c)}
}

func (w *wire) send(text string) *wire {
	w.t.Helper()
	if _, err := io.WriteString(w.Conn, text); err != nil {
		w.t.Fatal(err)
	}
	return w
}

// response reads a response to a request with that method.
func (w *wire) response(method string) *http.Response {
	w.t.Helper()
	resp, err := http.ReadResponse(w.Reader, &http.Request{Method: method})
	if err != nil {
		w.t.Fatal(err)
	}
	return resp
}

// expect reads text.
func (w *wire) expect(text string) {
	w.t.Helper()
	got := make([]byte, len(text))
	n, err := io.ReadFull(w, got)
	if string(got[:n]) != text {
		w.t.Fatalf("read %q (%v), want %q", got[:n], err, text)
	}
}

// head reads up to the end of a header, and returns its lines.
func (w *wire) head() []string {
	w.t.Helper()
	var lines []string
	for {
		line, err := w.ReadString('\n')
		if err != nil {
			w.t.Fatalf("a header ends after %q: %v", lines, err)
		}
		if line = strings.TrimRight(line, "\r\n"); line == "" {
			return lines
		}
		lines = append(lines, line)
	}
}

func (w *wire) closeWrite() { must.Succeed(w.Conn.(*net.TCPConn).CloseWrite()) }

// raw is a server whose connections serve handles, byte by byte. It returns its address.
func raw(t *testing.T, serve func(*wire)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.SetDeadline(time.Now().Add(2 * patience()))
			go func() {
				defer c.Close()
				serve(&wire{t, c, bufio.NewReader(c)})
			}()
		}
	}()
	return l.Addr().String()
}

// server is a server of net/http, of HTTP/1.1 and h2c.
func server(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.Listener.Addr().String()
}

// tlsServer is a server with TLS, of HTTP/1.1 and h2, and the file with its certificate.
func tlsServer(t *testing.T, h http.HandlerFunc) (url, ca string) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	ca = filepath.Join(t.TempDir(), "ca.pem")
	must.Succeed(os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600))
	return s.URL, ca
}

// client returns a client that speaks HTTP/1.1, or h2c if http2 is set, or HTTP/2 over TLS without a look at the certificate.
func client(t *testing.T, http2 bool) *http.Client {
	base := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true, ExpectContinueTimeout: 20 * time.Second}
	base.Protocols.SetHTTP1(!http2)
	base.Protocols.SetUnencryptedHTTP2(http2)
	base.Protocols.SetHTTP2(http2)
	base.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	t.Cleanup(base.CloseIdleConnections)
	return &http.Client{Transport: base, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// do makes a request, and returns the response with its body.
func do(t *testing.T, c *http.Client, req *http.Request) (*http.Response, string) {
	t.Helper()
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: body after %q: %v", req.Method, req.URL, body, err)
	}
	return resp, string(body)
}

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	return do(t, client(t, false), must.Have(http.NewRequest("GET", url, nil)))
}

// eventually waits until what holds.
func eventually(t *testing.T, holds func() bool, what string) {
	t.Helper()
	for end := time.Now().Add(patience()); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not in time: " + what)
		}
	}
}

func wait[T any](t *testing.T, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience()):
		t.Fatal("not in time: " + what)
	}
	return v
}
