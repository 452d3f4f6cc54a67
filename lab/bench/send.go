package bench

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/budget"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/hashicorp/go-retryablehttp"
	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/outlier"
)

// A sender is a library that sends HTTP requests through a transport.
type sender struct {
	name  string
	does  feature
	build func(http.RoundTripper) send
}

// send makes one request, from building it to the response. A nil body is none.
type send func(ctx context.Context, method, url string, body []byte) (*http.Response, error)

// whole makes a request and closes the response. Another status than 200 is an error.
func (s send) whole(ctx context.Context, method string, body []byte) error {
	resp, err := s(ctx, method, target, body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return resp.Body.Close()
}

const (
	targetHost = "backend.example"
	target     = "http://" + targetHost + "/things/1"
)

// sending gives every sender the same request and the same stub to send it to.
func sending(senders []sender, method string, body []byte) []subject {
	var subjects []subject
	for _, s := range senders {
		subjects = append(subjects, subject{s.name, s.does, func(func(func())) binder {
			send := s.build(stub{})
			return op(func(ctx context.Context) error { return send.whole(ctx, method, body) }).bind
		}})
	}
	return subjects
}

// stub is a transport that reads the request's body, as a real one must, and
// answers 200 without one of its own.
type stub struct{}

func (stub) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_, err := io.Copy(io.Discard, req.Body)
		if err := cmp.Or(err, req.Body.Close()); err != nil {
			return nil, err
		}
	}
	return answer(req, http.StatusOK), nil
}

func answer(req *http.Request, status int) *http.Response {
	return &http.Response{StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: make(http.Header), Body: http.NoBody, Request: req}
}

func senders() []sender {
	return []sender{
		bareSender(),
		{"retryablehttp.StandardClient", retries, func(rt http.RoundTripper) send {
			return through(newRetryable(rt).StandardClient())
		}},
		{"retryablehttp.Client", retries, func(rt http.RoundTripper) send {
			client := newRetryable(rt)
			return func(ctx context.Context, method, url string, body []byte) (*http.Response, error) {
				var raw any
				if body != nil {
					raw = body
				}
				req, err := retryablehttp.NewRequestWithContext(ctx, method, url, raw)
				if err != nil {
					return nil, err
				}
				return client.Do(req)
			}
		}},
		{"failsafehttp retry", retries, func(rt http.RoundTripper) send {
			retry := failsafehttp.NewRetryPolicyBuilder().WithMaxAttempts(attempts).Build()
			return through(&http.Client{Transport: failsafehttp.NewRoundTripper(rt, retry)})
		}},
		{"failsafehttp retry+cb+budget", retries | budgeted | breaks, func(rt http.RoundTripper) send {
			retry := failsafehttp.NewRetryPolicyBuilder().WithMaxAttempts(attempts).WithBudget(budget.New()).Build()
			return through(&http.Client{Transport: failsafehttp.NewRoundTripper(rt, failsafehttpBreaker(), retry)})
		}},
		lullSender("lullhttp", retries|budgeted|breaks, untimed()),
		{"lullhttp endpoints", retries | budgeted | breaks | chooses, func(rt http.RoundTripper) send {
			three := must.Have(lullhttp.NewEndpoints(outlier.Config{}, []string{"a.example", "b.example", "c.example"}))
			return through(lullClient(rt, untimed(), lullhttp.WithEndpoints(targetHost, three)))
		}},
		lullSender("lullhttp zero policy", retries|budgeted|breaks|timed, lull.Policy{}),
	}
}

// bareSender does what every other sender does as well.
func bareSender() sender {
	return sender{"net/http", 0, func(rt http.RoundTripper) send {
		return through(&http.Client{Transport: rt})
	}}
}

func failsafehttpBreaker() failsafe.Policy[*http.Response] {
	return circuitbreaker.NewBuilder[*http.Response]().
		HandleIf(func(r *http.Response, err error) bool { return err != nil || r.StatusCode >= 500 }).
		WithFailureRateThreshold(failureRate, minCalls, window).WithDelay(openFor).Build()
}

// through sends with a client of net/http, as most code does.
func through(client *http.Client) send {
	return func(ctx context.Context, method, url string, body []byte) (*http.Response, error) {
		var reader io.Reader
		if body != nil {
			reader = bytes.NewReader(body)
		}
		req, err := http.NewRequestWithContext(ctx, method, url, reader)
		if err != nil {
			return nil, err
		}
		return client.Do(req)
	}
}

func newRetryable(rt http.RoundTripper) *retryablehttp.Client {
	client := retryablehttp.NewClient()
	client.HTTPClient.Transport = rt
	client.RetryMax = attempts - 1
	client.Logger = nil // it writes to standard error by default
	return client
}
