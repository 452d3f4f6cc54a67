package lullsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/driver/inbound"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/cutofftest"
	"github.com/lullgo/lull/internal/must"
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

// exec, read and tx make a call with one statement.

func exec(ctx context.Context, d *lull.Dependency, db *sql.DB, _ ...lull.CallOption) error {
	_, err := Exec(ctx, d, db, "")
	return err
}

func read(ctx context.Context, d *lull.Dependency, db *sql.DB, opts ...lull.CallOption) error {
	_, err := Read(ctx, d, db, func(ctx context.Context, conn *sql.Conn) (int, error) {
		_, err := conn.ExecContext(ctx, "")
		return 0, err
	}, opts...)
	return err
}

func tx(ctx context.Context, d *lull.Dependency, db *sql.DB, opts ...lull.CallOption) error {
	return Tx(ctx, d, db, nil, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "")
		return err
	}, opts...)
}

// ping makes no call. Its dial is one.
func ping(ctx context.Context, _ *lull.Dependency, db *sql.DB, _ ...lull.CallOption) error {
	return db.PingContext(ctx)
}

type call func(context.Context, *lull.Dependency, *sql.DB, ...lull.CallOption) error

var (
	calls        = map[string]call{"exec": exec, "read": read, "tx": tx}
	callsAndDial = map[string]call{"exec": exec, "read": read, "tx": tx, "connect": ping}
)

type state string

func (s state) Error() string    { return "state " + string(s) }
func (s state) SQLState() string { return string(s) }

// What is repeated after which failure of a statement: the table of the package comment.
func TestWhatIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
			for name, call := range calls {
				want := x.tx
				if name == "exec" {
					want = x.exec
				}
				f := &fake{exec: first(1, x.fails)}
				d := newDependency(t, retried)
				err := call(t.Context(), d, f.open(t, d))
				if !errors.Is(err, want) || (err == nil) != (want == nil) {
					t.Errorf("%s, %s: %v, want %v", x.name, name, err, want)
				}
			}
		}
	})
}

// Dead connections of the pool are passed over, as database/sql does it. That is no retry.
func TestDeadConnectionsArePassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := func(*fakeConn) error { return driver.ErrBadConn }
		const most = 2 // as many as database/sql
		f := &fake{exec: first(most, bad)}
		d := newDependency(t, lull.Policy{Attempts: 1})
		if err := read(t.Context(), d, f.open(t, d)); err != nil || f.dials != most+1 {
			t.Errorf("read: %d dials, %v", f.dials, err)
		}
		f.exec = first(most+1, bad)
		check.Is(t, read(t.Context(), d, f.open(t, d)), lull.ErrAttemptsExhausted, "read")
		f = &fake{exec: first(1, bad)} // a driver that returns it too often
		if err := exec(t.Context(), d, f.open(t, d)); err == nil || f.dials != 1 {
			t.Errorf("exec: %d dials, %v", f.dials, err)
		}
		f, begun := &fake{}, 0
		f.begin = func() error {
			if begun++; begun <= most {
				return driver.ErrBadConn
			}
			return nil
		}
		if err := tx(t.Context(), d, f.open(t, d)); err != nil || begun != most+1 {
			t.Errorf("tx: %d begun, %v", begun, err)
		}
	})
}

// After a COMMIT that was not answered nothing is repeated, except what may be carried out twice.
func TestCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
			err := tx(t.Context(), d, script().open(t, d))
			if !errors.Is(err, x.want) || (err == nil) != (x.want == nil) || x.want != nil && (commits != 1 || !errors.Is(err, x.fails)) {
				t.Errorf("%s: %v after %d commits, want %v", x.name, err, commits, x.want)
			}
			err = tx(t.Context(), d, script().open(t, d), lull.Idempotent())
			if (err == nil) != x.idempotent {
				t.Errorf("%s, idempotent: %v after %d commits", x.name, err, commits)
			}
		}
	})
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

// MySQLError has the form of go-sql-driver's.
type MySQLError struct{ Number uint16 }

func (e *MySQLError) Error() string { return fmt.Sprint("error ", e.Number) }

