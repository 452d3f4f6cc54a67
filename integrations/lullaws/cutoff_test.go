package lullaws_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/middleware"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/integrations/lullaws"
	"github.com/lullgo/lull/internal/cutofftest"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) Do(r *http.Request) (*http.Response, error) { return f(r) }

// What ended an attempt is decided by who ended its context, whatever the HTTP client of the SDK returns then.
func TestWhoCutTheAttemptOff(t *testing.T) {
	cutofftest.Test(t, func(t *testing.T, p lull.Policy) cutofftest.Call {
		var attempt func(context.Context) error
		d := newDependency(t, p)
		client := sqs.New(sqs.Options{
			Region: "eu-central-1", BaseEndpoint: aws.String("http://127.0.0.1:1"), APIOptions: []func(*middleware.Stack) error{lullaws.Retry(d, nil)},
			HTTPClient:  roundTripper(func(r *http.Request) (*http.Response, error) { return nil, attempt(r.Context()) }),
			Credentials: aws.CredentialsProviderFunc(credentials),
		})
		return func(ctx context.Context, f func(context.Context) error) error {
			attempt = f
			return ask(ctx, client)
		}
	})
}
