package lullhttp_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/lullhttp"
)

// In a shared store a response for one caller is served to no other, whatever the header that names them, unless it is for everybody.
func TestStaleOfAnotherCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		control, fails := "", false
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			status, h := 200, http.Header{}
			if fails {
				status = 503
			} else if control != "" {
				h.Set("Cache-Control", control)
			}
			return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(req.Header.Get("X-Api-Key"))), Request: req, ContentLength: -1}, nil
		})
		client := &http.Client{Transport: must(lullhttp.New(lull.Policy{Attempts: 1}, lullhttp.WithBase(base), lullhttp.WithStale(lullhttp.Stale{For: time.Hour})))}
		get := func(path, key, trace string) int {
			req := must(http.NewRequest("GET", "http://service"+path, nil))
			if key != "" {
				req.Header.Set("X-Api-Key", key)
			}
			req.Header.Set("Traceparent", trace)
			resp := must(client.Do(req))
			_ = must(io.ReadAll(resp.Body))
			resp.Body.Close()
			return resp.StatusCode
		}
		get("/me", "alice", "1")
		get("/open", "", "1")
		control = "public"
		get("/public", "alice", "1")
		fails = true
		for _, tt := range []struct {
			path, key string
			status    int
		}{{"/me", "alice", 200}, {"/me", "bob", 503}, {"/me", "", 503}, {"/open", "", 200}, {"/open", "bob", 503}, {"/public", "bob", 200}, {"/public", "", 200}} {
			check.Equal(t, get(tt.path, tt.key, "2"), tt.status, "%s for %q", tt.path, tt.key)
		}
	})
}
