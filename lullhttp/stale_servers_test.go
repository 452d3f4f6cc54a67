//go:build servers

package lullhttp_test

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/lullhttp"
)

var staleOutage = flag.Duration("stale.outage", 6*time.Second, "how long the outage of TestAnOutageOnSockets lasts")

// Through an outage on real sockets, a client with stored responses has nearly all of its calls
// answered. The dependency gets the attempts that the calls report, and no other one.
// TestAnOutageWithStaleResponses shows in virtual time that these are the attempts without WithStale.
//
//	go test -tags servers ./lullhttp -run TestAnOutageOnSockets -v -stale.outage=60s
func TestAnOutageOnSockets(t *testing.T) {
	const keys, every, around = 20, 10 * time.Millisecond, 2 * time.Second
	for _, stale := range []bool{false, true} {
		t.Run(fmt.Sprintf("stale %v", stale), func(t *testing.T) {
			t.Parallel()
			var down atomic.Bool
			var arrived atomic.Int64
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch n := arrived.Add(1); {
				case down.Load() && n%2 == 0:
					panic(http.ErrAbortHandler)
				case down.Load():
					w.WriteHeader(http.StatusServiceUnavailable)
				default:
					w.Header().Set("Cache-Control", "max-age=1")
					io.WriteString(w, r.URL.Path)
				}
			}))
			defer s.Close()
			base := &http.Transport{DisableKeepAlives: true} // else it repeats some requests by itself
			opts := []lullhttp.Option{lullhttp.WithBase(base)}
			if stale {
				opts = append(opts, lullhttp.WithStale(lullhttp.Stale{For: time.Hour}))
			}
			c := must(lullhttp.NewClient(lull.Policy{}, opts...))
			calls, good, attempts, during := 0, 0, 0, int64(0)
			begin := time.Now()
			tick := time.NewTicker(every)
			defer tick.Stop()
			for end := around + *staleOutage + around; time.Since(begin) < end; <-tick.C {
				at := time.Since(begin)
				if is := at >= around && at < around+*staleOutage; is != down.Swap(is) {
					during = arrived.Load() - during
				}
				path := fmt.Sprintf("/%d", calls%keys)
				calls++
				resp, err := c.Get(s.URL + path)
				if err != nil {
					failed, _ := errors.AsType[*lull.Error](err)
					attempts += failed.Attempts
					continue
				}
				body, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				attempts += lullhttp.OutcomeOf(resp).Attempts
				if err == nil && resp.StatusCode == http.StatusOK && string(body) == path {
					good++
				}
			}
			t.Logf("%d calls, %.2f %% answered, %d attempts, %d of them in the outage", calls, 100*float64(good)/float64(calls), attempts, during)
			if int64(attempts) != arrived.Load() {
				t.Errorf("%d attempts arrived, and the calls report %d", arrived.Load(), attempts)
			}
			if stale && good*100 < calls*99 {
				t.Errorf("%d of %d calls are answered", good, calls)
			}
		})
	}
}
