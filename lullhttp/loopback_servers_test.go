//go:build servers

package lullhttp_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/lullhttp"
)

// BenchmarkLoopback makes GET requests over one TCP connection to a server that does as little as one can.
func BenchmarkLoopback(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go answerAll(c)
		}
	}()
	base := new(http.Transport)
	b.Cleanup(base.CloseIdleConnections)
	for _, rt := range []struct {
		name string
		http.RoundTripper
	}{
		{"bare", base},
		{"no timeouts", transport(b, lull.Policy{AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout}, lullhttp.WithBase(base))},
		{"zero policy", transport(b, lull.Policy{}, lullhttp.WithBase(base))},
		{"zero policy, client", client(b, lull.Policy{}, lullhttp.WithBase(base)).Transport},
	} {
		b.Run(rt.name, func(b *testing.B) {
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			req, _ := http.NewRequestWithContext(ctx, "GET", "http://"+l.Addr().String()+"/", nil)
			b.ReportAllocs()
			for b.Loop() {
				resp, err := rt.RoundTrip(req)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil {
					b.Fatal(err)
				}
				resp.Body.Close()
			}
		})
	}
}

// answerAll answers every request on c, and reads nothing of it but its end.
func answerAll(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return
		}
		if len(line) == len("\r\n") {
			if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); err != nil {
				return
			}
		}
	}
}
