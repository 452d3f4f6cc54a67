//go:build servers

package proxy_test

import (
	"context"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/proxy"
)

func serve(ctx context.Context) error {
	p, err := proxy.New(proxy.Config{Upstreams: map[string]proxy.Upstream{
		"payments": {Listen: "127.0.0.1:9001", To: []string{"https://payments.example"}},
	}}, proxy.Wiring{})
	if err != nil {
		return err
	}
	return p.Serve(ctx)
}

// The lines of the package comment open a door, and end when their context does.
func TestPackageComment(t *testing.T) {
	ctx, end := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer end()
	must.Succeed(serve(ctx))
}
