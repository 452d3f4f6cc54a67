package shipped

import (
	"context"
	"net"

	"github.com/lullgo/lull/internal/memnet"
)

type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// A wire is what requests go over: where a server listens, and how it is dialled.
type wire func() (net.Listener, dialer, error)

// inMemory is a network in memory, for virtual time.
func inMemory() (net.Listener, dialer, error) {
	return memnet.Listen(), memnet.Dial, nil
}
