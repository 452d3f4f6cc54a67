//go:build servers

package proxy_test

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/proxy"
)

// Of several endpoints one that fails is ejected: it gets a few of the requests, and no call fails.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	var good, bad atomic.Int32
	healthy := server(t, func(w http.ResponseWriter, r *http.Request) { good.Add(1); io.WriteString(w, r.Host) })
	failing := server(t, func(w http.ResponseWriter, r *http.Request) { bad.Add(1); w.WriteHeader(502) })
	r := run(t, proxy.Config{
		Upstreams: map[string]proxy.Upstream{"service": {Listen: "127.0.0.1:0", To: []string{"http://" + healthy, "http://" + failing}}},
		Policy: func(string) lull.Policy {
			p := quick
			p.Budget.Unlimited = true
			return p
		},
	})
	c := client(t, false)
	for range 500 {
		resp, host := do(t, c, must.Have(http.NewRequest("GET", r.url(), nil)))
		check.Equal(t, resp.StatusCode, 200, "status")
		check.Equal(t, host, healthy, "Host")
		r.record()
	}
	if n := bad.Load(); n == 0 || n > 100 {
		t.Errorf("the endpoint that fails had %d of %d requests", n, good.Load()+n)
	}
}

// The Host header of several endpoints is that of the one that is called, or the application's with KeepHost. So are names of TLS.
func TestHostOfEndpoints(t *testing.T) {
	t.Parallel()
	hosts := make(chan string, 10)
	h := func(w http.ResponseWriter, r *http.Request) {
		name := ""
		if r.TLS != nil {
			name = r.TLS.ServerName
		}
		hosts <- r.Host + " " + name
	}
	_, port, _ := net.SplitHostPort(server(t, h))
	for _, keep := range []bool{false, true} {
		r := upstream(t, proxy.Upstream{KeepHost: keep, To: []string{"http://localhost:" + port, "http://127.0.0.1:" + port}})
		req := must.Have(http.NewRequest("GET", r.url(), nil))
		req.Host = "app.example"
		do(t, client(t, false), req)
		got := <-hosts
		if keep && got != "app.example " || !keep && got != "localhost:"+port+" " && got != "127.0.0.1:"+port+" " {
			t.Errorf("KeepHost %v: the upstream's Host is %q", keep, got)
		}
	}
	secure, ca := tlsServer(t, h) // the certificate is for example.com and 127.0.0.1
	r := upstream(t, proxy.Upstream{CA: ca, To: []string{secure}, KeepHost: true})
	req := must.Have(http.NewRequest("GET", r.url(), nil))
	req.Host = "example.com"
	resp, _ := do(t, client(t, false), req)
	check.Equal(t, resp.StatusCode, 200, "status")
	check.Equal(t, <-hosts, "example.com ", "Host and the name of TLS, which an address has not")
}

// A policy with hedges sends a second request beside a slow one, to another endpoint, and the first answer counts.
func TestHedging(t *testing.T) {
	t.Parallel()
	canceled := make(chan bool, 100)
	slow := server(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done(); canceled <- true })
	quickly := server(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "quick") })
	r := run(t, proxy.Config{
		Upstreams: map[string]proxy.Upstream{"service": {Listen: "127.0.0.1:0", To: []string{"http://" + slow, "http://" + quickly}}},
		Policy: func(string) lull.Policy {
			p := lull.Policy{Hedge: hedge.Config{Attempts: 2, Delay: 10 * time.Millisecond, Share: -1}}
			p.Budget.Unlimited = true
			return p
		},
	})
	two := 0
	for range 30 {
		resp, body := get(t, r.url())
		if resp.StatusCode != 200 || body != "quick" {
			t.Fatalf("%d %q", resp.StatusCode, body)
		}
		if resp.Header.Get("Lull-Attempts") == "2" {
			two++
		}
		r.record()
	}
	if two == 0 {
		t.Error("no hedge in 30 requests")
	}
	wait(t, canceled, "the end of a slow request")
}

// A download that breaks off goes on where it stopped, and the client notices nothing.
func TestResumeThroughADoor(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789", 10_000)
	cuts := new(atomic.Int32)
	to := server(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", `"1"`)
		if cuts.Add(1) < 3 {
			w = &cutting{ResponseWriter: w, left: 30_000}
		}
		http.ServeContent(w, r, "x.txt", time.Time{}, strings.NewReader(text))
	})
	r := upstream(t, proxy.Upstream{Resume: true, To: []string{"http://" + to}})
	resp, body := get(t, r.url())
	check.Equal(t, body == text, true, "the body is whole")
	check.Equal(t, resp.ContentLength, int64(len(text)), "Content-Length")
	check.Equal(t, cuts.Load(), 3, "requests")
	one := r.record()
	check.Equal(t, one.BytesOut, int64(len(text)), "BytesOut")
	check.Equal(t, len(one.Attempts), 3, "attempts of the record")
	for i, a := range one.Attempts {
		if last := i == 2; (a.Code == "") != last || (a.Waited == 0) != last || a.Took <= 0 {
			t.Errorf("attempt %d: %+v", i+1, a)
		}
	}
	r.noMore()
}

// cutting breaks the connection off after so many bytes.
type cutting struct {
	http.ResponseWriter
	left int
}

