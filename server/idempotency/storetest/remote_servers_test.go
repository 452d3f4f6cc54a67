//go:build servers

package storetest_test

import (
	"context"
	"errors"
	"net"
	"net/rpc"
	"sync"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/idempotency"
	"github.com/lullgo/lull/server/idempotency/storetest"
)

// A backend is a MemoryStore in the process of the test, and a book into which transactions write lines. With
// a Session for each connection, called by net/rpc, it is the simplest store that outlives the servers.
type backend struct {
	*idempotency.MemoryStore
	mu   sync.Mutex
	book map[string]int // how often each line was written
}

// Session is one connection. Its transactions are as those of a database: what is open when the connection breaks is
// rolled back.
type Session struct {
	*backend
	open   map[string]transaction // by key
	closed bool
}

type transaction struct {
	claim   idempotency.Claim
	resumed bool
	lines   []string
}

// Call is a call of a method; which fields it has depends on that.
type Call struct {
	Method           string
	Claim            idempotency.Claim
	Deadline         time.Time // by the clock that both processes have; zero: none
	Key, Line        string
	Token            idempotency.FencingToken
	Lease, Retention time.Duration
	Record           []byte
}

type Reply struct {
	Answer idempotency.ClaimResult
	Fault  int // of faults
	Lines  int
}

// Faults that are answers; errors cross net/rpc as text.
var faults = []error{nil, idempotency.ErrFenced, idempotency.ErrTooLarge}

// Do carries out a call.
func (s *Session) Do(c Call, r *Reply) error {
	err := s.do(c, r)
	for i, f := range faults {
		if errors.Is(err, f) {
			r.Fault = i
			return nil
		}
	}
	return err
}

func (s *Session) do(c Call, r *Reply) (err error) {
	ctx := context.Background()
	switch c.Method {
	case "Claim":
		if !c.Deadline.IsZero() {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, c.Deadline)
			defer cancel()
		}
		r.Answer, err = s.Claim(ctx, c.Claim)
		return err
	case "Extend":
		return s.Extend(ctx, c.Key, c.Token, c.Lease, c.Retention)
	case "Complete":
		return s.Complete(ctx, c.Key, c.Token, c.Record, c.Retention)
	case "Release":
		return s.Release(ctx, c.Key, c.Token)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	tx, ok := s.open[c.Key]
	switch {
	case c.Method == "Count":
		r.Lines = s.book[c.Line]
		return nil
	case c.Method == "Begin":
		c.Claim.Lease = time.Hour // a transaction lasts as long as it lasts
		if r.Answer, err = s.Claim(ctx, c.Claim); err != nil || r.Answer.State != idempotency.Claimed {
			return err
		}
		tx = transaction{claim: c.Claim, resumed: r.Answer.Resumed}
		if s.closed { // the connection broke meanwhile
			s.rollback(tx)
			return nil
		}
		s.open[c.Key] = tx
		return nil
	case !ok:
		return errors.New("no transaction")
	case c.Method == "Write":
		tx.lines = append(tx.lines, c.Line)
		s.open[c.Key] = tx
		return nil
	}
	delete(s.open, c.Key)
	if c.Method == "Rollback" {
		s.rollback(tx)
		return nil
	}
	if err = s.Complete(ctx, c.Key, tx.claim.Token, c.Record, tx.claim.Retention); err != nil {
		s.rollback(tx)
		return err
	}
	for _, l := range tx.lines {
		s.book[l]++
	}
	return nil
}

func (s *Session) rollback(tx transaction) {
	c, ctx := tx.claim, context.Background()
	if tx.resumed {
		s.Extend(ctx, c.Key, c.Token, 0, c.Retention)
	} else {
		s.Release(ctx, c.Key, c.Token)
	}
}

// close is called when the connection has ended.
func (s *Session) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, tx := range s.open {
		s.rollback(tx)
	}
}

// remote is the client of a Session.
type remote struct{ c *rpc.Client }

