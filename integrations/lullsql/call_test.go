package lullsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/internal/sqlcall"
)

var (
	// errMute is the error of a driver that says nothing, as go-sql-driver's ErrInvalidConn.
	errMute = errors.New("invalid connection")
	// retried repeats at once, five times.
	retried = lull.Policy{Attempts: 6, Budget: budget.Config{Stock: 10}, Backoff: backoff.Schedule{Kind: backoff.Immediate}}
)

// first makes f fail the first n times.
func first(n int, f func(*fakeConn) error) func(*fakeConn) error {
	return func(c *fakeConn) error {
		if n--; n < 0 {
			return nil
		}
		return f(c)
	}
}

func exec(t *testing.T, d *lull.Dependency, db *sql.DB) error {
	_, err := Exec(t.Context(), d, db, "")
	return err
}

func read(t *testing.T, d *lull.Dependency, db *sql.DB) error {
	_, err := Read(t.Context(), d, db, func(ctx context.Context, conn *sql.Conn) (int, error) {
		_, err := conn.ExecContext(ctx, "")
		return 0, err
	})
	return err
}

func tx(t *testing.T, d *lull.Dependency, db *sql.DB) error {
	return Tx(t.Context(), d, db, nil, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "")
		return err
	})
}

type state string

func (s state) Error() string    { return "state " + string(s) }
func (s state) SQLState() string { return string(s) }

// What is repeated after which failure of a statement: the table of the package comment.
func TestWhatIsRepeated(t *testing.T) {
	broken := func(c *fakeConn) error { c.broken = true; return errMute }
	always := func(err error) func(*fakeConn) error { return func(*fakeConn) error { return err } }
	for _, x := range []struct {
		name     string
		fails    func(*fakeConn) error
		exec, tx error // nil: repeated, until it succeeds
	}{
		{"bad connection", always(driver.ErrBadConn), lull.ErrNotIdempotent, nil},
		{"deadlock", always(state("40P01")), nil, nil},
		{"too many connections", always(state("53300")), nil, nil},
		{"connection broke", broken, lull.ErrNotIdempotent, nil},
		{"server ends", always(state("57P01")), lull.ErrNotIdempotent, nil},
		{"outcome unknown", always(state("40003")), lull.ErrPermanent, lull.ErrPermanent},
		{"constraint", always(state("23505")), lull.ErrPermanent, lull.ErrPermanent},
		{"nothing known", always(errors.New("what?")), lull.ErrPermanent, lull.ErrPermanent},
		{"marked", always(lull.Permanent(driver.ErrBadConn)), lull.ErrPermanent, lull.ErrPermanent},
	} {
		for name, call := range map[string]struct {
			call func(*testing.T, *lull.Dependency, *sql.DB) error
			want error
		}{"exec": {exec, x.exec}, "read": {read, x.tx}, "tx": {tx, x.tx}} {
			f := &fake{exec: first(1, x.fails)}
			d := newDependency(t, retried)
			err := call.call(t, d, f.open(t, d))
			if !errors.Is(err, call.want) || (err == nil) != (call.want == nil) {
				t.Errorf("%s, %s: %v, want %v", x.name, name, err, call.want)
			}
		}
	}
}

// Dead connections of the pool are passed over, as database/sql does it. That is no retry.
func TestDeadConnectionsArePassedOver(t *testing.T) {
	bad := func(*fakeConn) error { return driver.ErrBadConn }
	const most = 2 // as many as database/sql
	f := &fake{exec: first(most, bad)}
	d := newDependency(t, lull.Policy{Attempts: 1})
	if err := read(t, d, f.open(t, d)); err != nil || f.dials != most+1 {
		t.Errorf("read: %d dials, %v", f.dials, err)
	}
	f.exec = first(most+1, bad)
	if err := read(t, d, f.open(t, d)); !errors.Is(err, lull.ErrAttemptsExhausted) {
		t.Errorf("read: %v", err)
	}
	f = &fake{exec: first(1, bad)} // a driver that returns it too often
	if err := exec(t, d, f.open(t, d)); err == nil || f.dials != 1 {
		t.Errorf("exec: %d dials, %v", f.dials, err)
	}
	f, begun := &fake{}, 0
	f.begin = func() error {
		if begun++; begun <= most {
			return driver.ErrBadConn
		}
		return nil
	}
	if err := tx(t, d, f.open(t, d)); err != nil || begun != most+1 {
		t.Errorf("tx: %d begun, %v", begun, err)
	}
}

