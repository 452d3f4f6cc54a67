package lullsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

func TestNewConnectorRefuses(t *testing.T) {
	d := newDependency(t, lull.Policy{})
	for want, make := range map[string]func() (driver.Connector, error){
		"base is nil":           func() (driver.Connector, error) { return NewConnector(nil, d, Config{}) },
		"the dependency is nil": func() (driver.Connector, error) { return NewConnector(&fake{}, nil, Config{}) },
		"Config.MaxDials is -1: want a positive number, or 0 for the default of 4": func() (driver.Connector, error) { return NewConnector(&fake{}, d, Config{MaxDials: -1}) },
	} {
		if c, err := make(); c != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v; want an error with %q", c, err, want)
		}
	}
}

// database/sql dials three times for a statement whose dial is a bad connection.
func TestABadConnectionIsDialledOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{dial: func(context.Context) error { return driver.ErrBadConn }}
		alone := sql.OpenDB(f)
		defer alone.Close()
		if alone.ExecContext(t.Context(), ""); f.dials != 3 {
			t.Errorf("database/sql alone dials %d times", f.dials)
		}
		d := newDependency(t, lull.Policy{Attempts: 1})
		db := f.open(t, d)
		for name, call := range map[string]call{"sql.DB": ping, "lullsql.Exec": exec} {
			f.dials = 0
			err := call(t.Context(), d, db)
			e, ok := errors.AsType[*lull.Error](err)
			if f.dials != 1 || !ok || e.Attempts != 1 || errors.Is(err, driver.ErrBadConn) || !e.Verdict.NeverSent {
				t.Errorf("%s: %d dials, %v", name, f.dials, err)
			}
		}
	})
}

// A dial is repeated, even for a write: by the call that needs it, or by itself.
func TestADialIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, inner := range []error{driver.ErrBadConn, syscall.ECONNREFUSED, errors.New("what nobody knows")} {
			f := &fake{}
			f.dial = func(context.Context) error {
				if f.dials == 1 {
					return inner
				}
				return nil
			}
			d := newDependency(t, lull.Policy{Backoff: backoff.Schedule{Kind: backoff.Immediate}})
			db := f.open(t, d)
			if err := exec(t.Context(), d, db); err != nil || f.dials != 2 {
				t.Errorf("%v: %d dials, %v", inner, f.dials, err)
			}
			f.dials = 0
			db = f.open(t, newDependency(t, lull.Policy{Backoff: backoff.Schedule{Kind: backoff.Immediate}}))
			if _, err := db.ExecContext(t.Context(), ""); err != nil || f.dials != 2 {
				t.Errorf("%v, with the sql.DB: %d dials, %v", inner, f.dials, err)
			}
		}
	})
}

func TestTheErrorOfADialIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{dial: func(context.Context) error { return syscall.ECONNREFUSED }}
		d := newDependency(t, lull.Policy{Attempts: 1})
		if _, err := f.open(t, d).ExecContext(t.Context(), ""); !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error(), "db: connect: ") {
			t.Error(err)
		}
	})
}

// A call of lull.Do that uses the sql.DB is a call to the database, as far as its second attempts
// and those with a timeout of their own show it: their dials are no calls of their own.
func TestADialInACallIsAPartOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{dial: func(context.Context) error { return syscall.ECONNREFUSED }}
		d := newDependency(t, lull.Policy{Backoff: backoff.Schedule{Kind: backoff.Immediate}})
		db := f.open(t, d)
		err := lull.Run(t.Context(), d, func(ctx context.Context) error { _, err := db.ExecContext(ctx, ""); return err })
		if e, ok := errors.AsType[*lull.Error](err); !ok || f.dials != 2 || e.Attempts != 2 {
			t.Errorf("%d dials: %v", f.dials, err)
		}
	})
}

func TestNoDialThroughAnOpenCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		d := newDependency(t, lull.Policy{})
		db := f.open(t, d)
		d.Breaker().ForceOpen(d.Now())
		if _, err := db.ExecContext(t.Context(), ""); !errors.Is(err, lull.ErrCircuitOpen) || f.dials != 0 {
			t.Errorf("%d dials, %v", f.dials, err)
		}
	})
}

// Of ten dials four are in flight. One that waits for longer than its context lasts was never
// sent.
func TestDialsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowDials{}
		c := must.Have(NewConnector(slow, newDependency(t, lull.Policy{Attempts: 1}), Config{}))
		began := time.Now()
		var late atomic.Int32
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
				defer cancel()
				_, err := c.Connect(ctx)
				if err == nil {
					return
				}
				late.Add(1)
				if e, ok := errors.AsType[*lull.Error](err); !ok || !e.Verdict.NeverSent {
					t.Errorf("%v", err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(began); slow.most.Load() != DefaultMaxDials || took != 2*time.Second || late.Load() != 2 {
			t.Errorf("%d in flight at most, in %v, %d late", slow.most.Load(), took, late.Load())
		}
	})
}

// A panic of the driver goes up where it dials, and keeps no place.
func TestAPanicOfADial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, call := range map[string]call{"call": exec, "pool": ping} {
			f := &fake{}
			f.dial = func(context.Context) error {
				if f.dials == 1 {
					panic("dial")
				}
				return nil
			}
			d := newDependency(t, lull.Policy{})
			c := must.Have(NewConnector(f, d, Config{MaxDials: 1}))
			db := sql.OpenDB(c)
			defer db.Close()
			func() {
				defer func() {
					check.Equal(t, recover(), "dial", "%s: panicked with", name)
				}()
				call(t.Context(), d, db)
			}()
			check.Is(t, call(t.Context(), d, db), nil, "%s: afterwards", name)
		}
	})
}

// slowDials is a connector that takes a second, whatever its context says.
type slowDials struct{ inFlight, most atomic.Int32 }

func (s *slowDials) Driver() driver.Driver { return nil }

func (s *slowDials) Connect(context.Context) (driver.Conn, error) {
	n := s.inFlight.Add(1)
	defer s.inFlight.Add(-1)
	for m := s.most.Load(); n > m && !s.most.CompareAndSwap(m, n); m = s.most.Load() {
	}
	time.Sleep(time.Second)
	return nil, nil
}

func TestCloseIsPassedOn(t *testing.T) {
	f := &fake{}
	d := newDependency(t, lull.Policy{})
	f.open(t, d).Close()
	if !f.closed {
		t.Error("the driver's connector was not closed")
	}
	c := must.Have(NewConnector(&slowDials{}, d, Config{}))
	if _, ok := c.(interface{ Close() error }); ok {
		t.Error("a connector is a Closer although the driver's is not")
	}
}
