package migrate

import (
	"context"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/preset"
)

// What the sidecar does, as preset has it: the client makes one attempt, and Envoy repeats it.
func istioBefore(t *testing.T, b *backend) func(context.Context) error {
	sidecar, err := lullhttp.NewClient(istio(t), lullhttp.WithBase(b.transport()))
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context) error { return fetch(ctx, sidecar) }
}

func istioAfter(t *testing.T, b *backend) func(context.Context) error {
	transport := b.transport()
	client, err := lullhttp.NewClient(lull.Policy{}, lullhttp.WithBase(transport))
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context) error { return fetch(ctx, client) }
}

func istio(t *testing.T) lull.Policy {
	p, err := preset.Find("istio")
	if err != nil {
		t.Fatal(err)
	}
	return p.Policy
}
