package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/lullgo/lull/internal/must"
)

// A target is what tells one pool of connections from another.
type target struct {
	unix    string // the path of a socket; empty: TCP
	h2c     bool
	forward bool   // the forward door's: it looks at the addresses of names
	ca      string // a file
}

// parseTarget reads one of Upstream.To, which is valid.
func parseTarget(text string) (*url.URL, target) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		return &url.URL{Scheme: "http", Host: "localhost"}, target{unix: path}
	}
	u := must.Have(url.Parse(text))
	h2c := u.Scheme == "h2c"
	if h2c {
		u.Scheme = "http"
	}
	return u, target{h2c: h2c}
}

// base returns the transport for a target.
func (n *plan) base(t target) (*http.Transport, error) {
	if b := n.proxy.bases[t]; b != nil {
		return b, nil
	}
	b := &http.Transport{
		DialContext:           n.proxy.dialer(t),
		DisableCompression:    true, // what the application has not asked for is not decompressed
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   1000,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
	}
	if t.h2c {
		b.Protocols = new(http.Protocols)
		b.Protocols.SetUnencryptedHTTP2(true)
	}
	if t.ca != "" {
		pool, err := certificates(t.ca)
		if err != nil {
			return nil, err
		}
		b.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	n.proxy.bases[t] = b
	return b, nil
}

func certificates(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: want certificates in PEM", file)
	}
	return pool, nil
}

// dialer returns what opens the connections of a target.
func (p *Proxy) dialer(t target) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		d := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
		if t.unix != "" {
			return d.DialContext(ctx, "unix", t.unix)
		}
		d.ControlContext = func(_ context.Context, _, resolved string, _ syscall.RawConn) error {
			return p.mayDial(address, resolved, t.forward)
		}
		return d.DialContext(ctx, network, address)
	}
}

// errAddress is the error for an address that no door may call. It is permanent.
var errAddress = errors.New("the address is refused: it is this machine's, its link's, a cloud's metadata, or the proxy's own, and hosts does not have the address itself")
