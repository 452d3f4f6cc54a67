package migrate

import (
	"context"
	"errors"
	"testing"

	"resty.dev/v3"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/lullhttp"
)

func restyBefore(t *testing.T, b *backend) func(context.Context) error {
	transport := b.transport()
	client := resty.New().SetTransport(transport).SetRetryCount(3).AddRetryConditions(resty.RetryConditionStatus5XX)
	return restyCall(t, client)
}

func restyAfter(t *testing.T, b *backend) func(context.Context) error {
	transport := b.transport()
	retrying, err := lullhttp.New(lull.Policy{Attempts: 4}, lullhttp.WithBase(transport))
	if err != nil {
		t.Fatal(err)
	}
	client := resty.New().SetTransport(retrying) // and no SetRetryCount: one layer retries
	return restyCall(t, client)
}

func restyCall(t *testing.T, client *resty.Client) func(context.Context) error {
	t.Cleanup(func() { client.Close() })
	return func(ctx context.Context) error {
		resp, err := client.R().SetContext(ctx).Get("http://ledger/balance")
		if err == nil && resp.IsStatusFailure() {
			err = errors.New(resp.Status())
		}
		return err
	}
}
