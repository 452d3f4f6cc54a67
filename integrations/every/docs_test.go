package every_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/integrations/every"
	"github.com/lullgo/lull/internal/check"
)

// What the comment of the package shows, as it stands there.
func packageComment(ctx context.Context, hostname string, report func()) error {
	return every.Run(ctx, "report "+hostname, time.Hour, func(ctx context.Context) { report() })
}

func TestWhatTheDocsShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		check.Is(t, packageComment(ctx, "host-7", stop), context.Canceled, "error")
	})
}
