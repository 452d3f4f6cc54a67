package probe

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/sleep"
	"github.com/lullgo/lull/lab/torture/internal/words"
)

const (
	patience       = 30 * time.Second // how long a request may take
	continueWithin = 5 * time.Second  // how long the body waits for a 100
	mostBody       = 1 << 20          // bounds what is read of an answer
)

var (
	errBound = errors.New("the bound on requests was reached")
	errElse  = errors.New("the probe asks no other host than that of its URL")
)

// An exchange is a request and what came of it.
type exchange struct {
	what    string // what it is for
	method  string
	path    string
	key     string
	attempt int           // Lull-Attempt; 0 for none
	began   time.Duration // since the survey began
	took    time.Duration
	status  int // 0 if there was no answer
	header  http.Header
	body    []byte
	whole   bool   // the body came to its end
	err     string // why there was no answer
	reused  bool   // it went over a connection that had carried another request
	lane    int
	infos   []int // statuses of 1xx
	// continued: a 100 came before the body was sent. sent: the body was sent.
	continued, sent bool
	cancelled       bool // the probe went away
}

// ok reports whether it was answered with 2xx or 3xx, with the whole body.
func (x *exchange) ok() bool { return x.status >= 200 && x.status < 400 && x.whole }

// refused reports whether the server has refused it for its load.
func (x *exchange) refused() bool { return x.status == 429 || x.status == 503 }

// same reports whether two answers are the same to a client.
func (x *exchange) same(y *exchange) bool {
	return x.status == y.status && bytes.Equal(x.body, y.body) && x.header.Get("Location") == y.header.Get("Location")
}

// String is a line of a time line.
func (x *exchange) String() string {
	var b strings.Builder
	if x.what != "" {
		fmt.Fprintf(&b, "%s: ", x.what)
	}
	fmt.Fprintf(&b, "%s %s", x.method, x.path)
	if x.key != "" {
		fmt.Fprintf(&b, ", key %s", x.key)
	}
	if x.attempt > 0 {
		fmt.Fprintf(&b, ", Lull-Attempt: %d", x.attempt)
	}
	switch {
	case x.cancelled:
		fmt.Fprintf(&b, "; the client left after %s", words.Rounded(x.took))
		return b.String()
	case x.err != "":
		fmt.Fprintf(&b, "; no answer after %s: %s", words.Rounded(x.took), x.err)
		return b.String()
	}
	fmt.Fprintf(&b, "; %d after %s", x.status, words.Rounded(x.took))
	for _, name := range shown {
		if v := x.header.Values(name); len(v) > 0 {
			fmt.Fprintf(&b, ", %s: %s", name, oneLine(strings.Join(v, " and ")))
		}
	}
	if !x.whole {
		b.WriteString(", its body broke off or is longer than 1 MiB")
	}
	if len(x.infos) > 0 {
		fmt.Fprintf(&b, ", after %v", x.infos)
	}
	if !x.reused {
		b.WriteString(", on a new connection")
	}
	return b.String()
}

// shown are the headers that a time line has.
var shown = []string{"Retry-After", "Retry-After-Ms", "X-Should-Retry", "Ratelimit", "Ratelimit-Policy", "X-Ratelimit-Reset", "Idempotency-Replayed", "Lull", "Connection", "Content-Type"}

// A wire makes requests within the bounds, to one host.
type wire struct {
	base   *url.URL
	header http.Header
	body   []byte
	typ    string
	left   atomic.Int64
	pace   *meter
	mu     sync.Mutex
	lanes  map[int]*http.Transport
}

func newWire(t Target, u *url.URL, o Options) *wire {
	w := &wire{base: u, header: t.Header, body: t.Body, typ: t.Type, pace: &meter{every: time.Duration(float64(time.Second) / o.Rate), burst: o.Together}, lanes: map[int]*http.Transport{}}
	w.left.Store(int64(o.Requests))
	return w
}

func (w *wire) address() string {
	if w.base.Port() != "" {
		return w.base.Host
	}
	return net.JoinHostPort(w.base.Hostname(), map[string]string{"http": "80", "https": "443"}[w.base.Scheme])
}

func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if address != w.address() {
		return nil, errElse
	}
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}

// lane returns a transport with at most one connection: what is sent over it one after the
// other shows whether that is kept.
func (w *wire) lane(n int) *http.Transport {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.lanes[n]
	if t == nil {
		t = &http.Transport{DialContext: w.dial, MaxConnsPerHost: 1, DisableCompression: true, ExpectContinueTimeout: continueWithin, Protocols: new(http.Protocols), TLSHandshakeTimeout: patience}
		t.Protocols.SetHTTP1(true)
		w.lanes[n] = t
	}
	return t
}

func (w *wire) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.lanes {
		t.CloseIdleConnections()
	}
}

// take blocks until n requests may be made. It returns errBound if the bound forbids it.
func (w *wire) take(ctx context.Context, n int) error {
	if w.left.Add(-int64(n)) < 0 {
		w.left.Add(int64(n))
		return errBound
	}
	return sleep.For(ctx, w.pace.take(time.Now(), n))
}

