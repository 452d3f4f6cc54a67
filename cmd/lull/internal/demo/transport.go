package demo

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// newTransport returns the transport of one client: no proxy, and no limit of connections
// that could hold a client back before its policy does.
func newTransport() *http.Transport {
	return &http.Transport{
		DialContext:         dial,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 100_000,
		IdleConnTimeout:     time.Minute,
	}
}

// dial connects. A closed connection does not linger: every attempt that times out costs
// one, and if each kept its port for a minute, as usual, a few runs could use up all ports.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
		err = tcp.SetLinger(0)
	}
	return conn, err
}

// countingTransport counts requests for the call that they belong to. It also counts those that fail
// for want of ports or open files on this machine: they distort the figures, and are
// reported.
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
