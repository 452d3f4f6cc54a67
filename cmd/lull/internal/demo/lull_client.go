package demo

import (
	"context"
	"net/http"

	"github.com/lullgo/lull/lullhttp"
)

// newLull is the client that this repository is about, used as anybody would.
func newLull(s setting, base http.RoundTripper, url string) (caller, error) {
	httpClient, err := lullhttp.NewClient(s.policy(), lullhttp.WithBase(base))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) bool { return get(ctx, httpClient, url) }, nil
}
