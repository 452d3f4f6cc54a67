//go:build servers

package lullgrpc_test

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lullgo/lull"
	lullgrpc "github.com/lullgo/lull/integrations/lullgrpc"
)

// What the guide and the comment of the package show, as it stands there.

func guideDial(target string, creds grpc.DialOption) error {
	opts, err := lullgrpc.DialOptions(lull.Policy{}, lullgrpc.WithIdempotent("/shop.Orders/Get"))
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient(target, append(opts, creds)...) // such as dns:///orders:443
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Invoke(context.Background(), "/shop.Orders/Get", wrapperspb.String("7"), new(wrapperspb.StringValue))
}

// The server answers, and does not know the method.
func TestWhatTheDocsShow(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serve(t, lis, new(echo))
	err = guideDial(lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if status.Code(err) != codes.Unimplemented {
		t.Error(err)
	}
}