// If MySQL has warnings that nobody can see, a deadlock is no proof that nothing is left of a write. That is asked only after an error
// that would be one.
func TestWhatMySQLHasKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for number, want := range map[uint16]error{1213: ErrOutcomeUnknown, 2006: lull.ErrNotIdempotent, 1062: lull.ErrPermanent} {
			asked := false
			f := &fake{
				exec:  func(*fakeConn) error { return &MySQLError{number} },
				query: func(string) (driver.Rows, error) { asked = true; return nil, errMute },
			}
			d := newDependency(t, retried)
			err := exec(t.Context(), d, f.open(t, d))
			unknown := want == ErrOutcomeUnknown
			// It is an error of its own kind, and no answer.
			if e, ok := errors.AsType[*lull.Error](err); !ok || !errors.Is(err, want) || e.Attempts != 1 || asked != unknown || (e.Verdict.Code == engine.CodeOutcomeUnknown) != unknown {
				t.Errorf("%d: %v, asked: %t", number, err, asked)
			}
		}
	})
}

// The connection to a server that refuses what another one may take is given up. After other failures it is kept.
func TestWhichConnectionsAreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for err, dials := range map[state]int{"25006": 2, "40001": 1, "53300": 1} {
			for name, call := range calls {
				f := &fake{exec: first(1, func(*fakeConn) error { return err })}
				d := newDependency(t, retried)
				if failed := call(t.Context(), d, f.open(t, d)); failed != nil || f.dials != dials {
					t.Errorf("%s after %s: %d dials, want %d; %v", name, err, f.dials, dials, failed)
				}
			}
		}
	})
}

// A pool that is closed stays so.
func TestAClosedPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, call := range calls {
			d := newDependency(t, retried)
			db := (&fake{}).open(t, d)
			db.Close()
			err := call(t.Context(), d, db)
			if e, ok := errors.AsType[*lull.Error](err); !ok || e.Attempts != 1 || !errors.Is(err, lull.ErrPermanent) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// Also without a connector of lullsql, nothing was sent when a dial has failed.
func TestAPoolWithItsOwnDials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, call := range calls {
			f := &fake{}
			f.dial = func(context.Context) error {
				if f.dials == 1 {
					return state("08006") // after a statement it would mean that nothing is known
				}
				return nil
			}
			db := sql.OpenDB(f)
			defer db.Close()
			if err := call(t.Context(), newDependency(t, retried), db, lull.NotIdempotent()); err != nil || f.dials != 2 {
				t.Errorf("%s: %d dials, %v", name, f.dials, err)
			}
		}
	})
}

// observed are the events that an observer has got.
type observed []lull.Event

func (o *observed) Observe(_ context.Context, e lull.Event) { *o = append(*o, e) }

// count returns how many events there are of a kind, of calls with that operation if it is not empty.
func (o observed) count(kind event.Kind, operation string) (n int) {
	for _, e := range o {
		if e.Kind == kind && (operation == "" || e.Operation == operation) {
			n++
		}
	}
	return n
}

// The dial for a call is a part of it, also if no timeout bounds the call. A dial in another dependency's call is not.
func TestWhichDialsAreCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, policy := range []lull.Policy{{}, {AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout}} {
			for name, call := range calls {
				for _, same := range []bool{true, false} {
					var o observed
					d := newDependency(t, policy, lull.WithObserver(&o))
					db, of, want := (&fake{}).open(t, d), d, 0
					if !same {
						of, want = newDependency(t, policy), 1
					}
					if err := call(t.Context(), of, db); err != nil || o.count(event.CallEnded, "connect") != want {
						t.Errorf("%s, same %t: %d dials are calls, want %d; %v", name, same, o.count(event.CallEnded, "connect"), want, err)
					}
				}
			}
		}
	})
}

// granted pays for everything, and counts what it has paid for that goes on.
type granted struct {
	budget.Budget
	open, all int
}

func (g *granted) Withdraw(time.Duration, budget.Class, func() uint64) budget.Grant {
	g.open++
	g.all++
	return budget.Grant{OK: true, Receipt: 1}
}

func (g *granted) Release(_ time.Duration, r budget.Receipt) { g.open -= int(r) }

