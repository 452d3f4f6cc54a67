package memnet_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/must"
)

func both(t *testing.T) (client, server *memnet.Conn) {
	t.Helper()
	l := memnet.Listen()
	t.Cleanup(func() { l.Close() })
	c := must.Have(memnet.Dial(t.Context(), "tcp", l.Addr().String()))
	s := must.Have(l.Accept())
	return c.(*memnet.Conn), s.(*memnet.Conn)
}

func TestWhatWasWrittenArrivesBeforeTheEnd(t *testing.T) {
	client, server := both(t)
	io.WriteString(client, "hello")
	client.CloseWrite()
	if got, err := io.ReadAll(server); string(got) != "hello" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	io.WriteString(server, "and back")
	server.Close()
	if got, err := io.ReadAll(client); string(got) != "and back" || err != nil {
		t.Errorf("after the half-close: read %q, %v", got, err)
	}
	if _, err := client.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("write after CloseWrite: %v", err)
	}
}

func TestReset(t *testing.T) {
	t.Run("linger", func(t *testing.T) {
		client, server := both(t)
		server.SetLinger(0)
		server.Close()
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("read: %v", err)
		}
		// The kernel reports it once.
		if _, err := client.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("a second read: %v", err)
		}
		if _, err := client.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write: %v", err)
		}
	})
	t.Run("unread", func(t *testing.T) {
		client, server := both(t)
		io.WriteString(client, "unread")
		server.Close()
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("read: %v", err)
		}
	})
	t.Run("not accepted", func(t *testing.T) {
		l := memnet.Listen()
		client := must.Have(memnet.Dial(t.Context(), "tcp", l.Addr().String()))
		l.Close()
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("read: %v", err)
		}
	})
}

func TestNobodyListens(t *testing.T) {
	l := memnet.Listen()
	l.Close()
	_, err := memnet.Dial(t.Context(), "tcp", l.Addr().String())
	var op *net.OpError
	if !errors.Is(err, syscall.ECONNREFUSED) || !errors.As(err, &op) || op.Op != "dial" {
		t.Errorf("dial: %v", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept: %v", err)
	}
	first := must.Have(memnet.ListenOn("db.test:5432"))
	defer first.Close()
	if _, err := memnet.ListenOn("db.test:5432"); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a second listener: %v", err)
	}
}

// The caller's trace hears of connecting as it does from net.Dialer.
func TestTrace(t *testing.T) {
	l := memnet.Listen()
	defer l.Close()
	for address, refused := range map[string]bool{l.Addr().String(): false, "nobody.test:80": true} {
		heard := ""
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			ConnectStart: func(network, to string) { heard += network + " " + to },
			ConnectDone:  func(_, _ string, err error) { heard += fmt.Sprint(" ", errors.Is(err, syscall.ECONNREFUSED)) },
		})
		memnet.Dial(ctx, "tcp", address)
		check.Equal(t, heard, fmt.Sprint("tcp ", address, " ", refused), "heard")
	}
}

// A deadline passes in the virtual time, a writer waits for room, and all that waits is durably blocked.
func TestInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := both(t)
		start := time.Now()
		client.SetReadDeadline(start.Add(time.Hour))
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Hour {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		client.SetReadDeadline(time.Time{})
		client.SetWriteDeadline(time.Now().Add(time.Minute))
		n, err := client.Write(make([]byte, 1<<20))
		if n <= 0 || n >= 1<<20 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("wrote %d: %v", n, err)
		}
		go func() {
			time.Sleep(time.Minute)
			server.Close()
		}()
		if _, err := client.Read(make([]byte, 1)); err == nil || time.Since(start) != time.Hour+2*time.Minute {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

func TestHTTPInABubble(t *testing.T) {
	for _, protocol := range []string{"http", "https", "h2"} {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					select {
					case <-time.After(time.Minute):
					case <-r.Context().Done():
					}
					io.Copy(w, r.Body)
				})
				s := memnet.NewUnstartedServer(t, h)
				switch protocol {
				case "http":
					memnet.Start(s)
				case "h2":
					s.EnableHTTP2 = true
					fallthrough
				default:
					memnet.StartTLS(s)
				}
				start := time.Now()
				resp := must.Have(s.Client().Post(s.URL, "text/plain", strings.NewReader(strings.Repeat("x", 1<<20))))
				got, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if len(got) != 1<<20 || err != nil || time.Since(start) != time.Minute || (resp.ProtoMajor == 2) != (protocol == "h2") {
					t.Errorf("%d bytes by %s after %v: %v", len(got), resp.Proto, time.Since(start), err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				req, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
				if _, err := s.Client().Do(req); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a context that ends: %v", err)
				}
				s.Client().CloseIdleConnections()
			})
		})
	}
}