func (s remote) call(ctx context.Context, c Call) (idempotency.ClaimResult, error) {
	if err := ctx.Err(); err != nil {
		return idempotency.ClaimResult{}, err
	}
	c.Deadline, _ = ctx.Deadline()
	r := new(Reply)
	call := s.c.Go("Session.Do", c, r, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
	case <-ctx.Done():
		return idempotency.ClaimResult{}, ctx.Err()
	}
	if call.Error != nil {
		return idempotency.ClaimResult{}, call.Error
	}
	return r.Answer, faults[r.Fault]
}

func (s remote) own(ctx context.Context, c Call) error { _, err := s.call(ctx, c); return err }

func (s remote) Claim(ctx context.Context, c idempotency.Claim) (idempotency.ClaimResult, error) {
	return s.call(ctx, Call{Method: "Claim", Claim: c})
}

func (s remote) Extend(ctx context.Context, key string, token idempotency.FencingToken, lease, retention time.Duration) error {
	return s.own(ctx, Call{Method: "Extend", Key: key, Token: token, Lease: lease, Retention: retention})
}

func (s remote) Complete(ctx context.Context, key string, token idempotency.FencingToken, record []byte, retention time.Duration) error {
	return s.own(ctx, Call{Method: "Complete", Key: key, Token: token, Record: record, Retention: retention})
}

func (s remote) Release(ctx context.Context, key string, token idempotency.FencingToken) error {
	return s.own(ctx, Call{Method: "Release", Key: key, Token: token})
}

// transactor is a remote with transactions.
type transactor struct{ remote }

type txKey struct{}

func (s transactor) Transact(ctx context.Context, c idempotency.Claim, run func(context.Context, bool) ([]byte, bool)) (idempotency.ClaimResult, error) {
	a, err := s.call(ctx, Call{Method: "Begin", Key: c.Key, Claim: c})
	if err != nil || a.State != idempotency.Claimed {
		return a, err
	}
	end := Call{Method: "Rollback", Key: c.Key}
	defer func() {
		if end.Method == "Rollback" {
			s.own(context.Background(), end)
		}
	}()
	record, keep := run(context.WithValue(ctx, txKey{}, c.Key), a.Resumed)
	if !keep {
		return a, nil
	}
	end.Method, end.Record = "Commit", record
	return a, s.own(context.Background(), end)
}

// startServer returns the address of an empty store.
func startServer(t *testing.T) string {
	m := must.Have(idempotency.NewMemoryStore(idempotency.MemoryStoreConfig{}))
	l := must.Have(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { l.Close() })
	b := &backend{MemoryStore: m, book: map[string]int{}}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s, session := rpc.NewServer(), &Session{backend: b, open: map[string]transaction{}}
			if err := s.RegisterName("Session", session); err != nil {
				t.Error(err)
			}
			go func() {
				s.ServeConn(conn) // until the client is gone
				session.close()
			}()
		}
	}()
	return l.Addr().String()
}

func address(place string) (string, func(string) string) {
	return place, func(addr string) string { return addr }
}

func dial(t *testing.T, place string) remote {
	c := must.Have(rpc.Dial("tcp", place))
	t.Cleanup(func() { c.Close() })
	return remote{c}
}

func connect(t *testing.T, place string) idempotency.Store { return dial(t, place) }

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

func TestTransactionalMatrix(t *testing.T) {
	t.Parallel()
	storetest.Matrix(t, storetest.Outliving{
		Place:         startServer,
		Open:          func(t *testing.T, place string) idempotency.Store { return transactor{dial(t, place)} },
		Transactional: true,
		Effect: func(ctx context.Context, s idempotency.Store, name string) error {
			return s.(transactor).own(context.Background(), Call{Method: "Write", Key: ctx.Value(txKey{}).(string), Line: name})
		},
		Effects: func(t *testing.T, place, name string) int {
			r := new(Reply)
			must.Succeed(dial(t, place).c.Call("Session.Do", Call{Method: "Count", Line: name}, r))
			return r.Lines
		},
	})
}
