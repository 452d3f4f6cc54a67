package redial_test

import (
	"context"
	"net"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/redial"
)

// What the guide shows must compile as it stands there.
func guideKeep(ctx context.Context, d *lull.Dependency, dial func(context.Context) (net.Conn, error), read func(context.Context, net.Conn) error) error {
	g, err := redial.New(d, redial.Config{})
	if err != nil {
		return err
	}
	err = redial.Keep(ctx, g, dial, func(ctx context.Context, c net.Conn) error {
		return read(ctx, c) // until it ends
	})
	return err
}

var _ = guideKeep