// A meter bounds how many requests are made a second, beyond a burst.
type meter struct {
	every time.Duration
	burst int
	mu    sync.Mutex
	next  time.Time // when a request that follows evenly on the last one is due
}

// take returns how long n requests must wait from now on.
func (p *meter) take(now time.Time, n int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if least := now.Add(-time.Duration(p.burst) * p.every); p.next.Before(least) {
		p.next = least
	}
	p.next = p.next.Add(time.Duration(n) * p.every)
	return p.next.Sub(now)
}

// reading is a body that records whether it was read.
type reading struct {
	io.Reader
	read *atomic.Bool
}

func (r reading) Read(p []byte) (int, error) {
	r.read.Store(true)
	return r.Reader.Read(p)
}

// send makes a request, for which take has been called. began is when the survey began.
func (w *wire) send(ctx context.Context, began time.Time, x exchange, body []byte, header ...string) exchange {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var mu sync.Mutex // the trace's functions may be called while the answer is read
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) { mu.Lock(); x.reused = i.Reused; mu.Unlock() },
		Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
			mu.Lock()
			x.infos = append(x.infos, code)
			mu.Unlock()
			return nil
		},
		Got100Continue: func() { mu.Lock(); x.continued = true; mu.Unlock() },
	})
	var sent atomic.Bool
	finish := func(status int, h http.Header, answer []byte, whole bool, err error) exchange {
		mu.Lock()
		defer mu.Unlock()
		y := x
		y.took = time.Since(began) - y.began
		y.status, y.header, y.body, y.whole, y.sent = status, h, answer, whole, sent.Load()
		if err != nil {
			y.err = oneLine(err.Error())
			y.cancelled = errors.Is(context.Cause(ctx), errLeft)
		}
		return y
	}
	x.began = time.Since(began)
	r, err := w.request(ctx, x, body, header)
	if err != nil {
		return finish(0, nil, nil, false, err)
	}
	if body != nil {
		r.Body = io.NopCloser(reading{bytes.NewReader(body), &sent})
	}
	resp, err := w.lane(x.lane).RoundTrip(r)
	if err != nil {
		return finish(0, nil, nil, false, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, mostBody+1))
	whole := err == nil && len(answer) <= mostBody
	if err != nil && errors.Is(context.Cause(ctx), errLeft) {
		return finish(0, nil, nil, false, err)
	}
	return finish(resp.StatusCode, resp.Header, answer, whole, nil)
}

func (w *wire) request(ctx context.Context, x exchange, body []byte, header []string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, x.method, w.base.Scheme+"://"+w.base.Host+x.path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.GetBody = nil // nothing is sent twice
	for name, values := range w.header {
		if http.CanonicalHeaderKey(name) == "Host" {
			r.Host = values[0]
			continue
		}
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	if body != nil {
		r.Header.Set("Content-Type", w.typ)
	}
	if x.key != "" {
		r.Header.Set("Idempotency-Key", x.key)
	}
	if x.attempt > 0 {
		r.Header.Set("Lull-Attempt", strconv.Itoa(x.attempt))
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	if r.Header.Get("User-Agent") == "" {
		r.Header.Set("User-Agent", "lull-probe")
	}
	return r, nil
}

var errLeft = errors.New("the client left")

// old makes a request of HTTP/1.0 and returns the statuses that came, the final one last.
func (w *wire) old(ctx context.Context, began time.Time, x exchange, body []byte, header ...string) exchange {
	x.began = time.Since(began)
	err := func() (err error) {
		defer must.Catch(&err)
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		conn := must.Have(w.dial(ctx, "tcp", w.address()))
		defer conn.Close()
		stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
		defer stop()
		if w.base.Scheme == "https" {
			conn = tls.Client(conn, &tls.Config{ServerName: w.base.Hostname()})
		}
		r := must.Have(w.request(ctx, x, body, header))
		var b bytes.Buffer
		must.Succeed(r.Write(&b))
		must.Have(conn.Write(bytes.Replace(b.Bytes(), []byte(" HTTP/1.1\r\n"), []byte(" HTTP/1.0\r\n"), 1)))
		for in := bufio.NewReader(io.LimitReader(conn, mostBody)); x.status == 0; {
			resp := must.Have(http.ReadResponse(in, r))
			if resp.StatusCode < 200 {
				x.infos = append(x.infos, resp.StatusCode)
			}
			if resp.StatusCode >= 200 || resp.StatusCode == http.StatusSwitchingProtocols {
				x.status, x.header, x.whole = resp.StatusCode, resp.Header, true
			}
		}
		return nil
	}()
	if err != nil {
		x.err = oneLine(err.Error())
	}
	x.took = time.Since(began) - x.began
	return x
}

// newKey returns an Idempotency-Key: a String of Structured Fields, as the draft wants it.
func newKey() string { return `"lull-probe-` + strings.ToLower(rand.Text()) + `"` }

func oneLine(text string) string { return words.Short(strings.Join(strings.Fields(text), " ")) }