// What a budget has paid for a transaction that is repeated at once ends with it, also with a panic.
func TestARepeatedTransactionIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, end := range []string{"success", "failure", "panic"} {
			base := must.Have(budget.New(budget.Config{}))
			g := &granted{Budget: base}
			d := newDependency(t, retried, lull.WithBudget(func() budget.Budget { return g }))
			db := (&fake{}).open(t, d)
			runs := 0
			func() {
				defer func() { recover() }()
				Tx(t.Context(), d, db, nil, func(context.Context, *sql.Tx) error {
					switch runs++; {
					case runs == 1:
						return state("40P01")
					case end == "failure":
						return state("23505")
					case end == "panic":
						panic(end)
					}
					return nil
				})
			}()
			if runs != 2 || g.all != 1 || g.open != 0 {
				t.Errorf("%s: of %d that were paid for %d are open after %d runs", end, g.all, g.open, runs)
			}
		}
	})
}

// A transaction for a request that is itself a retry is not repeated: the caller above repeats.
func TestAConflictInARequestThatIsARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for attempt, want := range map[int]int{1: 2, 2: 1, 3: 1} {
			d := newDependency(t, retried)
			f := &fake{exec: first(1, func(*fakeConn) error { return state("40P01") })}
			ctx, in := inbound.With(t.Context(), attempt, 0)
			runs := 0
			f.begin = func() error { runs++; return nil }
			err := tx(ctx, d, f.open(t, d))
			in.End()
			if runs != want || (err == nil) != (want == 2) {
				t.Errorf("attempt %d: %d runs, %v", attempt, runs, err)
			}
		}
	})
}

// Only the first conflict of a call is repeated at once, if another attempt may follow and the budget pays. No other failure is.
func TestConflictsAreRepeatedAtOnceOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waiting := retried
		waiting.Backoff = backoff.Schedule{Kind: backoff.Constant, Base: time.Millisecond}
		for _, x := range []struct {
			policy                 lull.Policy
			err                    state
			conflicts, runs, waits int
			why                    error
		}{
			{waiting, "40P01", 1, 2, 0, nil},
			{waiting, "40P01", 2, 3, 1, nil},
			{waiting, "40P01", 3, 4, 2, nil},
			{waiting, "53300", 1, 2, 1, nil},
			{lull.Policy{Attempts: 1}, "40P01", 1, 1, 0, lull.ErrAttemptsExhausted},
			{lull.Policy{Budget: budget.Config{Stock: 2}}, "40P01", 100, 3, 1, lull.ErrBudgetExhausted},
		} {
			var o observed
			runs := 0
			f := &fake{exec: first(x.conflicts, func(*fakeConn) error { return x.err }), begin: func() error { runs++; return nil }}
			d := newDependency(t, x.policy, lull.WithObserver(&o))
			if err := tx(t.Context(), d, f.open(t, d)); !errors.Is(err, x.why) || runs != x.runs || o.count(event.RetryScheduled, "") != x.waits {
				t.Errorf("%d of %s: %d runs, %d waits, %v; want %d, %d, %v", x.conflicts, x.err, runs, o.count(event.RetryScheduled, ""), err, x.runs, x.waits, x.why)
			}
		}
	})
}

// A COMMIT that is not answered before the attempt is over is no timeout that may be repeated, although others are answered.
func TestACommitThatOutlastsItsAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		commits := 0
		f := &fake{commit: func(*fakeConn) error { commits++; time.Sleep(2 * time.Second); return errMute }}
		d := newDependency(t, lull.Policy{Attempts: 6, AttemptTimeout: time.Second, Timeouts: engine.TimeoutsAlways, Deadline: time.Minute})
		db := f.open(t, d)
		err := tx(t.Context(), d, db)
		if !errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, errMute) || commits != 1 {
			t.Errorf("%v after %d commits", err, commits)
		}
		db.Close()
		synctest.Wait()
	})
}

// An error that is an answer ends the call and is returned as it is.
func TestNoRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		d := newDependency(t, lull.Policy{})
		db := f.open(t, d)
		_, err := Read(t.Context(), d, db, func(context.Context, *sql.Conn) (int, error) { return 0, sql.ErrNoRows })
		if err != sql.ErrNoRows {
			t.Error(err)
		}
		if err := Tx(t.Context(), d, db, nil, func(context.Context, *sql.Tx) error { return sql.ErrNoRows }); err != sql.ErrNoRows {
			t.Error(err)
		}
	})
}

