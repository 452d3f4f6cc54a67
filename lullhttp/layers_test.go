package lullhttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/driver/inbound"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/lullhttp"
)

// layersSeen is an observer that counts the events of two layers that both retry, by the layer above.
type layersSeen map[string]int

func (l layersSeen) Observe(_ context.Context, e lull.Event) {
	if e.Kind == event.RetriesInLayers {
		l[e.Err.(*event.Layers).Above.Name]++
	}
}

// A client above the Transport that retries by itself is reported, once for each host. Requests that only follow each other,
// and retries of other processes that are passed on, are not.
func TestRetriesInLayers(t *testing.T) {
	get := func(cl *http.Client, req *http.Request) {
		if resp, err := cl.Do(req); err == nil {
			resp.Body.Close()
		}
	}
	request := func(path string) *http.Request {
		req, _ := http.NewRequest("GET", "http://example.test/"+path, nil)
		return req
	}
	numbered := func(key, value string) func(*http.Client) {
		return func(cl *http.Client) {
			for n := 1; n <= 3; n++ {
				req := request("")
				req.Header.Set(key, fmt.Sprintf(value, n))
				get(cl, req)
			}
		}
	}
	again := func(gap time.Duration) func(*http.Client) {
		return func(cl *http.Client) {
			req := request("")
			for range 3 {
				get(cl, req)
				time.Sleep(gap)
			}
		}
	}
	const same = "the client that sends the same http.Request again"
	for name, c := range map[string]struct {
		up    bool // the server answers with 200
		calls func(*http.Client)
		want  string // the layer above; empty: none
	}{
		"the AWS SDK":      {false, numbered("Amz-Sdk-Request", "attempt=%d; max=3"), "the AWS SDK"},
		"Stainless":        {false, numbered("X-Stainless-Retry-Count", "%d"), "the API's client library"},
		"Google":           {false, numbered("X-Goog-Api-Client", "gccl-attempt-count/%d gl-go/1.26.0"), "the client of Google Cloud Storage"},
		"the same request": {false, again(time.Second), same},
		"with a timeout":   {false, func(cl *http.Client) { cl.Timeout = time.Minute; again(time.Second)(cl) }, same},
		"with a context of its own": {false, func(cl *http.Client) {
			req := request("")
			for range 3 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				get(cl, req.WithContext(ctx))
				cancel()
			}
		}, same},
		"lull.Do": {false, func(cl *http.Client) {
			d, _ := lull.NewDependency("orders", lull.Policy{}, lull.WithRand(seed.Source(t)))
			lull.Run(context.Background(), d, func(ctx context.Context) error {
				resp, err := cl.Do(request("").WithContext(ctx))
				if err != nil {
					return err
				}
				defer resp.Body.Close()
				return lull.Transient(errors.New(resp.Status))
			})
		}, "orders"},

		"one after the other": {false, func(cl *http.Client) {
			for range 5 {
				get(cl, request("")) // requests of their own
			}
		}, ""},
		"the same request, and it succeeds":   {true, again(time.Second), ""},
		"the same request, now and then":      {false, again(time.Minute), ""},
		"an SDK whose requests succeed":       {true, numbered("Amz-Sdk-Request", "attempt=%d; max=3"), ""},
		"Envoy's retries, passed on":          {false, numbered("X-Envoy-Attempt-Count", "%d"), ""},
		"lull's of another process, likewise": {false, numbered("Lull-Attempt", "%d"), ""},
		"a server's calls for a retry": {false, func(cl *http.Client) {
			ctx, in := inbound.With(context.Background(), 2, 0)
			defer in.End()
			get(cl, request("").WithContext(ctx))
		}, ""},
	} {
		run(t, name, func(t *testing.T) {
			seen := layersSeen{}
			p := eager
			p.Attempts = 3
			base := &recorder{status: 503}
			if c.up {
				base.status = 200
			}
			cl := client(t, p, lullhttp.WithBase(base), lullhttp.WithObserver(seen))
			for range 3 {
				c.calls(cl)
			}
			want := layersSeen{}
			if c.want != "" {
				want[c.want] = 1
			}
			if fmt.Sprint(seen) != fmt.Sprint(want) {
				t.Errorf("%v, want %v", seen, want)
			}
		})
	}
}

