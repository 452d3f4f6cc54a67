package lullhttp_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/cutofftest"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/outlier"
)

// What ended an attempt is decided by who ended its context, whatever the base transport returns then and whether
// the request's host has endpoints.
func TestWhoCutTheAttemptOff(t *testing.T) {
	for _, endpoints := range []bool{false, true} {
		cutofftest.Test(t, func(t *testing.T, p lull.Policy) cutofftest.Call {
			var attempt func(context.Context) error
			base := roundTripper(func(req *http.Request) (*http.Response, error) { return nil, attempt(req.Context()) })
			opts := []lullhttp.Option{lullhttp.WithBase(base), lullhttp.With(lull.WithRand(seed.Source(t)))}
			if endpoints {
				e := must(lullhttp.NewEndpoints(outlier.Config{}, []string{"10.0.0.1:80"}))
				opts = append(opts, lullhttp.WithEndpoints("a.example", e))
			}
			rt := transport(t, p, opts...)
			return func(ctx context.Context, f func(context.Context) error) error {
				attempt = f
				req, _ := http.NewRequestWithContext(ctx, "GET", "http://a.example/", nil)
				_, err := (&http.Client{Transport: rt}).Do(req)
				return err
			}
		})
	}
}

// An endpoint has failed when an attempt's time was over, also with an error of which nothing is known. When the caller
// goes away, it has not.
func TestAnEndpointThatDoesNotAnswerInTime(t *testing.T) {
	for name, c := range map[string]struct {
		policy   lull.Policy
		leaves   bool
		failures int64
	}{
		"the attempt's time": {lull.Policy{Attempts: 1, AttemptTimeout: time.Second}, false, 1},
		"the caller":         {lull.Policy{Attempts: 1, AttemptTimeout: time.Minute}, true, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			base := roundTripper(func(req *http.Request) (*http.Response, error) {
				<-req.Context().Done()
				return nil, errors.New("i/o timeout")
			})
			e := must(lullhttp.NewEndpoints(outlier.Config{}, []string{"10.0.0.1:80"}))
			rt := transport(t, c.policy, lullhttp.WithBase(base), lullhttp.WithEndpoints("a.example", e))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.leaves {
				time.AfterFunc(time.Second, cancel)
			}
			req, _ := http.NewRequestWithContext(ctx, "GET", "http://a.example/", nil)
			if _, err := rt.RoundTrip(req); err == nil {
				t.Fatal("it was answered")
			}
			if at := e.Status()[0]; at.Failures+at.Unanswered != c.failures {
				t.Errorf("%s: %+v, want %d failures", name, at, c.failures)
			}
		})
	}
}
