package migrate

import (
	"context"
	"testing"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/lullhttp"
)

func retryablehttpBefore(t *testing.T, b *backend) func(context.Context) error {
	transport := b.transport()
	retrying := retryablehttp.NewClient() // five attempts, waits of 1, 2, 4 and 8 s
	retrying.HTTPClient.Transport = transport
	retrying.Logger = nil
	client := retrying.StandardClient()
	return fetching(t, client, nil)
}

func retryablehttpAfter(t *testing.T, b *backend) func(context.Context) error {
	transport := b.transport()
	client, err := lullhttp.NewClient(lull.Policy{}, lullhttp.WithBase(transport))
	return fetching(t, client, err)
}
