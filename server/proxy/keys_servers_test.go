//go:build servers

package proxy

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/idempotency"
)

// What the proxy itself answers is never recorded as the answer of a key.
func TestOwnAnswersAreNoAnswersOfKeys(t *testing.T) {
	l := must.Have(net.Listen("tcp", "127.0.0.1:0"))
	at := l.Addr().String()
	l.Close()
	p := must.Have(New(Config{Ingress: Ingress{Listen: "127.0.0.1:0", To: "http://" + at, Keys: Keys{Store: "memory"}}},
		Wiring{Store: must.Have(idempotency.NewMemoryStore(idempotency.MemoryStoreConfig{}))}))
	door := httptest.NewServer(p.Handler(IngressDoor))
	defer door.Close()
	post := func(path, key string) (int, string) {
		req := must.Have(http.NewRequest("POST", door.URL+path, strings.NewReader("x")))
		req.Header.Set("Authorization", "me")
		req.Header.Set("Idempotency-Key", key)
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		return resp.StatusCode, string(must.Have(io.ReadAll(resp.Body)))
	}
	status, body := post("/", "k1")
	check.Equal(t, status, 503, "status while the application is away (%s)", body)
	if strings.Contains(body, at) {
		t.Errorf("strangers learn the address of the application: %s", body)
	}
	times := 0
	application := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if times++; r.URL.Path == "/cut" {
			panic(http.ErrAbortHandler)
		}
	})}
	go application.Serve(must.Have(net.Listen("tcp", at)))
	defer application.Close()
	status, body = post("/", "k1")
	check.Equal(t, status, 200, "status with the same key when it is back (%s)", body)
	status, _ = post("/cut", "k2")
	check.Equal(t, status, 0, "status when the application breaks off")
	status, body = post("/cut", "k2")
	check.Equal(t, status, 409, "status with the same key (%s)", body)
	check.Equal(t, times, 2, "requests of the application")
}
