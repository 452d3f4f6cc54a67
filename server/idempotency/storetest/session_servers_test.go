//go:build servers

package storetest_test

import (
	"context"
	"errors"
	"net/rpc"
	"sync"
	"testing"
	"time"

	"github.com/lullgo/lull/server/idempotency"
	"github.com/lullgo/lull/server/idempotency/storetest"
)

// Transactions write into a book: lines, counted by their names.
type book struct {
	mu    sync.Mutex
	lines map[string]int
}

// Session is one connection with transactions, as a database has them: what is open
// when the connection breaks is rolled back.
type Session struct {
	m    *idempotency.Memory
	book *book

	mu     sync.Mutex
	open   map[string]open // by key
	closed bool
}

type open struct {
	claim   idempotency.Claim
	resumed bool
	lines   []string
}

type WriteArgs struct{ Key, Line string }

func (s *Session) Begin(c idempotency.Claim, reply *ClaimReply) error {
	c.Lease = time.Hour // a transaction lasts as long as it lasts
	a, err := s.m.Claim(context.Background(), c)
	if err != nil {
		return err
	}
	reply.Answer = a
	if a.State != idempotency.Claimed {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	tx := open{claim: c, resumed: a.Resumed}
	if s.closed { // the connection broke meanwhile
		s.rollback(tx)
		return nil
	}
	s.open[c.Key] = tx
	return nil
}

func (s *Session) Write(a WriteArgs, _ *int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx, ok := s.open[a.Key]
	if !ok {
		return errors.New("no transaction")
	}
	tx.lines = append(tx.lines, a.Line)
	s.open[a.Key] = tx
	return nil
}

func (s *Session) Commit(a OwnArgs, f *int) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx, ok := s.open[a.Key]
	if !ok {
		return errors.New("no transaction")
	}
	delete(s.open, a.Key)
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	*f, err = fault(s.m.Complete(context.Background(), a.Key, tx.claim.Token, a.Record, tx.claim.Retention))
	if err != nil || *f != 0 {
		s.rollback(tx)
		return err
	}
	for _, l := range tx.lines {
		s.book.lines[l]++
	}
	return nil
}

func (s *Session) Rollback(key string, _ *int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if tx, ok := s.open[key]; ok {
		delete(s.open, key)
		s.rollback(tx)
	}
	return nil
}

func (s *Session) rollback(tx open) {
	c := tx.claim
	if tx.resumed {
		s.m.Extend(context.Background(), c.Key, c.Token, 0, c.Retention)
	} else {
		s.m.Release(context.Background(), c.Key, c.Token)
	}
}

func (s *Session) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for key, tx := range s.open {
		delete(s.open, key)
		s.rollback(tx)
	}
}

func (s *Session) Count(line string, n *int) error {
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	*n = s.book.lines[line]
	return nil
}

// txStore is the client of a Session.
type txStore struct{ remoteStore }

type txKey struct{}

func (s txStore) Transact(ctx context.Context, c idempotency.Claim, run func(context.Context, bool) ([]byte, bool)) (idempotency.Answer, error) {
	reply, zero := new(ClaimReply), new(int)
	if err := ctx.Err(); err != nil {
		return idempotency.Answer{}, err
	}
	if err := s.c.Call("Session.Begin", c, reply); err != nil || reply.Answer.State != idempotency.Claimed {
		return reply.Answer, err
	}
	committed := false
	defer func() {
		if !committed {
			s.c.Call("Session.Rollback", c.Key, zero)
		}
	}()
	record, keep := run(context.WithValue(ctx, txKey{}, c.Key), reply.Answer.Resumed)
	if !keep {
		return reply.Answer, nil
	}
	committed = true
	f := new(int)
	if err := s.c.Call("Session.Commit", OwnArgs{Key: c.Key, Record: record}, f); err != nil {
		return idempotency.Answer{}, err
	}
	return reply.Answer, faults[*f]
}

func openTx(t *testing.T, place string) idempotency.Store {
	return txStore{connect(t, place).(remoteStore)}
}

func TestTransactionalMatrix(t *testing.T) {
	t.Parallel()
	storetest.Matrix(t, storetest.Outliving{
		Place:         startServer,
		Open:          openTx,
		Transactional: true,
		Effect: func(ctx context.Context, s idempotency.Store, name string) error {
			return s.(txStore).c.Call("Session.Write", WriteArgs{ctx.Value(txKey{}).(string), name}, new(int))
		},
		Effects: func(t *testing.T, place, name string) int {
			c, err := rpc.Dial("tcp", place)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			n := new(int)
			if err := c.Call("Session.Count", name, n); err != nil {
				t.Fatal(err)
			}
			return *n
		},
	})
}
