//go:build servers

package proxy_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/proxy"
)

// ingressTLS runs a proxy whose ingress door speaks TLS.
func ingressTLS(t *testing.T, to string) string {
	key := must.Have(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "door"}, NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	cert := must.Have(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(dir, name)
		must.Succeed(os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return file
	}
	r := run(t, proxy.Config{Ingress: proxy.Ingress{
		Listen: "127.0.0.1:0", To: to,
		Cert: write("cert.pem", "CERTIFICATE", cert), Key: write("key.pem", "EC PRIVATE KEY", must.Have(x509.MarshalECPrivateKey(key))),
	}})
	return "https://" + r.address(proxy.IngressDoor)
}

// Every combination of the protocols of both sides passes a request, its body, both trailers and a 103 on.
func TestProtocols(t *testing.T) {
	t.Parallel()
	app := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</a.css>")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Trailer", "Announced")
		w.Header().Set("Spoken", r.Proto)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintf(w, "%s %s %s", r.Method, body, r.Trailer.Get("Sum"))
		w.Header().Set("Announced", "1")
		w.Header().Set(http.TrailerPrefix+"Unannounced", "2")
	}
	plain := server(t, app)
	secure, ca := tlsServer(t, app)
	for name, to := range map[string]struct {
		u      proxy.Upstream
		spoken string
	}{
		"h1":  {proxy.Upstream{To: []string{"http://" + plain}}, "HTTP/1.1"},
		"h2c": {proxy.Upstream{To: []string{"h2c://" + plain}}, "HTTP/2.0"},
		"tls": {proxy.Upstream{To: []string{secure}, CA: ca}, "HTTP/2.0"},
	} {
		door := upstream(t, to.u).url()
		urls := map[string]string{"upstream": door}
		if to.u.CA == "" {
			urls["ingress"] = ingressTLS(t, to.u.To[0])
		}
		for at, url := range urls {
			for _, http2 := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s http2=%v", at, name, http2), func(t *testing.T) {
					req := must.Have(http.NewRequest("PUT", url+"/x", io.MultiReader(strings.NewReader("the body"))))
					req.Trailer = http.Header{"Sum": {"77"}}
					hints := 0
					req = req.WithContext(traced(req.Context(), func(code int) {
						if code == 103 {
							hints++
						}
					}))
					resp, body := do(t, client(t, http2), req)
					check.Equal(t, resp.StatusCode, 202, "status")
					check.Equal(t, body, "PUT the body 77", "body")
					check.Equal(t, resp.Header.Get("Spoken"), to.spoken, "protocol of the upstream")
					check.Equal(t, resp.ProtoMajor == 2, http2, "protocol of the door")
					check.Equal(t, resp.Trailer.Get("Announced"), "1", "announced trailer")
					check.Equal(t, resp.Trailer.Get("Unannounced"), "2", "unannounced trailer")
					check.Equal(t, hints, 1, "early hints")
				})
			}
		}
	}
}

// A connection is kept for further requests, and requests that were sent at once are answered in their order.
func TestKeepAliveAndPipelining(t *testing.T) {
	t.Parallel()
	connections := make(chan string, 10)
	r := upstream(t, proxy.Upstream{To: []string{"http://" + server(t, func(w http.ResponseWriter, r *http.Request) {
		connections <- r.RemoteAddr
		io.WriteString(w, r.URL.Path)
	})}})
	w := r.dial("service", "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nPOST /2 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabcHEAD /3 HTTP/1.1\r\nHost: x\r\n\r\nGET /4 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	for i, method := range []string{"GET", "POST", "HEAD", "GET"} {
		resp := w.response(method)
		want := fmt.Sprintf("/%d", i+1)
		check.Equal(t, resp.ContentLength, 2, "length of %s", want)
		if method == "HEAD" {
			want = ""
		}
		check.Equal(t, string(must.Have(io.ReadAll(resp.Body))), want, "body")
	}
	if rest := must.Have(io.ReadAll(w)); len(rest) > 0 {
		t.Errorf("after the last response: %q", rest)
	}
	first := <-connections
	for range 3 {
		check.Equal(t, <-connections, first, "connection to the upstream")
	}
}

