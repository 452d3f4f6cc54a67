//go:build servers

package proxy_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/proxy"
)

// A drain loses no request: those in flight end, also on connections of HTTP/2, and each connection is closed after its
// response. Serve returns nil when all have ended.
func TestDrainLosesNothing(t *testing.T) {
	t.Parallel()
	arrived, leave := make(chan bool, 10), make(chan bool)
	r := upstream(t, proxy.Upstream{To: []string{"http://" + server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			arrived <- true
			<-leave
		}
		io.Copy(w, r.Body)
	})}}, proxy.Wiring{Drain: patience()})
	goOn := sync.OnceFunc(func() { close(leave) })
	t.Cleanup(goOn)
	idle := r.dial("service", "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	check.Equal(t, idle.response("GET").Close, false, "Connection: close before the drain")
	address := r.address("service")
	answers := make(chan string, 2)
	for _, http2 := range []bool{false, true} {
		c := client(t, http2)
		url := r.url()
		go func() {
			resp, err := c.Post(url+"/wait", "text/plain", strings.NewReader("hello"))
			if err != nil {
				answers <- err.Error()
				return
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			answers <- string(body)
		}()
	}
	wait(t, arrived, "the first request")
	wait(t, arrived, "the second request")
	r.stop()
	eventually(t, r.proxy.Draining, "the drain")
	idle.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	resp := idle.response("GET")
	check.Equal(t, resp.StatusCode, 200, "status on an idle connection")
	check.Equal(t, resp.Close, true, "Connection: close during the drain")
	check.Equal(t, dialTo(t, address, "GET / HTTP/1.1\r\nHost: x\r\n\r\n").response("GET").StatusCode, 200, "status on a new connection")
	goOn()
	check.Equal(t, <-answers, "hello", "answer")
	check.Equal(t, <-answers, "hello", "answer")
	check.Is(t, <-r.ended, nil, "Serve")
	for range 5 {
		check.Equal(t, r.record().Status, 200, "status of the record")
	}
	r.noMore()
}

// A request to a door that is gone has an answer, which closes its connection, and a record.
func TestDoorIsGone(t *testing.T) {
	t.Parallel()
	r := upstream(t, proxy.Upstream{To: []string{"http://127.0.0.1:1"}})
	w := httptest.NewRecorder()
	r.proxy.Handler("other").ServeHTTP(w, httptest.NewRequest("GET", "/x", nil))
	check.Equal(t, w.Code, 503, "status")
	check.Equal(t, w.Header().Get("Connection"), "close", "Connection")
	one := r.record()
	check.Equal(t, one.Door+" "+one.Path, "other /x", "record")
	check.Equal(t, one.Own, true, "Own")
}

// A client of HTTP/1.0 gets neither a chunked body nor an informational response.
func TestHTTP10(t *testing.T) {
	t.Parallel()
	r := upstream(t, proxy.Upstream{To: []string{"http://" + server(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(103)
		io.WriteString(w, "a")
		http.NewResponseController(w).Flush()
		io.WriteString(w, "b")
	})}})
	got := string(must.Have(io.ReadAll(r.dial("service", "GET / HTTP/1.0\r\n\r\n"))))
	if !strings.HasPrefix(got, "HTTP/1.0 200 OK\r\n") || !strings.HasSuffix(got, "\r\n\r\nab") || strings.Contains(got, "chunked") {
		t.Errorf("%q", got)
	}
}

// TRACE and OPTIONS go no further than they may (RFC 9110, 7.6.2), and a proxy says in both directions that it was there.
func TestMaxForwardsAndVia(t *testing.T) {
	t.Parallel()
	got := make(chan http.Header, 1)
	to := server(t, func(w http.ResponseWriter, r *http.Request) { got <- r.Header })
	r := run(t, proxy.Config{
		Upstreams: map[string]proxy.Upstream{"service": {Listen: "127.0.0.1:0", To: []string{"http://" + to}}},
		Forward:   proxy.Forward{Listen: "127.0.0.1:0", Hosts: []string{to}},
	})
	host, port, _ := net.SplitHostPort(to)
	for _, c := range []struct {
		door, method, most string
		status             int
		sent               string
	}{
		{"service", "OPTIONS", "2", 200, "1"},
		{"service", "OPTIONS", "0", 204, ""},
		{"service", "TRACE", "0", 405, ""},
		{"service", "TRACE", "1", 200, "0"},
		{"service", "GET", "0", 200, "0"},
		{"forward", "OPTIONS", "5", 200, "4"},
		{"forward", "OPTIONS", "0", 204, ""},
	} {
		target := "/"
		if c.door == "forward" {
			target = "http://" + net.JoinHostPort(host, port) + "/"
		}
		resp := r.dial(c.door, c.method+" "+target+" HTTP/1.1\r\nHost: "+to+"\r\nMax-Forwards: "+c.most+"\r\n\r\n").response(c.method)
		check.Equal(t, resp.StatusCode, c.status, "%s %s, Max-Forwards %s: status", c.door, c.method, c.most)
		if c.status == 200 {
			check.Equal(t, (<-got).Get("Max-Forwards"), c.sent, "%s %s: Max-Forwards", c.door, c.method)
			check.Equal(t, resp.Header.Get("Via"), map[string]string{"forward": "1.1 lull"}[c.door], "%s: Via", c.door)
		}
		check.Equal(t, r.record().Status, c.status, "status of the record")
	}
}
