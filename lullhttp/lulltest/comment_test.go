package lulltest_test

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/lullhttp/lulltest"
)

// What the comment of the package shows, as it stands there.
func TestWhatTheDocsShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := &lulltest.Faults{Rules: []lulltest.Rule{
			{On: "GET /orders/{id}", First: 2, Status: 503},                     // the first two attempts of each call
			{On: "POST /payments", End: lulltest.Reset},                         // carried out, and the answer is lost
			{Every: 10, Status: 429, Header: http.Header{"Retry-After": {"2"}}}, // every tenth of all others
			{Chance: 0.01, End: lulltest.Hang},                                  // and one of a hundred
		}}
		client := must.Have(lullhttp.NewClient(lull.Policy{}, lullhttp.WithBase(faults.Transport(nil))))
		resp := must.Have(client.Get("http://shop/orders/7"))
		resp.Body.Close()
	})
}
