//go:build servers

package probe

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/child"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/ports"
	"github.com/lullgo/lull/lab/torture"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/server/admission"
	"github.com/lullgo/lull/server/idempotency"
)

// The three servers of docs/torture.md, whose table has the grades that they get here.

// The paths of all three.
const (
	orders   = "/orders"   // a GET takes 50 ms
	slow     = "/slow"     // a GET takes 1.2 s
	payments = "/payments" // a POST is carried out
	fails    = "/fails"    // a POST fails with 500
)

// plain returns a server of net/http alone.
func plain() http.Handler {
	mux := http.NewServeMux()
	work := func(d time.Duration) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			timer := time.NewTimer(d)
			defer timer.Stop()
			select {
			case <-timer.C:
				fmt.Fprintln(w, "{}")
			case <-r.Context().Done():
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}
	}
	mux.HandleFunc("GET "+orders, work(50*time.Millisecond))
	mux.HandleFunc("GET "+slow, work(1200*time.Millisecond))
	mux.HandleFunc("POST "+payments, done(http.StatusCreated))
	mux.HandleFunc("POST "+fails, done(http.StatusInternalServerError))
	return mux
}

// done answers with what was not there before.
func done(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, "{\"id\":%q}\n", rand.Text())
	}
}

// withLull returns the same behind lull's handlers: two requests at a time, keys, deadlines.
func withLull() http.Handler {
	store := must.Have(idempotency.NewMemoryStore(idempotency.MemoryStoreConfig{}))
	keys := must.Have(idempotency.New(store, idempotency.Config{}, idempotency.WithScope(idempotency.SharedScope)))
	limit := must.Have(admission.NewMiddleware(admission.Config{Limit: 2, MaxWait: 200 * time.Millisecond}))
	mux := http.NewServeMux()
	mux.Handle("POST /", keys.Wrap(plain()))
	mux.Handle("GET /", limit.Handler(plain()))
	return must.Have(lullhttp.NewHandler(mux))
}

// nginx starts one with a limit of requests in front of a server, for the duration of the test, and returns its URL.
func nginx(t *testing.T, program, behind string) string {
	var port int
	must.Succeed(ports.Free(&port))
	folder := t.TempDir()
	url, config := fmt.Sprint("http://127.0.0.1:", port), filepath.Join(folder, "nginx.conf")
	must.Succeed(os.WriteFile(config, fmt.Appendf(nil, `daemon off; worker_processes 1; pid %[1]s/pid; error_log stderr crit;
events {}
http {
  access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  limit_req_zone $binary_remote_addr zone=all:1m rate=20r/s;
  limit_req_status 429;
  server {
    listen 127.0.0.1:%[2]d;
    location / { proxy_pass %[3]s; proxy_http_version 1.1; }
    location = /orders { limit_req zone=all burst=10; proxy_pass %[3]s; proxy_http_version 1.1; }
  }
}
`, folder, port, behind), 0o600))
	server := must.Have(child.Start(exec.Command(program, "-p", folder, "-c", config)))
	t.Cleanup(func() {
		server.Process.Signal(os.Interrupt) // which ends its worker, too
		<-server.Ended
	})
	must.Succeed(server.Await(func() error {
		resp, err := http.Get(url + fails)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}, 50*time.Millisecond, time.Minute))
	return url
}

// target is one of the three, at its URL.
func target(url string) Target {
	return Target{URL: url + orders, Post: payments, Slow: slow, Busy: orders, Fail: fails}
}

// lull's own handlers get full marks: what does not apply is what they do not claim.
func TestLullsHandlersPass(t *testing.T) {
	t.Parallel()
	without := map[string]bool{"refusal-ratelimit": true, "connection-final": true}
	wanted(t, graded(t, target(serve(t, withLull()).URL), Options{Rate: 1000}), func(name string) torture.Grade {
		if without[name] {
			return torture.NotApplicable
		}
		return torture.Pass
	})
}

// A server that claims nothing is failed for nothing.
func TestNetHTTPClaimsNothing(t *testing.T) {
	t.Parallel()
	wanted(t, graded(t, target(serve(t, plain()).URL), Options{Requests: 400, Rate: 1000}), connectionsAlone)
}

// connectionsAlone are the grades of a server that knows HTTP.
func connectionsAlone(name string) torture.Grade {
	if name == "connection-calls" || name == "connection-expect" || name == "connection-old" {
		return torture.Pass
	}
	return torture.NotApplicable
}

// nginx refuses in order, but names no time.
func TestNginxNamesNoTime(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("nginx")
	if err != nil {
		t.Log(err)
		return // nothing else here needs it
	}
	wanted(t, graded(t, target(nginx(t, program, serve(t, plain()).URL)), Options{}), func(name string) torture.Grade {
		switch name {
		case "refusal-status", "refusal-cache", "refusal-connection":
			return torture.Pass
		case "refusal-hint":
			return torture.Warn
		}
		return connectionsAlone(name)
	})
}
