package redial_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/integrations/redial"
)

// What the guide and the comment of the package show, as it stands there.
func guideKeep(ctx context.Context, d *lull.Dependency, dial func(context.Context) (net.Conn, error), read func(context.Context, net.Conn) error) error {
	g, err := redial.New(d, redial.Config{})
	if err != nil {
		return err
	}
	return redial.Keep(ctx, g, dial, func(ctx context.Context, c net.Conn) error {
		return read(ctx, c) // until it ends
	})
}

var errEnded = errors.New("the feed has ended")

func packageComment(ctx context.Context, dial func(context.Context) (net.Conn, error)) error {
	d, err := lull.NewDependency("gateway", lull.Policy{})
	if err != nil {
		return err
	}
	g, err := redial.New(d, redial.Config{})
	if err != nil {
		return err
	}
	return redial.Keep(ctx, g, dial, func(ctx context.Context, c net.Conn) error {
		return errors.Join(c.Close(), lull.Permanent(errEnded))
	})
}

// A server that takes connections, and ends when the first has been used.
func TestWhatTheDocsShow(t *testing.T) {
	d, err := lull.NewDependency("gateway", lull.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	for name, keep := range map[string]func(context.Context, func(context.Context) (net.Conn, error)) error{
		"guide": func(ctx context.Context, dial func(context.Context) (net.Conn, error)) error {
			return guideKeep(ctx, d, dial, func(_ context.Context, c net.Conn) error { return errors.Join(c.Close(), lull.Permanent(errEnded)) })
		},
		"package": packageComment,
	} {
		synctest.Test(t, func(t *testing.T) {
			dialled := 0
			err := keep(t.Context(), func(context.Context) (net.Conn, error) {
				dialled++
				c, server := net.Pipe()
				server.Close()
				return c, nil
			})
			if dialled != 1 || !errors.Is(err, errEnded) {
				t.Errorf("%s: %v after %d dials", name, err, dialled)
			}
		})
	}
}
