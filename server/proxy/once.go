package proxy

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/lullgo/lull/internal/repeatable"
)

// An onceTransport sends a request once that must be. http.Transport by itself would send some again when the connection that it
// took from its pool breaks, without a wait or a budget, and nobody would count that: those without a body (GET, HEAD, OPTIONS),
// and those with an Idempotency-Key or X-Idempotency-Key. Of the former, only calls that have one attempt are kept from it: it costs 3 µs.
type onceTransport struct {
	base  *http.Transport
	http2 atomic.Bool // the latest response came over it: http.Transport repeats only what the server has not looked at
}

func (t *onceTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.http2.Load() {
		req = sentOnce(req)
	}
	resp, err := t.base.RoundTrip(req)
	if resp != nil && (resp.ProtoMajor == 2) != t.http2.Load() {
		t.http2.Store(resp.ProtoMajor == 2)
	}
	return resp, err
}

func (t *onceTransport) CloseIdleConnections() { t.base.CloseIdleConnections() }

// sentOnce returns req in a form that http.Transport takes for one that it must not repeat.
func sentOnce(req *http.Request) *http.Request {
	c := callOf(req.Context())
	bodiless := req.Body == nil && c != nil && c.once && (req.Method == http.MethodGet || req.Method == http.MethodHead || req.Method == http.MethodOptions)
	keyed := repeatable.IsKeyed(req.Header)
	if !keyed && !bodiless {
		return req
	}
	once := *req
	if bodiless {
		once.Body = emptyBody{}
	}
	if keyed {
		once.Header = req.Header.Clone()
		for _, key := range repeatable.KeyHeaders {
			if values, ok := once.Header[key]; ok {
				delete(once.Header, key)
				once.Header[strings.ToLower(key)] = values // names have no case
			}
		}
	}
	return &once
}

// An emptyBody is a body that nobody can send again.
type emptyBody struct{}

func (emptyBody) Read([]byte) (int, error) { return 0, io.EOF }
func (emptyBody) Close() error             { return nil }
