package main

import (
	"context"
	"net/http"
	"time"

	"github.com/gojek/heimdall/v7"
	"github.com/gojek/heimdall/v7/httpclient"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/clients/internal/adapter"
	"github.com/lullgo/lull/lab/torture"
	"resty.dev/v3"
)

func init() {
	clients["resty"] = func(base *http.Transport) (torture.Doer, error) {
		client := resty.New().SetTransport(base).SetRetryCount(3).AddRetryConditions(resty.RetryConditionStatus5XX)
		return adapter.Doer(func(r *http.Request) (*http.Response, error) {
			q := client.R().SetContext(r.Context()).SetHeaderMultiValues(r.Header)
			if body := adapter.Body(r); body != nil {
				q.SetBody(body)
			}
			resp := must.Have(q.Execute(r.Method, r.URL.String()))
			_ = resp.String() // its README reads bodies so; what goes wrong there is not reported
			return adapter.Status(resp.StatusCode()), nil
		}), nil
	}
	// heimdall waits as its README shows, where a timeout is that of an http.Client: of each attempt, not of the call.
	clients["heimdall"] = func(base *http.Transport) (torture.Doer, error) {
		backoff := heimdall.NewExponentialBackoff(100*time.Millisecond, 2*time.Second, 2, 50*time.Millisecond)
		return adapter.Doer(func(r *http.Request) (*http.Response, error) {
			client := &http.Client{Transport: base}
			if deadline, ok := r.Context().Deadline(); ok {
				client.Timeout = time.Until(deadline)
			}
			return httpclient.NewClient(httpclient.WithHTTPClient(client), httpclient.WithRetrier(heimdall.NewRetrier(backoff)),
				httpclient.WithRetryCount(3)).Do(r.WithContext(context.WithoutCancel(r.Context())))
		}), nil
	}
}
