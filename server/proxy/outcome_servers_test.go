//go:build servers

package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/check"
)

// A request that may have been carried out, and must not be carried out twice, has an answer after which no client repeats it.
func TestOutcomeUnknown(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/hang" {
			<-r.Context().Done()
		}
		panic(http.ErrAbortHandler)
	}))
	defer service.Close()
	p, err := New(Config{
		Upstreams: map[string]Upstream{"service": {Listen: "127.0.0.1:0", To: []string{service.URL}}},
		Ingress:   Ingress{Listen: "127.0.0.1:0", To: service.URL, MaxTimeout: 100 * time.Millisecond},
		Policy:    func(string) lull.Policy { return lull.Policy{Attempts: 2, AttemptTimeout: 100 * time.Millisecond} },
	}, Wiring{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"service", IngressDoor} {
		door := httptest.NewServer(p.Handler(name))
		defer door.Close()
		for _, tt := range []struct {
			method, path, key string
			status            int
		}{{"POST", "/cut", "", 424}, {"PATCH", "/hang", "", 424}, {"POST", "/cut", "k1", 502}, {"GET", "/cut", "", 502}, {"PUT", "/hang", "", 504}} {
			req, _ := http.NewRequest(tt.method, door.URL+tt.path, strings.NewReader("x"))
			if tt.key != "" {
				req.Header.Set("Idempotency-Key", tt.key)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			check.Equal(t, resp.StatusCode, tt.status, "%s %s %s", name, tt.method, tt.path)
			unknown := tt.status == 424
			check.Equal(t, strings.Contains(string(body), problemOutcomeUnknown), unknown, "%s %s %s: the type", name, tt.method, tt.path)
			check.Equal(t, resp.Header.Get("X-Should-Retry") == "false" || !unknown, true, "%s %s %s: X-Should-Retry", name, tt.method, tt.path)
		}
	}
}