// An error of the caller's own rolls back and ends the call. So does a panic.
func TestTheCallersOwnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
		check.Equal(t, db.Stats().InUse, 0, "connections that are kept after a panic")
	})
}

// The operation's name is the caller's, if it gives one.
func TestOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{exec: func(*fakeConn) error { return state("23505") }}
		d := newDependency(t, lull.Policy{})
		db := f.open(t, d)
		for want, err := range map[string]error{
			"exec": exec(t.Context(), d, db),
			"read": read(t.Context(), d, db),
			"tx":   tx(t.Context(), d, db),
			"list": read(t.Context(), d, db, lull.Operation("list")),
			"pay":  tx(t.Context(), d, db, lull.Operation("pay")),
		} {
			if e, ok := errors.AsType[*lull.Error](err); !ok || e.Operation != want {
				t.Errorf("%v: want the operation %s", err, want)
			}
		}
	})
}

func TestClassify(t *testing.T) {
	if v := Classify(sqlcall.CommitError(driver.ErrBadConn, false)); v != (lull.Verdict{Code: engine.CodeOutcomeUnknown}) {
		t.Errorf("%+v", v)
	}
	if v := Classify(lull.RetryAfter(state("53300"), time.Second)); v.Kind != lull.KindRateLimited || v.After != time.Second || !v.NeverSent {
		t.Errorf("%+v: a mark adds to what is known", v)
	}
	if v := Classify(context.DeadlineExceeded); v.Code != engine.CodeTimeout {
		t.Errorf("%+v", v)
	}
}

// Observers get the error with which a call has ended, and none if it has succeeded.
func TestObserversGetTheError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, call := range callsAndDial {
			for _, fails := range []error{state("23505"), nil} {
				var o observed
				d := newDependency(t, lull.Policy{}, lull.WithObserver(&o))
				f := &fake{exec: func(*fakeConn) error { return fails }}
				if name == "connect" {
					f.dial = func(context.Context) error { return fails }
				}
				if err := call(t.Context(), d, f.open(t, d)); (err == nil) != (fails == nil) {
					t.Errorf("%s: %v", name, err)
				}
				for _, e := range o {
					if e.Kind == event.CallEnded && !errors.Is(e.Err, fails) {
						t.Errorf("%s: observers get %v, want %v", name, e.Err, fails)
					}
				}
				check.Equal(t, o.count(event.CallEnded, ""), 1, "%s: ends of calls that observers get", name)
			}
		}
	})
}

// The caller's own limit of connections shows nothing of the database: a call that waits for one in vain opens no circuit.
// A database that makes no connection in the time of a call opens it.
func TestRule23ThePoolIsFull(t *testing.T) {
	for name, call := range calls {
		for _, hangs := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := newDependency(t, lull.Policy{AttemptTimeout: time.Second, Deadline: 10 * time.Second, Breaker: breaker.Config{Consecutive: 2}})
					var f fake
					if hangs {
						f.dial = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
					}
					db := f.open(t, d)
					db.SetMaxOpenConns(1)
					if !hangs {
						conn := must.Have(db.Conn(t.Context()))
						defer conn.Close()
					}
					for range 5 {
						e, ok := errors.AsType[*lull.Error](call(t.Context(), d, db))
						if !ok || !hangs && (!e.Verdict.CallerSide() || e.Attempts < 2) { // nothing was sent, so it may be repeated
							t.Errorf("%v", e)
						}
					}
					check.Equal(t, d.Breaker().State(d.Now()) != breaker.Closed, hangs, "the circuit is open, and the database hangs")
				})
			})
		}
	}
}

// What ended an attempt is decided by who ended its context, in a statement, an operation, a transaction, and in a dial for
// each and for a statement of the plain sql.DB.
func TestWhoCutTheAttemptOff(t *testing.T) {
	for name, call := range callsAndDial {
		t.Run(name, func(t *testing.T) {
			cutofftest.Test(t, func(t *testing.T, p lull.Policy) cutofftest.Call {
				var f fake
				d := newDependency(t, p)
				db := f.open(t, d)
				return func(ctx context.Context, attempt func(context.Context) error) error {
					if name == "connect" {
						f.dial = attempt
					} else {
						f.exec = func(c *fakeConn) error { return attempt(c.ctx) }
					}
					return call(ctx, d, db)
				}
			})
		})
	}
}
