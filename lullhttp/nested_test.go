package lullhttp_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/lullhttp"
)

// Rule 13: the innermost call of lull that failed is final, also where its failure is a
// response and not an error: two transports, one over the other, make three attempts.
func TestRule13TransportsDoNotMultiply(t *testing.T) {
	for _, c := range []struct {
		name    string
		status  int // 0: an error
		inner   int
		reason  lull.Reason // of the outer call
		code    string
		options []lullhttp.Option
	}{
		{"unavailable", 503, 3, engine.Permanent, engine.CodeRetriedBelow, nil},
		{"unavailable, and a classifier that would repeat it", 503, 3, engine.Permanent, engine.CodeRetriedBelow,
			[]lullhttp.Option{lullhttp.WithClassifier(func(*http.Response, error) lull.Verdict {
				return lull.Verdict{Kind: lull.KindTransient}
			})}},
		{"not found", 404, 1, engine.Permanent, "404", nil},
		{"an error", 0, 3, engine.Permanent, engine.CodeRetriedBelow, nil},
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
			inner, err := lullhttp.New(lull.Policy{}, lullhttp.WithBase(base), lullhttp.With(lull.WithRand(seed.Source(t))))
			if err != nil {
				t.Fatal(err)
			}
			outer, err := lullhttp.New(lull.Policy{}, append(c.options, lullhttp.WithBase(inner), lullhttp.With(lull.WithRand(seed.Source(t))))...)
			if err != nil {
				t.Fatal(err)
			}
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
