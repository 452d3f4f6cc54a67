//go:build servers

package proxy

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"github.com/lullgo/lull/internal/must"
)

// An answer that breaks off ends with a reset behind what there was of it: not every client compares its length with Content-Length.
func TestABrokenAnswerEndsWithAReset(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer service.Close()
	p := must.Have(New(Config{Upstreams: map[string]Upstream{"service": {Listen: "127.0.0.1:0", To: []string{service.URL}}}}, Wiring{}))
	must.Succeed(p.Listen())
	go p.Serve(t.Context())
	c := must.Have(net.Dial("tcp", p.Address("service").String()))
	defer c.Close()
	must.Have(io.WriteString(c, "GET / HTTP/1.1\r\nHost: service\r\n\r\n"))
	got, err := io.ReadAll(c)
	if !errors.Is(err, syscall.ECONNRESET) || !strings.HasSuffix(string(got), "\r\n\r\nhalf") {
		t.Errorf("%q, %v; want half of the answer and a reset", got, err)
	}
}
