//go:build servers

package proxy

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/lullgo/lull/internal/check"
)

// A response without a Content-Type gets none: nobody guesses it.
func TestNoContentTypeIsGuessed(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = nil
		_, _ = w.Write([]byte("<html>"))
	}))
	defer service.Close()
	p, err := New(Config{Upstreams: map[string]Upstream{"service": {Listen: "127.0.0.1:0", To: []string{service.URL}}}, Ingress: Ingress{Listen: "127.0.0.1:0", To: service.URL}}, Wiring{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"service", IngressDoor} {
		door := httptest.NewServer(p.Handler(name))
		defer door.Close()
		for range 20 {
			resp, err := http.Get(door.URL)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			check.Equal(t, len(resp.Header["Content-Type"]), 0, "Content-Type of %s", name)
		}
	}
}
