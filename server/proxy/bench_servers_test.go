//go:build servers

package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkDoor compares a request through a door with one through a bare httputil.ReverseProxy, over real sockets. They
// take turns, so that a busy machine is the same for all. Its metrics are the medians of each, and how many times what the
// bare one adds to a direct request the doors add.
func BenchmarkDoor(b *testing.B) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "ok")
	}))
	defer service.Close()
	to, _ := url.Parse(service.URL)
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost, base.DisableCompression = 100, true
	ways := []string{"direct", "bare", "door", "logged"}
	handlers := append([]http.Handler{service.Config.Handler}, barely(b, to, base, Wiring{})...)
	for _, request := range []struct{ name, method, body string }{{"GET", "GET", ""}, {"POST of 1 KB", "POST", strings.Repeat("x", 1024)}} {
		b.Run(request.name, func(b *testing.B) {
			urls, took := make([]string, len(ways)), make([][]time.Duration, len(ways))
			for i, h := range handlers {
				front := httptest.NewServer(h)
				defer front.Close()
				urls[i] = front.URL
			}
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for b.Loop() {
				for i, u := range urls {
					start := time.Now()
					req, _ := http.NewRequest(request.method, u, strings.NewReader(request.body))
					resp, err := client.Do(req)
					if err != nil {
						b.Fatal(err)
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
					took[i] = append(took[i], time.Since(start))
				}
			}
			median := make([]float64, len(ways))
			for i, way := range ways {
				slices.Sort(took[i])
				median[i] = float64(took[i][len(took[i])/2].Nanoseconds()) / 1000
				b.ReportMetric(median[i], way+"-µs")
			}
			for i := 2; i < len(ways); i++ {
				b.ReportMetric((median[i]-median[0])/(median[1]-median[0]), ways[i]+"-times")
			}
		})
	}
}

// BenchmarkDoorAlone has what a door costs without a socket, beside a bare httputil.ReverseProxy.
func BenchmarkDoorAlone(b *testing.B) {
	answer := roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"text/plain"}}, Body: http.NoBody, Request: r}, nil
	})
	to, _ := url.Parse("http://service.example")
	handlers := barely(b, to, answer, Wiring{Attempts: func(http.RoundTripper) http.RoundTripper { return answer }})
	for i, name := range []string{"bare", "door", "logged"} {
		b.Run(name, func(b *testing.B) {
			r, w := httptest.NewRequest("GET", "/x", nil), httptest.NewRecorder()
			b.ReportAllocs()
			for b.Loop() {
				clear(w.Header())
				handlers[i].ServeHTTP(w, r)
			}
		})
	}
}

// barely returns a bare reverse proxy, a door, and a door with records, that lead to the same place.
func barely(b *testing.B, to *url.URL, base http.RoundTripper, w Wiring) []http.Handler {
	handlers := []http.Handler{&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: base, BufferPool: new(bufferPool)}}
	for _, w.Record = range []func(*Record){nil, func(*Record) {}} {
		p, err := New(Config{Upstreams: map[string]Upstream{"service": {Listen: "127.0.0.1:0", To: []string{to.String()}}}}, w)
		if err != nil {
			b.Fatal(err)
		}
		handlers = append(handlers, p.Handler("service"))
	}
	return handlers
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A bufferPool is the buffers of doors, for httputil.ReverseProxy.
type bufferPool struct{}

func (*bufferPool) Get() []byte  { return *buffers.Get().(*[]byte) }
func (*bufferPool) Put(p []byte) { buffers.Put(&p) }
