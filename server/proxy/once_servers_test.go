//go:build servers

package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/check"
)

// A connection that breaks under its second request is no reason to send that again behind the policy's back.
func TestAttemptsAreSentOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var mu sync.Mutex
	seen := map[string]int{} // by path
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for n := range 2 {
					req, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, req.Body)
					mu.Lock()
					seen[req.URL.Path]++
					mu.Unlock()
					if n == 0 && req.Method == http.MethodHead {
						_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
					} else if n == 0 {
						_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
					}
				}
			}()
		}
	}()
	p, err := New(Config{
		Upstreams: map[string]Upstream{"service": {Listen: "127.0.0.1:0", To: []string{"http://" + l.Addr().String()}}},
		Policy:    func(string) lull.Policy { return lull.Policy{Attempts: 1} },
	}, Wiring{})
	if err != nil {
		t.Fatal(err)
	}
	door := httptest.NewServer(p.Handler("service"))
	defer door.Close()
	for _, tt := range []struct{ method, key, path string }{{"GET", "", "/get"}, {"HEAD", "", "/head"}, {"OPTIONS", "", "/options"}, {"POST", "Idempotency-Key", "/keyed"}, {"POST", "X-Idempotency-Key", "/keyed2"}, {"DELETE", "", "/delete"}} {
		for _, path := range []string{"/first" + tt.path, tt.path} { // the second one's connection breaks
			req, _ := http.NewRequest(tt.method, door.URL+path, strings.NewReader(""))
			if tt.key != "" {
				req.Body, req.ContentLength = io.NopCloser(strings.NewReader("x")), 1
				req.Header.Set(tt.key, "k1")
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		mu.Lock()
		check.Equal(t, seen[tt.path], 1, "%s %s: requests at the service", tt.method, tt.path)
		mu.Unlock()
	}
}
