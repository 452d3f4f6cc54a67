package main

import (
	"io"
	"net/http"
	"time"

	"github.com/gojek/heimdall/v7"
	"github.com/gojek/heimdall/v7/httpclient"
	"github.com/lullgo/lull/torture"
	"github.com/lullgo/lull/torture/clients/internal/adapter"
	"resty.dev/v3"
)

func init() {
	clients["resty"] = func(base *http.Transport) (torture.Doer, error) {
		client := resty.New().SetTransport(base).SetRetryCount(3).AddRetryConditions(resty.RetryConditionStatus5XX)
		return adapter.Doer(func(r *http.Request) (*http.Response, error) {
			q := client.R().SetContext(r.Context()).SetHeaderMultiValues(r.Header)
			if r.Body != nil {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return nil, err
				}
				q.SetBody(body)
			}
			resp, err := q.Execute(r.Method, r.URL.String())
			if err != nil {
				return nil, err
			}
			return &http.Response{StatusCode: resp.StatusCode(), Status: resp.Status(), Body: resp.Body}, nil
		}), nil
	}
	// heimdall waits as its README shows.
	clients["heimdall"] = func(base *http.Transport) (torture.Doer, error) {
		backoff := heimdall.NewExponentialBackoff(100*time.Millisecond, 2*time.Second, 2, 50*time.Millisecond)
		return httpclient.NewClient(httpclient.WithHTTPClient(&http.Client{Transport: base}),
			httpclient.WithRetrier(heimdall.NewRetrier(backoff)), httpclient.WithRetryCount(3)), nil
	}
}
