package demo

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/sleep"
	"github.com/lullgo/lull/lullhttp"
)

type lane struct {
	name    string
	backend *backend
	call    caller
	clock   func() time.Duration
	base    *http.Transport

	calls      sync.WaitGroup
	dialErrors atomic.Int64

	mu      sync.Mutex // guards what follows
	ended   []callRecord
	recents []recent
}

func newLane(s setting, c client, clock func() time.Duration) (*lane, error) {
	b, err := startBackend(s, clock)
	if err != nil {
		return nil, err
	}
	base := newTransport()
	l := &lane{name: c.name, backend: b, clock: clock, base: base}
	if err := l.connect(s, c, base); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *lane) connect(s setting, c client, base http.RoundTripper) (err error) {
	l.call, err = c.make(s, countingTransport{base: base, dialErrors: &l.dialErrors}, l.backend.url)
	return err
}

func (l *lane) begin(ctx context.Context) {
	start := l.clock()
	l.count(begun, start)
	tally := &requestTally{lane: l}
	ctx = context.WithValue(ctx, tallyKey{}, tally)
	l.calls.Go(func() {
		ok := l.call(ctx)
		if ctx.Err() != nil && !ok {
			return // the demo ended it: its result is not known
		}
		end := l.clock()
		if ok {
			l.count(succeeded, end)
		} else {
			l.count(bad, end)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ended = append(l.ended, callRecord{start: start, took: end - start, ok: ok, sent: int(tally.sent.Load())})
	})
}

func (l *lane) count(what kind, at time.Duration) { l.backend.counts.add(what, at) }

// unfinished returns the number of calls that the demo ended.
func (l *lane) unfinished() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return total(l.backend.counts.copy()[begun]) - len(l.ended)
}

func (l *lane) close() {
	if l.base != nil {
		l.base.CloseIdleConnections()
	}
	l.backend.close()
}

// A requestTally counts the requests of one call, for its lane. It is in the context, so that callers need not know of it.
type requestTally struct {
	lane *lane
	sent atomic.Int32
}

type tallyKey struct{}

func tallyOf(ctx context.Context) *requestTally {
	t, _ := ctx.Value(tallyKey{}).(*requestTally)
	return t
}

func (t *requestTally) countSent() {
	if t.sent.Add(1) > 1 {
		t.lane.count(extra, t.lane.clock())
	}
}

func (t *requestTally) countHeld() { t.lane.count(held, t.lane.clock()) }

// newTransport has no proxy, and no limit of connections that could hold a client back before its policy does.
func newTransport() *http.Transport {
	return &http.Transport{
		DialContext:         dial,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 100_000,
		IdleConnTimeout:     time.Minute,
	}
}

// dial makes connections that do not linger: if each kept its port for a minute, a few runs could use up all ports.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
		err = tcp.SetLinger(0)
	}
	return conn, err
}

// countingTransport counts requests for their call, and those that fail for want of ports or open files here: they distort figures.
type countingTransport struct {
	base       http.RoundTripper
	dialErrors *atomic.Int64
}

func (w countingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if t := tallyOf(req.Context()); t != nil {
		t.countSent()
	}
	resp, err := w.base.RoundTrip(req)
	var op *net.OpError
	if err != nil && req.Context().Err() == nil && errors.As(err, &op) && op.Op == "dial" && !op.Timeout() {
		w.dialErrors.Add(1)
	}
	return resp, err
}

// A caller makes one call, with as many attempts as it likes, and reports whether it succeeded.
type caller func(context.Context) bool

type client struct {
	name  string
	about func(setting) string
	make  func(s setting, base http.RoundTripper, url string) (caller, error)
}

// flagName is the name without spaces, so that a shell needs no quotes.
func (c client) flagName() string { return strings.ReplaceAll(c.name, " ", "-") }

func flagNames(all []client) []string { return choice.Each(all, client.flagName) }

func once(s setting, base http.RoundTripper, url string) (caller, error) {
	s.Attempts = 1
	return retries(nil)(s, base, url)
}

// retries makes the loop that everybody has written: it tries again whatever failed. wait returns the wait before the nth retry.
func retries(wait func(n int) time.Duration) func(setting, http.RoundTripper, string) (caller, error) {
	return func(s setting, base http.RoundTripper, url string) (caller, error) {
		httpClient := &http.Client{Transport: base}
		return func(ctx context.Context) bool {
			for n := 1; ; n++ {
				if attempt(ctx, httpClient, url, s.Timeout) {
					return true
				}
				if n >= s.Attempts || sleep.For(ctx, wait(n)) != nil {
					return false
				}
			}
		}, nil
	}
}

// newLull makes the client that this repository is about, used as anybody would.
func newLull(policy func(setting) lull.Policy) func(setting, http.RoundTripper, string) (caller, error) {
	return func(s setting, base http.RoundTripper, url string) (caller, error) {
		httpClient, err := lullhttp.NewClient(policy(s), lullhttp.WithBase(base), lullhttp.WithObserver(hedgeCounter{}))
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) bool { return get(ctx, httpClient, url) }, nil
	}
}

// hedgeCounter counts the hedges that lull's policy did not send.
type hedgeCounter struct{}

func (hedgeCounter) Observe(ctx context.Context, e lull.Event) {
	if e.Kind == event.HedgeRefused {
		if t := tallyOf(ctx); t != nil {
			t.countHeld()
		}
	}
}

func attempt(ctx context.Context, c *http.Client, url string, timeout time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return get(ctx, c, url)
}

func get(ctx context.Context, c *http.Client, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := c.Do(req)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return err == nil && resp.StatusCode == http.StatusOK
}
