package every_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/integrations/every"
)

// What the comment of the package shows, as it stands there.
func packageComment(ctx context.Context, hostname string, report func()) error {
	return every.Run(ctx, "report "+hostname, time.Hour, func(ctx context.Context) { report() })
}

func TestWhatTheDocsShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		if err := packageComment(ctx, "host-7", stop); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
