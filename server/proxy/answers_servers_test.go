//go:build servers

package proxy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/proxy"
)

// proxyErrorTypes is the list of RFC 9209, 2.3.
var proxyErrorTypes = strings.Fields(`dns_timeout dns_error destination_not_found destination_unavailable destination_ip_prohibited
	destination_ip_unroutable connection_refused connection_terminated connection_timeout connection_read_timeout connection_write_timeout
	connection_limit_reached tls_protocol_error tls_certificate_error tls_alert_received http_request_error http_request_denied
	http_response_incomplete http_response_header_section_size http_response_header_size http_response_body_size
	http_response_trailer_section_size http_response_trailer_size http_response_transfer_coding http_response_content_coding
	http_response_timeout http_upgrade_failed http_protocol_error proxy_internal_response proxy_internal_error proxy_configuration_error
	proxy_loop_detected`)

// own reads an answer of the proxy's own, in HTTP and in gRPC, and returns its error type.
func own(t *testing.T, r *running, url string, status int, grpc, reason string) (*http.Response, string) {
	t.Helper()
	resp, body := get(t, url)
	check.Equal(t, resp.StatusCode, status, "status")
	check.Equal(t, resp.Header.Get("Content-Type"), "application/problem+json", "Content-Type")
	check.Equal(t, resp.Header.Get("Lull-Reason"), reason, "Lull-Reason")
	var problem struct {
		Type, Title, Detail, Reason string
		Status, Attempts            int
	}
	if err := json.Unmarshal([]byte(body), &problem); err != nil || problem.Type != "about:blank" || problem.Title != http.StatusText(status) || problem.Detail == "" {
		t.Errorf("problem: %s, %v", body, err)
	}
	check.Equal(t, problem.Status, status, "status of the problem")
	check.Equal(t, problem.Reason, reason, "reason of the problem")
	check.Equal(t, strconv.Itoa(problem.Attempts), resp.Header.Get("Lull-Attempts"), "attempts")
	kind, ok := strings.CutPrefix(resp.Header.Get("Proxy-Status"), "lull; error=")
	if !ok || !slices.Contains(proxyErrorTypes, kind) {
		t.Errorf("Proxy-Status is %q", resp.Header.Get("Proxy-Status"))
	}
	one := r.record()
	check.Equal(t, one.Own, true, "Own")
	check.Equal(t, one.Status, status, "status of the record")
	check.Equal(t, one.Reason.String(), reason, "reason of the record")
	check.Equal(t, len(one.Attempts), problem.Attempts, "attempts of the record")
	check.Equal(t, one.BytesOut, int64(len(body)), "BytesOut")

	req := must.Have(http.NewRequest("POST", url, strings.NewReader("\x00\x00\x00\x00\x00")))
	req.Header.Set("Content-Type", "application/grpc+proto")
	resp2, rest := do(t, client(t, true), req)
	check.Equal(t, resp2.StatusCode, 200, "gRPC: HTTP status")
	check.Equal(t, resp2.Header.Get("Content-Type"), "application/grpc", "gRPC: Content-Type")
	check.Equal(t, resp2.Header.Get("Grpc-Status"), grpc, "grpc-status")
	check.Equal(t, rest, "", "gRPC: body")
	r.record()
	return resp, kind
}

// Each failure of the proxy's own has the status by its meaning, and says why.
func TestOwnFailures(t *testing.T) {
	t.Parallel()
	closed := must.Have(net.Listen("tcp", "127.0.0.1:0"))
	closed.Close()
	hang := raw(t, func(w *wire) { io.Copy(io.Discard, w) })
	cut := raw(t, func(w *wire) { w.head() })
	broken := raw(t, func(w *wire) { w.head(); w.send("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n") })
	malformed := raw(t, func(w *wire) { w.head(); w.send("HTTP/1.1 200 OK\r\nno colon\r\n\r\n") })
	plain := raw(t, func(w *wire) { w.send("HTTP/1.1 400 Bad Request\r\n\r\n") })
	secure, _ := tlsServer(t, func(http.ResponseWriter, *http.Request) {})
	for name, c := range map[string]struct {
		to           string
		policy       lull.Policy
		status       int
		grpc, reason string
		kind         string
	}{
		"refused":     {"http://" + closed.Addr().String(), quick, 502, "14", "attempts_exhausted", "connection_refused"},
		"timeout":     {"http://" + hang, lull.Policy{Attempts: 1, AttemptTimeout: 100 * time.Millisecond}, 504, "4", "attempts_exhausted", "http_response_timeout"},
		"cut":         {"http://" + cut, quick, 502, "14", "attempts_exhausted", "http_response_incomplete"},
		"broken":      {"http://" + broken, quick, 502, "14", "permanent", "http_protocol_error"},
		"malformed":   {"http://" + malformed, quick, 502, "14", "attempts_exhausted", "http_protocol_error"},
		"certificate": {secure, quick, 502, "14", "permanent", "tls_certificate_error"},
		"not TLS":     {"https://" + plain, quick, 502, "14", "permanent", "tls_protocol_error"},
		"no name":     {"http://no-such-host.invalid", quick, 502, "14", "", "dns_error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t, proxy.Config{Upstreams: map[string]proxy.Upstream{"service": {Listen: "127.0.0.1:0", To: []string{c.to}}}, Policy: func(string) lull.Policy { return c.policy }})
			reason := c.reason
			if reason == "" { // it depends on the resolver
				resp, _ := get(t, r.url())
				reason = resp.Header.Get("Lull-Reason")
				r.record()
			}
			_, kind := own(t, r, r.url(), c.status, c.grpc, reason)
			check.Equal(t, kind, c.kind, "error type")
		})
	}
}