func (c *cutting) Write(p []byte) (int, error) {
	n, _ := c.ResponseWriter.Write(p[:min(len(p), c.left)])
	if c.left -= n; c.left == 0 {
		http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, nil
}

// Routes are found by method and path, by host at the forward door, and by service of gRPC.
func TestRoutes(t *testing.T) {
	t.Parallel()
	to := server(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(503) })
	attempts := map[string]int{"service": 1, "charges": 2, "v1": 3, "orders": 4, "host": 5, to: 1}
	_, port, _ := net.SplitHostPort(to)
	r := run(t, proxy.Config{
		Upstreams: map[string]proxy.Upstream{"service": {Listen: "127.0.0.1:0", To: []string{"h2c://" + to}, Routes: []proxy.Route{
			{Match: "POST /charges/{id}", Policy: "charges", Repeat: proxy.Yes},
			{Match: "/v1/", Policy: "v1"},
			{Match: "/shop.Orders/", Policy: "orders", Repeat: proxy.Yes},
		}}},
		Forward: proxy.Forward{Listen: "127.0.0.1:0", Hosts: []string{to, "localhost:" + port}, Routes: []proxy.Route{{Match: "localhost/v1/", Policy: "host"}}},
		Policy: func(name string) lull.Policy {
			p := lull.Policy{Attempts: attempts[name], Backoff: backoff.Schedule{Base: time.Millisecond, Cap: time.Millisecond}, Breaker: breaker.Config{Off: true}}
			p.Budget.Unlimited = true
			return p
		},
	})
	for _, c := range []struct{ method, url, dependency string }{
		{"GET", "/", "service"},
		{"POST", "/charges/7", "charges"},
		{"GET", "/charges/7", "service"},
		{"GET", "/v1/x/y?z", "v1"},
		{"POST", "/shop.Orders/Get", "orders"},
		{"GET", "http://" + to + "/v1/x", to},
		{"GET", "http://localhost:" + port + "/v1/x", "host"},
	} {
		door := "service"
		if strings.HasPrefix(c.url, "http") {
			door = proxy.ForwardDoor
		}
		resp := r.dial(door, c.method+" "+c.url+" HTTP/1.1\r\nHost: localhost:"+port+"\r\nContent-Length: 0\r\n\r\n").response(c.method)
		if door == proxy.ForwardDoor && resp.StatusCode == 400 { // Host is not that of the URL
			_, rest, _ := strings.Cut(c.url, "://")
			host, _, _ := strings.Cut(rest, "/")
			resp = r.dial(door, c.method+" "+c.url+" HTTP/1.1\r\nHost: "+host+"\r\nContent-Length: 0\r\n\r\n").response(c.method)
			r.record()
		}
		one := r.record()
		check.Equal(t, one.Dependency, c.dependency, "%s %s: dependency", c.method, c.url)
		want := attempts[c.dependency]
		check.Equal(t, resp.Header.Get("Lull-Attempts"), fmt.Sprint(want), "%s %s: attempts", c.method, c.url)
	}
}

// Update under traffic loses no request. Circuits and budgets stay, doors come and go, and a wrong Config changes nothing.
func TestUpdateUnderTraffic(t *testing.T) {
	t.Parallel()
	ok := server(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	down := server(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) })
	config := func(timeout time.Duration, doors ...string) proxy.Config {
		c := proxy.Config{Upstreams: map[string]proxy.Upstream{}, Policy: func(name string) lull.Policy {
			return lull.Policy{Attempts: 1, AttemptTimeout: timeout, Breaker: breaker.Config{Consecutive: 1, ConsecutiveFor: -1, OpenFor: 20 * time.Second}}
		}}
		for _, name := range doors {
			to := ok
			if name == "down" {
				to = down
			}
			c.Upstreams[name] = proxy.Upstream{Listen: "127.0.0.1:0", To: []string{"http://" + to}}
		}
		return c
	}
	r := run(t, config(5*time.Second, "service", "down"))
	c := client(t, false)
	down500, _ := do(t, c, must.Have(http.NewRequest("GET", "http://"+r.address("down"), nil)))
	check.Equal(t, down500.StatusCode, 500, "status")
	wrong := config(time.Second, "service")
	wrong.Upstreams["service"] = proxy.Upstream{Listen: "127.0.0.1:0", To: []string{"ftp://x"}}
	wrong.Upstreams["new"] = proxy.Upstream{Listen: "127.0.0.1:0", To: []string{"http://" + ok}}

	stop := make(chan bool)
	var all sync.WaitGroup
	var requests atomic.Int32
	url := r.url()
	for range 4 {
		c := client(t, false)
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				resp, err := c.Post(url, "text/plain", strings.NewReader("hello"))
				if err != nil {
					t.Error(err)
					return
				}
				body, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if string(body) != "hello" || err != nil {
					t.Errorf("%d %q, %v", resp.StatusCode, body, err)
				}
				requests.Add(1)
			}
		})
	}
	was := r.address("service")
	for i := range 20 {
		n := requests.Load()
		eventually(t, func() bool { return requests.Load() > n+5 }, "requests")
		doors := []string{"service", "down"}
		if i%2 == 1 {
			doors = append(doors, "new")
		}
		must.Succeed(r.proxy.Update(config(time.Duration(5+i)*time.Second, doors...)))
		if err := r.proxy.Update(wrong); err == nil {
			t.Error("a wrong Config was taken")
		}
		check.Equal(t, r.address("service"), was, "address of the door")
		check.Equal(t, r.proxy.Address("new") != nil, i%2 == 1, "the new door is there")
		if i%2 == 1 {
			resp, err := c.Get("http://" + r.address("new"))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		resp, _ := do(t, c, must.Have(http.NewRequest("GET", "http://"+r.address("down"), nil)))
		check.Equal(t, resp.Header.Get("Lull-Reason"), "circuit_open", "the circuit stays open")
	}
	close(stop)
	all.Wait()
	names := map[string]int{}
	for d := range r.proxy.Dependencies {
		names[d.Name()]++
	}
	if want := map[string]int{"service": 1, "down": 1, "new": 1}; !maps.Equal(names, want) {
		t.Errorf("dependencies: %v, want %v", names, want)
	}
}
