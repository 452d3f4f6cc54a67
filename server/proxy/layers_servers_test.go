//go:build servers

package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// An application that passes on its trace alone: what it calls is repeated in one layer.
func TestLayersByTrace(t *testing.T) {
	for _, tt := range []struct {
		name    string
		headers map[string]string // of the client
		passes  bool              // the application passes its trace on
		most    int32             // requests upstream
		stop    string            // X-Should-Retry of the answer
	}{
		{"a first attempt", map[string]string{"Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}, true, 5, "false"},
		{"a retry", map[string]string{"Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Lull-Attempt": "2"}, true, 1, "false"},
		{"a retry by the id of the request", map[string]string{"X-Request-Id": "r1", "X-Envoy-Attempt-Count": "3"}, true, 1, "false"},
		{"a trace that is not passed on", map[string]string{"X-Request-Id": "r1", "Lull-Attempt": "2"}, false, 5, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var reached atomic.Int32
			service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				reached.Add(1)
				w.WriteHeader(http.StatusServiceUnavailable)
			}))
			defer service.Close()
			var egress *httptest.Server
			application := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				out, _ := http.NewRequest("GET", egress.URL, nil)
				if tt.passes {
					for _, name := range []string{"Traceparent", "X-Request-Id"} {
						out.Header.Set(name, r.Header.Get(name))
					}
				}
				resp, err := http.DefaultClient.Do(out)
				if err != nil {
					t.Error(err)
					return
				}
				resp.Body.Close()
				w.WriteHeader(http.StatusInternalServerError)
			}))
			defer application.Close()
			p, err := New(Config{
				Upstreams: map[string]Upstream{"service": {Listen: "127.0.0.1:0", To: []string{service.URL}}},
				Ingress:   Ingress{Listen: "127.0.0.1:0", To: application.URL, Trust: Everybody},
			}, Wiring{})
			if err != nil {
				t.Fatal(err)
			}
			egress = httptest.NewServer(p.Handler("service"))
			defer egress.Close()
			ingress := httptest.NewServer(p.Handler(IngressDoor))
			defer ingress.Close()
			req, _ := http.NewRequest("GET", ingress.URL, nil)
			for name, v := range tt.headers {
				req.Header.Set(name, v)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if got := reached.Load(); got != tt.most {
				t.Errorf("%d requests reached the service, want %d", got, tt.most)
			}
			if got := resp.Header.Get("X-Should-Retry"); got != tt.stop {
				t.Errorf("X-Should-Retry is %q, want %q", got, tt.stop)
			}
		})
	}
}