// After a COMMIT that was not answered nothing is repeated, except what may be carried out twice.
func TestCommit(t *testing.T) {
	for _, x := range []struct {
		name       string
		fails      error
		broken     bool
		want       error // of a transaction
		idempotent bool  // it succeeds when it may be carried out twice
	}{
		{"broken", errMute, true, ErrOutcomeUnknown, true},
		{"a driver's bad connection", driver.ErrBadConn, false, ErrOutcomeUnknown, true},
		{"server ends", state("57P01"), false, ErrOutcomeUnknown, true},
		{"nothing known", errors.New("what?"), false, ErrOutcomeUnknown, false},
		{"timeout", context.DeadlineExceeded, false, ErrOutcomeUnknown, false}, // no other call is answered
		{"undone", state("40001"), false, nil, true},
		{"outcome unknown", state("40003"), false, ErrOutcomeUnknown, false},
		{"constraint", state("23505"), false, lull.ErrPermanent, false},
	} {
		commits := 0
		script := func() *fake {
			commits = 0
			return &fake{commit: func(c *fakeConn) error {
				if commits++; commits > 1 {
					return nil
				}
				c.broken = x.broken
				return x.fails
			}}
		}
		d := newDependency(t, retried)
		err := tx(t, d, script().open(t, d))
		if !errors.Is(err, x.want) || (err == nil) != (x.want == nil) || x.want != nil && (commits != 1 || !errors.Is(err, x.fails)) {
			t.Errorf("%s: %v after %d commits, want %v", x.name, err, commits, x.want)
		}
		err = Tx(t.Context(), d, script().open(t, d), nil, func(context.Context, *sql.Tx) error { return nil }, lull.Idempotent())
		if (err == nil) != x.idempotent {
			t.Errorf("%s, idempotent: %v after %d commits", x.name, err, commits)
		}
	}
}

// A transaction whose time is over before its COMMIT is not committed.
func TestNoCommitAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{commit: func(*fakeConn) error { t.Error("committed"); return nil }}
		d := newDependency(t, lull.Policy{AttemptTimeout: time.Second})
		db := f.open(t, d)
		err := Tx(t.Context(), d, db, nil, func(ctx context.Context, tx *sql.Tx) error {
			<-ctx.Done()
			return nil
		})
		e, ok := errors.AsType[*lull.Error](err)
		if !ok || e.Reason != engine.Unanswered || !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		db.Close()
		synctest.Wait()
	})
}

// waits counts the retries for which a call has waited.
type waits struct{ n int }

func (w *waits) Observe(_ context.Context, e lull.Event) {
	if e.Kind == event.RetryScheduled {
		w.n++
	}
}

// Only the first conflict of a call is repeated at once.
func TestConflictsAreRepeatedAtOnceOnce(t *testing.T) {
	waiting := retried
	waiting.Backoff = backoff.Schedule{Kind: backoff.Constant, Base: time.Millisecond}
	deadlock := func(*fakeConn) error { return state("40P01") }
	for _, x := range []struct{ conflicts, waits int }{{1, 0}, {2, 1}, {3, 2}} {
		var w waits
		d, err := lull.NewDependency("db", waiting, lull.WithRand(seed.Source(t)), lull.WithObserver(&w))
		if err != nil {
			t.Fatal(err)
		}
		if err := tx(t, d, (&fake{exec: first(x.conflicts, deadlock)}).open(t, d)); err != nil || w.n != x.waits {
			t.Errorf("%d conflicts: %d waits, %v; want %d", x.conflicts, w.n, err, x.waits)
		}
	}
}

// A COMMIT that is not answered before the attempt is over is no timeout that may be repeated, although others are answered.
func TestACommitThatOutlastsItsAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		commits := 0
		f := &fake{commit: func(*fakeConn) error { commits++; time.Sleep(2 * time.Second); return errMute }}
		d := newDependency(t, lull.Policy{Attempts: 6, AttemptTimeout: time.Second, Timeouts: engine.TimeoutsAlways, Deadline: time.Minute})
		db := f.open(t, d)
		err := tx(t, d, db)
		if !errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, errMute) || commits != 1 {
			t.Errorf("%v after %d commits", err, commits)
		}
		db.Close()
		synctest.Wait()
	})
}

