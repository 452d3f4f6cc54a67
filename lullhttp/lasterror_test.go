package lullhttp_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/lullhttp"
)

type lastEvent struct{ err error }

func (l *lastEvent) Observe(_ context.Context, e event.Event) { l.err = e.Err }

// The breaker keeps the error of a failure, and other calls print it. The caller of the failed call owns the response, and may
// change its header at the same time.
func TestAKeptErrorHasAHeaderOfItsOwn(t *testing.T) {
	base := roundTripper(func(req *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 503, Header: http.Header{"X-Request-Id": {"r1"}}, Body: io.NopCloser(strings.NewReader("")), Request: req}, nil
	})
	last := &lastEvent{}
	transport := must(lullhttp.New(lull.Policy{Attempts: 1}, lullhttp.WithBase(base), lullhttp.WithObserver(last)))
	resp := must(transport.RoundTrip(must(http.NewRequest("GET", "http://service", nil))))
	resp.Header.Set("X-Request-Id", "r2")
	kept, ok := last.err.(*lullhttp.StatusError)
	if !ok {
		t.Fatalf("the event has the error %v", last.err)
	}
	check.Equal(t, kept.RequestID(), "r1", "the ID of the request")
}