// An open circuit and a full limit are 503, and a circuit says when the next probe is.
func TestOwnRefusals(t *testing.T) {
	t.Parallel()
	status := new(atomic.Int32)
	status.Store(500)
	arrived, leave := make(chan bool, 1), make(chan bool)
	to := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			arrived <- true
			<-leave
			return
		}
		w.WriteHeader(int(status.Load()))
	})
	policies := map[string]lull.Policy{
		"circuit": {Attempts: 1, Breaker: breaker.Config{Consecutive: 1, ConsecutiveFor: -1, OpenFor: 20 * time.Second}},
		"limit":   {Attempts: 1, Limit: bulkhead.Config{InFlight: 1}},
	}
	r := run(t, proxy.Config{Upstreams: map[string]proxy.Upstream{
		"circuit": {Listen: "127.0.0.1:0", To: []string{"http://" + to}},
		"limit":   {Listen: "127.0.0.1:0", To: []string{"http://" + to}},
	}, Policy: func(name string) lull.Policy { return policies[name] }})
	get(t, "http://"+r.address("circuit"))
	r.record()
	resp, kind := own(t, r, "http://"+r.address("circuit"), 503, "14", "circuit_open")
	check.Equal(t, kind, "destination_unavailable", "error type")
	if after, err := strconv.Atoi(resp.Header.Get("Retry-After")); err != nil || after < 1 || after > 3*3600 {
		t.Errorf("Retry-After: %q", resp.Header.Get("Retry-After"))
	}
	check.Equal(t, resp.Header.Get("X-Should-Retry"), "", "X-Should-Retry beside Retry-After")

	go get(t, "http://"+r.address("limit")+"/wait")
	wait(t, arrived, "the first request")
	_, kind = own(t, r, "http://"+r.address("limit"), 503, "14", "limited")
	check.Equal(t, kind, "proxy_internal_response", "error type")
	close(leave)
	check.Equal(t, r.record().Status, 200, "the first request")
}

