package lullgrpc_test

import (
	"google.golang.org/grpc"

	"github.com/lullgo/lull"
	lullgrpc "github.com/lullgo/lull/integrations/lullgrpc"
)

// What the guide shows must compile as it stands there; it calls a host that does not exist, so
// it is not run.
func guideDial(creds grpc.DialOption) error {
	opts, err := lullgrpc.DialOptions(lull.Policy{}, lullgrpc.WithIdempotent("/shop.Orders/Get"))
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient("dns:///orders:443", append(opts, creds)...)
	if err != nil {
		return err
	}
	return conn.Close()
}

var _ = guideDial
