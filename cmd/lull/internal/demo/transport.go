package demo

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// newTransport is what one client sends through: no proxy, and no limit on
// connections that would hold a client back before its policy does.
func newTransport() *http.Transport {
	return &http.Transport{
		DialContext:         dial,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 100_000,
		IdleConnTimeout:     time.Minute,
	}
}

// dial connects, and sees to it that the connection is gone when it is closed.
// Every attempt that times out costs a connection; left to linger for a minute
// each, as is usual, a few runs could use up the machine's ports.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
		err = tcp.SetLinger(0)
	}
	return conn, err
}

// watch passes requests on and counts them for the call that they belong to, and
// those that failed for want of something on this machine (ports, open files):
// they blur the picture, and are reported.
type watch struct {
	base     http.RoundTripper
	troubles *atomic.Int64
}

func (w watch) RoundTrip(req *http.Request) (*http.Response, error) {
	if t := tallyOf(req.Context()); t != nil {
		t.send()
	}
	resp, err := w.base.RoundTrip(req)
	var op *net.OpError
	if err != nil && req.Context().Err() == nil && errors.As(err, &op) && op.Op == "dial" && !op.Timeout() {
		w.troubles.Add(1)
	}
	return resp, err
}