// Responses without a body have none, and keep the fields that speak of one (RFC 9110, 8.6 and 15.4.5).
func TestBodiless(t *testing.T) {
	t.Parallel()
	r := upstream(t, proxy.Upstream{To: []string{"http://" + raw(t, func(w *wire) {
		for {
			req, err := http.ReadRequest(w.Reader)
			if err != nil {
				return
			}
			switch req.URL.Path {
			case "/head":
				w.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nEtag: \"a\"\r\n\r\n")
			case "/chunked":
				w.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			case "/204":
				w.send("HTTP/1.1 204 No Content\r\nEtag: \"a\"\r\n\r\n")
			case "/304":
				w.send("HTTP/1.1 304 Not Modified\r\nContent-Length: 1000\r\nEtag: \"a\"\r\n\r\n")
			case "/205":
				w.send("HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n")
			}
		}
	})}})
	for _, c := range []struct {
		method, path string
		length       string
	}{{"HEAD", "/head", "1000"}, {"HEAD", "/chunked", ""}, {"GET", "/204", ""}, {"GET", "/304", ""}, {"GET", "/205", "0"}, {"HEAD", "/204", ""}} {
		for _, http2 := range []bool{false, true} {
			resp, body := do(t, client(t, http2), must.Have(http.NewRequest(c.method, r.url()+c.path, nil)))
			check.Equal(t, body, "", "%s %s: body", c.method, c.path)
			check.Equal(t, resp.Header.Get("Content-Length"), c.length, "%s %s: Content-Length (http2=%v)", c.method, c.path, http2)
			r.record()
		}
	}
	// The connection of HTTP/1.1 is in step afterwards.
	w := r.dial("service", "HEAD /head HTTP/1.1\r\nHost: x\r\n\r\nGET /204 HTTP/1.1\r\nHost: x\r\n\r\n")
	check.Equal(t, w.response("HEAD").StatusCode, 200, "first")
	check.Equal(t, w.response("GET").StatusCode, 204, "second")
}

