//go:build servers && linux

package lullhttp

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
)

// What the kernel answers is classified as its counterpart in memory (see classify_test.go), and so are the errors that
// only a kernel makes: no more files, and a Unix socket that is missing or has a full backlog.
func TestErrorsOfTheKernel(t *testing.T) {
	listen := func(network, address string) net.Listener {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	serving := func(end func(*net.TCPConn)) string {
		l := listen("tcp", "127.0.0.1:0")
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				readRequest(c)
				end(c.(*net.TCPConn))
				c.Close()
			}
		}()
		return l.Addr().String()
	}
	gone := listen("tcp", "127.0.0.1:0")
	gone.Close()
	refused := gone.Addr().String()
	proxy := func(scheme string) func(*http.Transport) {
		return func(tr *http.Transport) { tr.Proxy = http.ProxyURL(&url.URL{Scheme: scheme, Host: refused}) }
	}
	unix := func(path string) func(*http.Transport) {
		return func(tr *http.Transport) {
			tr.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", path)
			}
		}
	}
	busy := filepath.Join(t.TempDir(), "busy")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: busy}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	waiting, err := net.Dial("unix", busy) // is all that the backlog takes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { waiting.Close() })
	noFiles := func(tr *http.Transport) {
		tr.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			var limit syscall.Rlimit
			if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
				return nil, err
			}
			defer syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
			if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 1, Max: limit.Max}); err != nil {
				return nil, err
			}
			return new(net.Dialer).DialContext(ctx, network, address)
		}
	}
	for _, c := range []struct {
		address   string
		set       func(*http.Transport)
		kind      engine.Kind
		neverSent bool
		code      string
	}{
		{refused, nil, lull.KindTransient, true, "connection_refused"},
		{"example.invalid", proxy("http"), lull.KindTransient, true, "connection_refused"},
		{"example.invalid", proxy("socks5"), lull.KindTransient, true, "connection_refused"},
		{serving(func(c *net.TCPConn) { c.SetLinger(0) }), nil, lull.KindTransient, false, "connection_reset"},
		{serving(func(*net.TCPConn) {}), nil, lull.KindTransient, false, "unexpected_eof"},
		{"example.invalid", unix(busy + " not"), lull.KindTransient, true, "no_socket"},
		{"example.invalid", unix(busy), lull.KindTransient, true, "backlog_full"},
		{refused, noFiles, engine.KindCallerTransient, true, "local_resources"},
	} {
		t.Run(c.code, func(t *testing.T) {
			tr := &http.Transport{DialContext: new(net.Dialer).DialContext}
			if c.set != nil {
				c.set(tr)
			}
			checkError(t, roundTrip(t, tr, t.Context(), "GET", "http://"+c.address, nil), c.kind, c.neverSent, c.code)
		})
	}
}