// A retry of an SDK that retries by itself is not retried once more: of three attempts
// above and four here become six, not twelve.
func TestRetriesOfSDKsAreNotMultiplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for key, value := range map[string]func(attempt int) string{
			"Amz-Sdk-Request":         func(n int) string { return fmt.Sprintf("attempt=%d; max=3", n) },
			"X-Stainless-Retry-Count": func(n int) string { return fmt.Sprint(n - 1) },
			"X-Goog-Api-Client": func(n int) string {
				return fmt.Sprintf("gccl-invocation-id/0c1e gccl-attempt-count/%d gl-go/1.26.0 gccl/1.50.0", n)
			},
			"X-Envoy-Attempt-Count": func(n int) string { return fmt.Sprint(n) },
			"Lull-Attempt":          func(n int) string { return fmt.Sprint(n) },
		} {
			for _, hedged := range []bool{false, true} {
				for nested, want := range map[engine.NestedRetries]int{engine.NestedNever: 4 + 1 + 1, lull.NestedAlways: 4 + 4 + 4} {
					p := eager
					p.Attempts, p.Nested = 4, nested
					if hedged {
						p.Attempts, p.Hedge = 0, hedge.Config{Attempts: 4}
					}
					base := &recorder{status: 503}
					cl := client(t, p, lullhttp.WithBase(base))
					for n := 1; n <= 3; n++ { // the SDK's loop
						req := get(t)
						req.Header.Set(key, value(n))
						resp, err := cl.Do(req)
						read(t, resp, err)
						if o := lullhttp.OutcomeOf(resp); n > 1 && nested == engine.NestedNever && o.Reason != engine.RetriedAbove {
							t.Errorf("%s: %s: %v", key, value(n), o.Reason)
						}
					}
					if len(base.reqs) != want {
						t.Errorf("%s, Nested %v, hedged %v: %d requests, want %d", key, nested, hedged, len(base.reqs), want)
					}
				}
			}
		}
	})
}

// Rule 13: the innermost call of lull that failed is final, also where its failure is a
// response and not an error: two transports, one over the other, make the attempts of one.
func TestRule13TransportsDoNotMultiply(t *testing.T) {
	for _, c := range []struct {
		name    string
		status  int // 0: an error
		inner   int
		reason  lull.Reason // of the outer call
		code    string
		options []lullhttp.Option
	}{
		{"unavailable", 503, 5, engine.Permanent, engine.CodeRetriedBelow, nil},
		{"unavailable, and a classifier that would repeat it", 503, 5, engine.Permanent, engine.CodeRetriedBelow,
			[]lullhttp.Option{lullhttp.WithClassifier(func(*http.Response, error) lull.Verdict {
				return lull.Verdict{Kind: lull.KindTransient}
			})}},
		{"not found", 404, 1, engine.Permanent, "404", nil},
		{"an error", 0, 5, engine.Permanent, engine.CodeRetriedBelow, nil},
	} {
		run(t, c.name, func(t *testing.T) {
			made := 0
			base := roundTripper(func(req *http.Request) (*http.Response, error) {
				made++
				if c.status == 0 {
					return nil, lull.Transient(errors.New("no route"))
				}
				return &http.Response{StatusCode: c.status, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
			})
			inner := transport(t, lull.Policy{}, lullhttp.WithBase(base))
			outer := transport(t, lull.Policy{}, append(c.options, lullhttp.WithBase(inner))...)
			req, _ := http.NewRequest("GET", "http://a.example/", nil)
			resp, err := outer.RoundTrip(req)
			got := lullhttp.OutcomeOf(resp)
			if e, ok := errors.AsType[*lull.Error](err); ok {
				got = lullhttp.Outcome{Attempts: e.Attempts, Reason: e.Reason, Verdict: e.Verdict}
			}
			if made != c.inner || got.Attempts != 1 || got.Reason != c.reason || got.Verdict.Code != c.code {
				t.Errorf("%d attempts at the base, want %d; the outer call: %+v", made, c.inner, got)
			}
		})
	}
}
