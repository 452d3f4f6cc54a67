//go:build servers

package storetest_test

import (
	"context"
	"errors"
	"net"
	"net/rpc"
	"testing"
	"time"

	"github.com/lullgo/lull/server/idempotency"
	"github.com/lullgo/lull/server/idempotency/storetest"
)

// Remote is a Memory in the process of the test, called by net/rpc: the simplest
// store that outlives the servers.
type Remote struct{ m *idempotency.Memory }

type (
	ClaimArgs struct {
		Claim    idempotency.Claim
		Deadline time.Time // by the clock that both processes have; zero: none
	}
	ClaimReply struct {
		Answer idempotency.Answer
		Fault  int
	}
	OwnArgs struct {
		Key              string
		Token            idempotency.Token
		Lease, Retention time.Duration
		Record           []byte
	}
)

// Faults that are answers; errors cross net/rpc as text.
var faults = []error{nil, idempotency.ErrFenced, idempotency.ErrTooLarge}

func fault(err error) (int, error) {
	for i, f := range faults {
		if errors.Is(err, f) {
			return i, nil
		}
	}
	return 0, err
}

func (r Remote) Claim(a ClaimArgs, reply *ClaimReply) (err error) {
	ctx := context.Background()
	if !a.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, a.Deadline)
		defer cancel()
	}
	reply.Answer, err = r.m.Claim(ctx, a.Claim)
	return err
}

func (r Remote) Extend(a OwnArgs, f *int) (err error) {
	*f, err = fault(r.m.Extend(context.Background(), a.Key, a.Token, a.Lease, a.Retention))
	return err
}

func (r Remote) Complete(a OwnArgs, f *int) (err error) {
	*f, err = fault(r.m.Complete(context.Background(), a.Key, a.Token, a.Record, a.Retention))
	return err
}

func (r Remote) Release(a OwnArgs, f *int) (err error) {
	*f, err = fault(r.m.Release(context.Background(), a.Key, a.Token))
	return err
}

// remoteStore is its client.
type remoteStore struct{ c *rpc.Client }

func (s remoteStore) call(ctx context.Context, method string, args, reply any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	call := s.c.Go("Remote."+method, args, reply, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
		return call.Error
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s remoteStore) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Answer, error) {
	reply, end := new(ClaimReply), time.Time{}
	if t, ok := ctx.Deadline(); ok {
		end = t
	}
	if err := s.call(ctx, "Claim", ClaimArgs{c, end}, reply); err != nil {
		return idempotency.Answer{}, err
	}
	return reply.Answer, nil
}

func (s remoteStore) own(ctx context.Context, method string, a OwnArgs) error {
	f := new(int)
	if err := s.call(ctx, method, a, f); err != nil {
		return err
	}
	return faults[*f]
}

func (s remoteStore) Extend(ctx context.Context, key string, token idempotency.Token, lease, retention time.Duration) error {
	return s.own(ctx, "Extend", OwnArgs{Key: key, Token: token, Lease: lease, Retention: retention})
}

func (s remoteStore) Complete(ctx context.Context, key string, token idempotency.Token, record []byte, retention time.Duration) error {
	return s.own(ctx, "Complete", OwnArgs{Key: key, Token: token, Record: record, Retention: retention})
}

func (s remoteStore) Release(ctx context.Context, key string, token idempotency.Token) error {
	return s.own(ctx, "Release", OwnArgs{Key: key, Token: token})
}

// startServer returns the address of an empty store.
func startServer(t *testing.T) string {
	m, err := idempotency.NewMemory(idempotency.MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	b := &book{lines: map[string]int{}}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serveConn(t, conn, m, b)
		}
	}()
	return l.Addr().String()
}

func serveConn(t *testing.T, conn net.Conn, m *idempotency.Memory, b *book) {
	s := rpc.NewServer()
	session := &Session{m: m, book: b, open: map[string]open{}}
	if err := s.Register(Remote{m}); err != nil {
		t.Error(err)
	}
	if err := s.Register(session); err != nil {
		t.Error(err)
	}
	s.ServeConn(conn) // until the client is gone
	session.close()
}

func address(place string) (string, func(string) string) {
	return place, func(addr string) string { return addr }
}

func connect(t *testing.T, place string) idempotency.Store {
	c, err := rpc.Dial("tcp", place)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return remoteStore{c}
}

// What the comment of the package shows, as it stands there.

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) idempotency.Store {
		return connect(t, startServer(t))
	}, storetest.Options{Concurrent: 50})
}

func TestMatrix(t *testing.T) {
	t.Parallel()
	storetest.Matrix(t, storetest.Outliving{Place: startServer, Open: connect, Address: address})
}
