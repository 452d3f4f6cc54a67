//go:build servers

package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
)

// BenchmarkDoor compares a request through a door with one through a bare httputil.ReverseProxy, over real sockets.
func BenchmarkDoor(b *testing.B) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "ok")
	}))
	defer service.Close()
	to, _ := url.Parse(service.URL)
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost, base.DisableCompression = 100, true
	bare := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: base}
	upstreams := Config{Upstreams: map[string]Upstream{"service": {Listen: "127.0.0.1:0", To: []string{service.URL}}}}
	plain, err := New(upstreams)
	if err != nil {
		b.Fatal(err)
	}
	logged, err := New(upstreams, WithRecord(func(*Record) {}))
	if err != nil {
		b.Fatal(err)
	}
	for _, bb := range []struct {
		name    string
		handler http.Handler
	}{{"bare", bare}, {"door", plain.Handler("service")}, {"door with records", logged.Handler("service")}} {
		b.Run(bb.name, func(b *testing.B) {
			front := httptest.NewServer(bb.handler)
			defer front.Close()
			client := front.Client()
			b.ReportAllocs()
			for b.Loop() {
				resp, err := client.Get(front.URL)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
}