// A response of the upstream is no failure of the proxy's own, and only the proxy says what it says of it.
func TestHeadersOfResponses(t *testing.T) {
	t.Parallel()
	failures := new(atomic.Int32)
	r := upstream(t, proxy.Upstream{Stale: time.Hour, To: []string{"http://" + server(t, func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Lull-Attempts", "Lull-Reason", "Lull-Stale", "Proxy-Status"} {
			w.Header().Set(name, "forged")
		}
		w.Header().Set("Cache-Control", "max-age=0")
		w.Header().Set("Etag", `"1"`)
		if r.URL.Path == "/missing" {
			w.WriteHeader(404)
		} else if failures.Add(-1) >= 0 {
			w.WriteHeader(503)
		}
		io.WriteString(w, "text")
	})}})
	for i, c := range []struct {
		path                    string
		failures                int32
		status                  int
		attempts, reason, stale string
	}{
		{"/", 0, 200, "1", "", ""},
		{"/", 2, 200, "3", "", ""},
		{"/missing", 0, 404, "1", "permanent", ""},
		{"/other", 9, 503, "3", "attempts_exhausted", ""},
		{"/", 9, 200, "3", "attempts_exhausted", "?1"},
	} {
		failures.Store(c.failures)
		resp, body := get(t, r.url()+c.path)
		check.Equal(t, resp.StatusCode, c.status, "%d: status", i)
		check.Equal(t, body, "text", "%d: body", i)
		check.Slices(t, resp.Header["Lull-Attempts"], []string{c.attempts}, "%d: Lull-Attempts", i)
		check.Equal(t, resp.Header.Get("Lull-Reason"), c.reason, "%d: Lull-Reason", i)
		check.Equal(t, resp.Header.Get("Lull-Stale"), c.stale, "%d: Lull-Stale", i)
		check.Equal(t, resp.Header.Get("Proxy-Status"), "", "%d: Proxy-Status", i)
		one := r.record()
		check.Equal(t, strconv.Itoa(len(one.Attempts)), c.attempts, "%d: attempts of the record", i)
		check.Equal(t, one.Stale, c.stale != "", "%d: Stale", i)
		check.Equal(t, one.Own, false, "%d: Own", i)
		if want := c.reason; want != "" {
			check.Equal(t, one.Reason.String(), want, "%d: reason of the record", i)
		} else {
			check.Equal(t, one.Reason, engine.Success, "%d: reason of the record", i)
		}
		check.Equal(t, one.Dependency, "service", "%d: Dependency", i)
		for n, a := range one.Attempts {
			last := n == len(one.Attempts)-1
			if failed := c.status >= 400 || c.stale != "" || !last; failed != (a.Code != "") {
				t.Errorf("%d: attempt %d has code %q", i, n+1, a.Code)
			}
			if (a.Waited > 0) == last || a.Took <= 0 {
				t.Errorf("%d: attempt %d took %v and waited %v", i, n+1, a.Took, a.Waited)
			}
		}
	}
}

// What the application says decides what is repeated, and does not leave the proxy.
func TestHeadersOfRequests(t *testing.T) {
	t.Parallel()
	sent := make(chan http.Header, 100)
	r := run(t, proxy.Config{Upstreams: map[string]proxy.Upstream{"service": {
		Listen: "127.0.0.1:0", To: []string{"http://" + server(t, func(w http.ResponseWriter, r *http.Request) {
			sent <- r.Header
			w.WriteHeader(503)
		})},
		Routes: []proxy.Route{{Match: "POST /yes/", Repeat: proxy.Yes}, {Match: "GET /once/", Repeat: proxy.Once}, {Match: "/no/", Repeat: proxy.No}},
	}}})
	for _, c := range []struct {
		method, path, header string
		attempts             int
	}{
		{"GET", "/", "", 3},
		{"POST", "/", "", 1},
		{"POST", "/", "Idempotency-Key: k", 3},
		{"POST", "/", "Lull-Retry: ?1", 3},
		{"GET", "/", "Lull-Retry: ?0", 1},
		{"POST", "/yes/1", "", 3},
		{"POST", "/yes/1", "Lull-Retry: ?0", 1},
		{"GET", "/once/1", "", 1},
		{"GET", "/no/1", "", 1},
		{"GET", "/no/1", "Lull-Retry: ?1", 1},
		{"GET", "/", "X-Envoy-Attempt-Count: 2", 1},
		{"GET", "/", "X-Stainless-Retry-Count: 1", 1},
		{"GET", "/", "X-Stainless-Retry-Count: 0", 3},
		{"GET", "/", "Amz-Sdk-Request: attempt=2; max=3", 1},
		{"GET", "/", "Lull-Attempt: 2", 1},
		{"GET", "/", "Lull-Timeout: 60000", 3},
	} {
		req := must.Have(http.NewRequest(c.method, r.url()+c.path, nil))
		if name, value, ok := strings.Cut(c.header, ": "); ok {
			req.Header.Set(name, value)
		}
		resp, _ := do(t, client(t, false), req)
		check.Equal(t, resp.Header.Get("Lull-Attempts"), strconv.Itoa(c.attempts), "%s %s, %s: attempts", c.method, c.path, c.header)
		check.Equal(t, len(sent), c.attempts, "%s %s, %s: requests", c.method, c.path, c.header)
		for range len(sent) {
			h := <-sent
			for _, name := range []string{"Lull-Retry", "Lull-Timeout", "X-Envoy-Upstream-Rq-Timeout-Ms"} {
				if v, ok := h[name]; ok {
					t.Errorf("the upstream got %s: %s", name, v)
				}
			}
		}
		r.record()
	}
}

