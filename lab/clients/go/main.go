// Command go is the adapter of lull torture for clients in Go. Its argument is the name of the
// client.
package main

import (
	"io"
	"log"
	"net/http"

	avast "github.com/avast/retry-go/v5"
	cenkalti "github.com/cenkalti/backoff/v7"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/clients/internal/adapter"
	"github.com/lullgo/lull/lab/torture"
	"github.com/lullgo/lull/lullhttp"
)

func main() { adapter.Main(clients) }

// clients are the clients in Go, each as its manual shows it, with its own defaults.
var clients = adapter.Clients{
	"net-http": func(base *http.Transport) (torture.Doer, error) { return &http.Client{Transport: base}, nil },
	"lullhttp": func(base *http.Transport) (torture.Doer, error) {
		return lullhttp.NewClient(lull.Policy{}, lullhttp.WithBase(base))
	},
	"go-retryablehttp": func(base *http.Transport) (torture.Doer, error) {
		client := retryablehttp.NewClient()
		client.HTTPClient.Transport = base
		client.Logger = log.New(io.Discard, "", 0)
		return client.StandardClient(), nil
	},
	"failsafe-go": func(base *http.Transport) (torture.Doer, error) {
		policy := failsafehttp.NewRetryPolicyBuilder().Build()
		return &http.Client{Transport: failsafehttp.NewRoundTripper(base, policy)}, nil
	},
	// cenkalti and avast know no HTTP: what is a failure is what most programs around them say. Their READMEs read the
	// body within what is retried.
	"cenkalti-backoff": func(base *http.Transport) (torture.Doer, error) {
		client := &http.Client{Transport: base}
		return adapter.Doer(func(r *http.Request) (*http.Response, error) {
			return cenkalti.Retry(r.Context(), func() (*http.Response, error) { return failing(client, r) }, cenkalti.WithMaxTries(4))
		}), nil
	},
	"avast-retry-go": func(base *http.Transport) (torture.Doer, error) {
		client := &http.Client{Transport: base}
		return adapter.Doer(func(r *http.Request) (*http.Response, error) {
			return avast.NewWithData[*http.Response](avast.Context(r.Context()), avast.Attempts(4)).Do(func() (*http.Response, error) { return failing(client, r) })
		}), nil
	},
}

// failing makes a request with a body of its own and reads the answer. A status of 500 and above is an error.
func failing(client *http.Client, r *http.Request) (_ *http.Response, err error) {
	defer must.Catch(&err)
	again := r.Clone(r.Context())
	if r.GetBody != nil {
		again.Body = must.Have(r.GetBody())
	}
	resp := must.Have(client.Do(again))
	defer resp.Body.Close()
	must.Have(io.ReadAll(resp.Body))
	if resp.StatusCode >= 500 {
		must.Fail("status %d", resp.StatusCode)
	}
	return adapter.Status(resp.StatusCode), nil
}