// An error that is an answer ends the call and is returned as it is.
func TestNoRows(t *testing.T) {
	f := &fake{}
	d := newDependency(t, lull.Policy{})
	_, err := Read(t.Context(), d, f.open(t, d), func(context.Context, *sql.Conn) (int, error) { return 0, sql.ErrNoRows })
	if err != sql.ErrNoRows {
		t.Error(err)
	}
}

// An error of the caller's own rolls back and ends the call. So does a panic.
func TestTheCallersOwnError(t *testing.T) {
	f := &fake{commit: func(*fakeConn) error { t.Error("committed"); return nil }}
	d := newDependency(t, retried)
	db := f.open(t, d)
	own := errors.New("not enough money")
	runs := 0
	err := Tx(t.Context(), d, db, nil, func(context.Context, *sql.Tx) error { runs++; return own })
	if !errors.Is(err, own) || runs != 1 {
		t.Errorf("%v after %d runs", err, runs)
	}
	func() {
		defer func() { recover() }()
		Tx(t.Context(), d, db, nil, func(context.Context, *sql.Tx) error { panic("x") })
	}()
	if s := db.Stats(); s.InUse != 0 {
		t.Errorf("%d connections are kept after a panic", s.InUse)
	}
}

// The operation's name is the caller's, if it gives one.
func TestOperations(t *testing.T) {
	f := &fake{exec: func(*fakeConn) error { return state("23505") }}
	d := newDependency(t, lull.Policy{})
	db := f.open(t, d)
	_, byRead := Read(t.Context(), d, db, func(ctx context.Context, c *sql.Conn) (int, error) {
		_, err := c.ExecContext(ctx, "")
		return 0, err
	}, lull.Operation("list"))
	byTx := Tx(t.Context(), d, db, nil, func(ctx context.Context, tx *sql.Tx) error { return state("23505") }, lull.Operation("pay"))
	for want, err := range map[string]error{"exec": exec(t, d, db), "read": read(t, d, db), "tx": tx(t, d, db), "list": byRead, "pay": byTx} {
		if e, ok := errors.AsType[*lull.Error](err); !ok || e.Operation != want {
			t.Errorf("%v: want the operation %s", err, want)
		}
	}
}

func TestClassify(t *testing.T) {
	if v := Classify(sqlcall.Unanswered(driver.ErrBadConn, false)); v != (lull.Verdict{Code: engine.CodeOutcomeUnknown}) {
		t.Errorf("%+v", v)
	}
	if v := Classify(lull.RetryAfter(state("53300"), time.Second)); v.Kind != lull.KindRateLimited || v.After != time.Second || !v.NeverSent {
		t.Errorf("%+v: a mark adds to what is known", v)
	}
	if v := Classify(context.DeadlineExceeded); v.Code != engine.CodeTimeout {
		t.Errorf("%+v", v)
	}
}

// seen keeps the errors of calls that an observer gets.
type seen struct{ errs []error }

func (s *seen) Observe(_ context.Context, e lull.Event) {
	if e.Kind == event.CallEnded {
		s.errs = append(s.errs, e.Err)
	}
}

// Observers get the error with which a call has ended, and none if it has succeeded.
func TestObserversGetTheError(t *testing.T) {
	plain := func(t *testing.T, _ *lull.Dependency, db *sql.DB) error { return db.PingContext(t.Context()) }
	calls := map[string]func(*testing.T, *lull.Dependency, *sql.DB) error{"exec": exec, "read": read, "tx": tx, "connect": plain}
	for name, call := range calls {
		for _, fails := range []error{state("23505"), nil} {
			var s seen
			d, err := lull.NewDependency("db", lull.Policy{}, lull.WithRand(seed.Source(t)), lull.WithObserver(&s))
			if err != nil {
				t.Fatal(err)
			}
			f := &fake{exec: func(*fakeConn) error { return fails }}
			if name == "connect" {
				f.dial = func(context.Context) error { return fails }
			}
			if err := call(t, d, f.open(t, d)); (err == nil) != (fails == nil) {
				t.Errorf("%s: %v", name, err)
			}
			for _, err := range s.errs {
				if !errors.Is(err, fails) {
					t.Errorf("%s: observers get %v, want %v", name, err, fails)
				}
			}
			if len(s.errs) != 1 {
				t.Errorf("%s: observers get %q, want one", name, s.errs)
			}
		}
	}
}
