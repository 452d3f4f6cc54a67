package lulltest_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/lullhttp/lulltest"
)

// The tests of docs/guide.md, as they stand there.

func newClient(t *testing.T, faults *lulltest.Faults) *http.Client {
	draws := rand.New(rand.NewPCG(1, 2))
	client, err := lullhttp.NewClient(lull.Policy{},
		lullhttp.WithBase(faults.Transport(nil)),
		lullhttp.With(lull.WithRand(draws.Uint64)), // for one goroutine at a time
	)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestOrdersSurviveARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := &lulltest.Faults{Rules: []lulltest.Rule{{First: 1, Status: http.StatusServiceUnavailable}}}
		client := newClient(t, faults)
		began := time.Now()
		resp, err := client.Get("http://shop/orders/7")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK || len(faults.Attempts()) != 2 {
			t.Errorf("status %d after %d attempts", resp.StatusCode, len(faults.Attempts()))
		}
		if waited := time.Since(began); waited > 100*time.Millisecond {
			t.Errorf("the wait was %v, and the policy has 100ms at most", waited)
		}
	})
}

func TestTheDocsLostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := &lulltest.Faults{Rules: []lulltest.Rule{{First: 1, End: lulltest.Reset}}} // carried out, and the answer is lost
		resp, err := newClient(t, faults).Post("http://shop/payments", "text/plain", strings.NewReader("7 euros"))
		if err == nil {
			resp.Body.Close()
		}
		if err == nil || len(faults.Attempts()) != 1 {
			t.Errorf("a POST without a key was repeated: %v, %v", resp, err)
		}
	})
}

func TestTheDocsHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := &lulltest.Faults{Rules: []lulltest.Rule{{End: lulltest.Hang}}}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://shop/orders/7", nil)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		resp, err := newClient(t, faults).Do(req)
		if err == nil {
			resp.Body.Close()
		}
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestTheDocsOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := &lulltest.Faults{Rules: []lulltest.Rule{{Status: http.StatusServiceUnavailable}}}
		client := newClient(t, faults)
		for range 100 {
			if resp, err := client.Get("http://shop/orders/7"); err == nil {
				resp.Body.Close()
			}
		}
		if n := len(faults.Attempts()); n > 130 { // a tenth more than the calls, and 20 in stock
			t.Errorf("%d attempts for 100 calls", n)
		}
	})
}

// What the comment of the package shows, as it stands there.
func TestWhatTheDocsShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := &lulltest.Faults{Rules: []lulltest.Rule{
			{On: "GET /orders/{id}", First: 2, Status: 503},                     // the first two attempts of each call
			{On: "POST /payments", End: lulltest.Reset},                         // carried out, and the answer is lost
			{Every: 10, Status: 429, Header: http.Header{"Retry-After": {"2"}}}, // every tenth of all others
			{Chance: 0.01, End: lulltest.Hang},                                  // and one of a hundred
		}}
		client, err := lullhttp.NewClient(lull.Policy{}, lullhttp.WithBase(faults.Transport(nil)))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Get("http://shop/orders/7")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	})
}