// The time of the application bounds the call, whichever header has it; a time that is up makes no call.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	n := new(atomic.Int32)
	r := upstream(t, proxy.Upstream{To: []string{"http://" + server(t, func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		<-r.Context().Done()
	})}})
	for _, header := range []string{"Lull-Timeout: 100", "X-Envoy-Upstream-Rq-Timeout-Ms: 100", "X-Envoy-Expected-Rq-Timeout-Ms: 100", "Grpc-Timeout: 100m", "Lull-Timeout: 0"} {
		n.Store(0)
		req := must.Have(http.NewRequest("GET", r.url(), nil))
		name, value, _ := strings.Cut(header, ": ")
		req.Header.Set(name, value)
		resp, body := do(t, client(t, false), req)
		check.Equal(t, resp.StatusCode, 504, "%s: status", header)
		check.Equal(t, resp.Header.Get("Proxy-Status"), "lull; error=http_response_timeout", "%s: Proxy-Status", header)
		check.Equal(t, resp.Header.Get("Lull-Reason"), "deadline", "%s: Lull-Reason", header)
		calls := int32(1)
		if value == "0" {
			calls = 0
		}
		check.Equal(t, n.Load(), calls, "%s: requests", header)
		check.Equal(t, resp.Header.Get("Lull-Attempts"), strconv.Itoa(int(calls)), "%s: Lull-Attempts", header)
		if !strings.Contains(body, `"deadline"`) {
			t.Errorf("%s: problem %s", header, body)
		}
		check.Equal(t, r.record().Status, 504, "status of the record")
	}
}

// Three proxies in a row, and a client above that retries: an outage at the bottom costs one call's attempts, not their
// product, and the client's own retries are not multiplied.
func TestLayersDoNotMultiply(t *testing.T) {
	t.Parallel()
	n := new(atomic.Int32)
	to := server(t, func(w http.ResponseWriter, r *http.Request) { n.Add(1); w.WriteHeader(503) })
	for range 3 {
		to = upstream(t, proxy.Upstream{To: []string{"http://" + to}}).address("service")
	}
	for _, c := range []struct {
		header   string
		requests int32
	}{{"", 3}, {"X-Envoy-Attempt-Count: 2", 1}, {"X-Stainless-Retry-Count: 2", 1}, {"Amz-Sdk-Request: attempt=3; max=3", 1}} {
		n.Store(0)
		req := must.Have(http.NewRequest("GET", "http://"+to, nil))
		if name, value, ok := strings.Cut(c.header, ": "); ok {
			req.Header.Set(name, value)
		}
		resp, _ := do(t, client(t, false), req)
		check.Equal(t, n.Load(), c.requests, "%q: requests at the bottom", c.header)
		check.Equal(t, resp.StatusCode, 503, "status")
		check.Equal(t, resp.Header.Get("X-Should-Retry"), "false", "%q: X-Should-Retry", c.header)
	}
}

// The announced time goes on to an upstream that reads it, and is what is left.
func TestTimeGoesOn(t *testing.T) {
	t.Parallel()
	left := make(chan string, 1)
	bottom := upstream(t, proxy.Upstream{To: []string{"http://" + server(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Lull", "1")
		left <- r.Header.Get("Lull-Timeout")
	})}})
	top := upstream(t, proxy.Upstream{To: []string{bottom.url()}})
	for i := range 3 {
		req := must.Have(http.NewRequest("GET", top.url(), nil))
		req.Header.Set("Lull-Timeout", "5000")
		do(t, client(t, false), req)
		got := <-left
		if ms, err := strconv.Atoi(got); i > 0 && (err != nil || ms < 1 || ms > 5000) {
			t.Errorf("request %d: Lull-Timeout is %q", i+1, got)
		}
	}
}

// A panic of what serves a request has a record, too, and so has a request to a door that is gone.
func TestEveryRequestHasOneRecord(t *testing.T) {
	t.Parallel()
	r := upstream(t, proxy.Upstream{To: []string{"http://127.0.0.1:1"}}, proxy.Wiring{Calls: func(http.RoundTripper) http.RoundTripper {
		return roundTrip(func(*http.Request) (*http.Response, error) { panic(http.ErrAbortHandler) })
	}})
	if _, err := client(t, false).Get(r.url()); err == nil {
		t.Error("a panic had a response")
	}
	check.Equal(t, r.record().Status, 0, "status after a panic")
	var b bytes.Buffer
	b.WriteString("GET /x HTTP/1.1\r\nHost: x\r\n")
	for i := range 8 {
		fmt.Fprintf(&b, "Via: 1.%d lull\r\n", i)
	}
	resp := r.dial("service", b.String()+"\r\n").response("GET")
	check.Equal(t, resp.Header.Get("Proxy-Status"), "lull; error=proxy_loop_detected", "Proxy-Status")
	check.Equal(t, r.record().Status, 502, "status of a circle")
	eventually(t, func() bool { return len(r.records) == 0 }, "no further record")
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
