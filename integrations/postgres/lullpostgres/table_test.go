package lullpostgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/internal/check"
)

func TestConfig(t *testing.T) {
	for field, c := range map[string]Config{
		"Table": {Table: `x"; DROP TABLE y`}, "Table ": {Table: "a.b.c"}, "Table  ": {Table: strings.Repeat("x", 51)}, "Isolation": {Isolation: 99},
	} {
		if _, err := newStore(poolDB{}, c); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(field)+" is ") {
			t.Errorf("a bad %s: %v", field, err)
		}
	}
	if _, err := New(nil, Config{}); err == nil {
		t.Error("New(nil) is fine")
	}
	if _, err := NewSQL(nil, Config{}); err == nil {
		t.Error("NewSQL(nil) is fine")
	}
	for d, want := range map[time.Duration]int64{0: 0, 1: 1, 1000: 1, 1001: 2, -5: 0, 1<<63 - 1: 9223372036854776} {
		check.Equal(t, micros(d), want, "micros(%d)", d)
	}
}

// stuck is a driver that heeds no context: from some call on it stands still, like lib/pq when
// its server does not answer.
type stuck struct {
	at    string
	until chan struct{}
}

func (s stuck) call(name string) {
	if name == s.at {
		<-s.until
	}
}

func (s stuck) Connect(context.Context) (driver.Conn, error) { s.call("connect"); return s, nil }
func (s stuck) Driver() driver.Driver                        { return nil }
func (s stuck) Begin() (driver.Tx, error)                    { s.call("begin"); return s, nil }
func (s stuck) Prepare(string) (driver.Stmt, error) {
	s.call("statement")
	return nil, errors.New("no")
}
func (s stuck) Commit() error   { s.call("commit"); return nil }
func (s stuck) Rollback() error { s.call("rollback"); return nil }
func (s stuck) Close() error    { return nil }

// No call lasts longer than its context, whatever the driver does, and no transaction that is begun
// too late stays open.
func TestADriverThatHeedsNoContext(t *testing.T) {
	for at, call := range map[string]func(context.Context, sqlDB) error{
		"connect":   func(ctx context.Context, d sqlDB) error { return exec(ctx, d, "x") },
		"statement": func(ctx context.Context, d sqlDB) error { return d.row(ctx, "x", nil, nil) },
		"begin":     func(ctx context.Context, d sqlDB) error { _, err := d.begin(ctx, 0); return err },
		"commit": func(ctx context.Context, d sqlDB) error {
			tx, err := d.begin(ctx, 0)
			if err != nil {
				return err
			}
			return tx.commit(ctx)
		},
		"rollback": func(ctx context.Context, d sqlDB) error {
			tx, err := d.begin(ctx, 0)
			if err != nil {
				return err
			}
			return tx.rollback(ctx)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := stuck{at, make(chan struct{})}
			db := sql.OpenDB(s)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			begun := time.Now()
			if err := call(ctx, sqlDB{sqlQuerier{db}, db}); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Second {
				t.Errorf("a driver that stands still at %s: %v after %v", at, err, time.Since(begun))
			}
			close(s.until)
			synctest.Wait()
			check.Equal(t, db.Stats().InUse, 0, "connections in use after it stood still at %s", at)
			db.Close()
		})
	}
}

// An error after the end of a context is that of the context, too, whatever the driver makes of it.
func TestTheEndOfAContextIsInTheError(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	own := errors.New("canceling statement due to user request")
	if err := new(Store).explain(ended, "Claim", own); !errors.Is(err, context.Canceled) || !errors.Is(err, own) {
		t.Errorf("%v, want both errors", err)
	}
}
