package lullhttp_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/lullhttp/lulltest"
)

// A call that needed a retry is one line, with the ID of the answer that failed.
func TestTheLogHasTheRequestIDOfTheFailedAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := &lulltest.Faults{Rules: []lulltest.Rule{
			{First: 1, Status: 503, Header: http.Header{"X-Request-Id": {"req-1"}, "Retry-After": {"2"}}},
			{On: "/down", Status: 404, Header: http.Header{"X-Amzn-Requestid": {"req-2"}}},
		}}
		var out strings.Builder
		log := slog.New(slog.NewTextHandler(&out, nil))
		client := client(t, lull.Policy{}, lullhttp.WithBase(faults.Transport(nil)),
			lullhttp.WithObserver(event.NewLog(log)))
		for _, c := range []struct{ path, level, want string }{
			{"up", "INFO", "attempts=2 of=5 elapsed=2"},
			{"down", "WARN", "class=permanent code=404 request_id=req-2"},
		} {
			out.Reset()
			began := time.Now()
			resp, err := client.Get("http://shop/" + c.path)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			got := out.String()
			if n := strings.Count(got, "\n"); n != 1 {
				t.Errorf("%s: %d lines, want 1: %s", c.path, n, got)
			}
			for _, want := range []string{"level=" + c.level, c.want, "dependency=shop", "operation=GET",
				"attempt_1.code=503", "attempt_1.server_hint=2s", "attempt_1.request_id=req-1", `attempt_1.error="server answered 503 Service Unavailable"`,
				"attempt_1.slept=" + time.Since(began).String()} {
				if !strings.Contains(got, want) {
					t.Errorf("%s: the line lacks %s: %s", c.path, want, got)
				}
			}
		}
	})
}