// What a request targets is sent on as it came: escapes, semicolons, empty queries, and the asterisk of OPTIONS.
func TestTargets(t *testing.T) {
	t.Parallel()
	lines := make(chan string, 10)
	serve := func(w *wire) {
		for {
			head := ""
			for {
				line, err := w.ReadString('\n')
				if err != nil {
					return
				}
				if line = strings.TrimRight(line, "\r\n"); line == "" {
					break
				}
				if head == "" {
					head = line
				} else if strings.HasPrefix(line, "Host: ") {
					head += " " + line
				}
			}
			lines <- head
			w.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	}
	to := raw(t, serve)
	r := run(t, proxy.Config{
		Upstreams: map[string]proxy.Upstream{
			"service": {Listen: "127.0.0.1:0", To: []string{"http://" + to}},
			"base":    {Listen: "127.0.0.1:0", To: []string{"http://" + to + "/base%2Fa/"}},
			"host":    {Listen: "127.0.0.1:0", To: []string{"http://" + to}, KeepHost: true},
		},
		Forward: proxy.Forward{Listen: "127.0.0.1:0", Hosts: []string{to}},
		Ingress: proxy.Ingress{Listen: "127.0.0.1:0", To: "http://" + to},
	})
	for _, c := range []struct{ door, sent, want string }{
		{"service", "GET /a%2Fb/%C3%A4;v=1?x=a;b=%zz&&=&c HTTP/1.1\r\nHost: app", "GET /a%2Fb/%C3%A4;v=1?x=a;b=%zz&&=&c HTTP/1.1 Host: TO"},
		{"service", "GET /a|b%2Fc HTTP/1.1\r\nHost: app", "GET /a%7Cb%2Fc HTTP/1.1 Host: TO"},
		{"service", "GET //a/../b/./ HTTP/1.1\r\nHost: app", "GET //a/../b/./ HTTP/1.1 Host: TO"},
		{"service", "GET /? HTTP/1.1\r\nHost: app", "GET /? HTTP/1.1 Host: TO"},
		{"service", "GET http://app/abs?q HTTP/1.1\r\nHost: app", "GET /abs?q HTTP/1.1 Host: TO"},
		{"service", "OPTIONS * HTTP/1.1\r\nHost: app", "OPTIONS * HTTP/1.1 Host: TO"},
		{"service", "FROB /x HTTP/1.1\r\nHost: app", "FROB /x HTTP/1.1 Host: TO"},
		{"base", "GET /x%2Fy?q HTTP/1.1\r\nHost: app", "GET /base%2Fa/x%2Fy?q HTTP/1.1 Host: TO"},
		{"base", "GET / HTTP/1.1\r\nHost: app", "GET /base%2Fa/ HTTP/1.1 Host: TO"},
		{"base", "GET /a|b HTTP/1.1\r\nHost: app", "GET /base%2Fa/a%7Cb HTTP/1.1 Host: TO"},
		{"base", "OPTIONS * HTTP/1.1\r\nHost: app", "OPTIONS * HTTP/1.1 Host: TO"},
		{"host", "GET /x HTTP/1.1\r\nHost: App.Example:81", "GET /x HTTP/1.1 Host: App.Example:81"},
		{"forward", "GET http://" + to + "/x%2Fy?a;b HTTP/1.1\r\nHost: " + to, "GET /x%2Fy?a;b HTTP/1.1 Host: TO"},
		{"forward", "GET http://" + to + " HTTP/1.1\r\nHost: " + to, "GET / HTTP/1.1 Host: TO"},
		{"forward", "OPTIONS http://" + to + " HTTP/1.1\r\nHost: " + to, "OPTIONS * HTTP/1.1 Host: TO"},
		{"forward", "OPTIONS http://" + to + "/ HTTP/1.1\r\nHost: " + to, "OPTIONS / HTTP/1.1 Host: TO"},
		{"ingress", "GET /x HTTP/1.1\r\nHost: www.example", "GET /x HTTP/1.1 Host: www.example"},
	} {
		w := r.dial(c.door, c.sent+"\r\nConnection: close\r\n\r\n")
		resp := w.response("GET")
		if resp.StatusCode != 200 {
			t.Errorf("%s %q: %d %s", c.door, c.sent, resp.StatusCode, must.Have(io.ReadAll(resp.Body)))
			continue
		}
		check.Equal(t, <-lines, strings.ReplaceAll(c.want, "TO", to), "%s %q", c.door, c.sent)
	}
}

// Header fields of one connection stay there, and all others are passed on with every value (RFC 9110, 7.6.1).
func TestHeadersOfOneConnection(t *testing.T) {
	t.Parallel()
	got := make(chan http.Header, 1)
	r := upstream(t, proxy.Upstream{To: []string{"http://" + server(t, func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header
		h := w.Header()
		h["Set-Cookie"] = []string{"a=1", "b=2"}
		h.Set("Connection", "X-Own")
		h.Set("X-Own", "1")
		h.Set("Keep-Alive", "timeout=5")
		h.Set("Via", "1.1 other")
	})}})
	w := r.dial("service", "GET / HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 1\r\nTe: trailers, deflate\r\nProxy-Authorization: Basic x\r\n"+
		"Cookie: a\r\nX-Many: 1\r\nX-Many: 2\r\nX-Empty:\r\nX-Forwarded-For: 10.0.0.1\r\n\r\n")
	resp := w.response("GET")
	sent := <-got
	for _, name := range []string{"Connection", "X-Hop", "Keep-Alive", "Proxy-Authorization", "User-Agent", "Accept-Encoding"} {
		if v, ok := sent[name]; ok {
			t.Errorf("the upstream got %s: %q", name, v)
		}
	}
	check.Equal(t, sent.Get("Te"), "trailers", "Te")
	check.Slices(t, sent["X-Many"], []string{"1", "2"}, "a field with two values")
	check.Slices(t, sent["X-Empty"], []string{""}, "an empty field")
	check.Slices(t, sent["X-Forwarded-For"], []string{"10.0.0.1"}, "what the application says of its client")
	check.Slices(t, sent["Via"], []string{"1.1 lull"}, "Via")
	for _, name := range []string{"X-Own", "Keep-Alive", "Lull"} {
		if v, ok := resp.Header[name]; ok && name != "Lull" {
			t.Errorf("the application got %s: %q", name, v)
		}
	}
	check.Slices(t, resp.Header["Set-Cookie"], []string{"a=1", "b=2"}, "cookies")
}

// Doors and upstreams may be Unix sockets.
func TestUnixSockets(t *testing.T) {
	t.Parallel()
	dir := must.Have(os.MkdirTemp("", "door")) // short: the path of a socket has at most 107 bytes
	t.Cleanup(func() { os.RemoveAll(dir) })
	l := must.Have(net.Listen("unix", dir+"/app"))
	app := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Host, r.URL) })}
	go app.Serve(l)
	t.Cleanup(func() { app.Close() })
	run(t, proxy.Config{Upstreams: map[string]proxy.Upstream{"service": {Listen: "unix:" + dir + "/door", To: []string{"unix:" + dir + "/app"}}}})
	c := must.Have(net.Dial("unix", dir+"/door"))
	w := newWire(t, c).send("GET /x HTTP/1.1\r\nHost: app\r\nConnection: close\r\n\r\n")
	check.Equal(t, string(must.Have(io.ReadAll(w.response("GET").Body))), "localhost/x", "Host and path at the upstream")
}
