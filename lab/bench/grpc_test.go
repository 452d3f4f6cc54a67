package bench

import (
	"context"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// overGRPC makes callers of dialers: an attempt is the server's, and one that fails is UNAVAILABLE.
func overGRPC(dialers []dialer) (callers []caller) {
	for _, d := range dialers {
		callers = append(callers, d.caller())
	}
	return callers
}

func (d dialer) caller() caller {
	return caller{d.name, d.does, errBlip, func() bindOp {
		var attempt op
		call, stop := d.connect(func(ctx context.Context) error {
			err := attempt(ctx)
			if err == nil || ctx.Err() != nil {
				return err
			}
			return status.Error(codes.Unavailable, err.Error())
		})
		return func(ctx context.Context, op op) func() error {
			attempt = op
			context.AfterFunc(ctx, stop) // a bubble ends when nothing runs in it
			return call.bind(ctx)
		}
	}}
}

// What is measured stops its server: a bubble in which something is left fails.
func TestServersStop(t *testing.T) {
	for _, s := range dialing(dialers()) {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bind := s.start(t.Cleanup)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if err := bind(ctx)(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
