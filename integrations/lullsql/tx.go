package lullsql

import (
	"context"
	"database/sql"
	"errors"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/inbound"
	"github.com/lullgo/lull/internal/sqlerr"
)

// ErrOutcomeUnknown is in the error of a transaction whose COMMIT was sent and not answered:
// nobody knows whether its changes were made. It is not repeated.
var ErrOutcomeUnknown = errors.New("lullsql: COMMIT was sent and not answered: whether the transaction was committed is not known")

// Tx runs op in a transaction of db and commits it, as a call to d. The whole transaction is run
// again if it failed before its COMMIT in a way that another attempt may mend, because then it
// had no effect: the connection broke, the server restarted, another transaction was in the way.
// After the first conflict with another transaction that is at once, after others with a wait.
//
// If COMMIT was sent and not answered, the error is [ErrOutcomeUnknown] and nothing is repeated.
// With lull.Idempotent it is repeated: the transaction may be carried out twice.
//
// Op may be called several times. It makes its changes in tx alone, with the context that it gets,
// returns the errors of its statements (wrapped, if it likes), and neither commits nor rolls back.
// An error that op returns of its own ends the call: the transaction is rolled back. When the call
// fails the error is a [*lull.Error]. opts may be nil. lull.Operation names the call; without it
// the name is "tx". Tx may be called concurrently.
func Tx(ctx context.Context, d *lull.Dependency, db *sql.DB, opts *sql.TxOptions, op func(context.Context, *sql.Tx) error, callOpts ...lull.CallOption) error {
	t := transaction{d: d, db: db, opts: opts, op: op, spec: engine.Spec{Operation: "tx", NotIdempotent: true}}
	apply(callOpts, &t.spec)
	t.twice, t.spec.NotIdempotent = !t.spec.NotIdempotent, false // only its COMMIT is not idempotent
	r := d.Drive(ctx, t.spec, t.attempt, nil, func() error { return t.err })
	if r.Reason == engine.Success {
		return t.err
	}
	return d.Error(t.spec.Operation, r, t.err)
}

// transaction is one call of Tx.
type transaction struct {
	d     *lull.Dependency
	db    *sql.DB
	opts  *sql.TxOptions
	op    func(context.Context, *sql.Tx) error
	spec  engine.Spec
	twice bool // it may be carried out twice

	conflicts int
	err       error
}

func (t *transaction) attempt(ctx context.Context) lull.Verdict {
	ctx = inCall(ctx, t.d)
	v := t.run(ctx)
	if t.err == nil || !conflict(t.err) {
		return v
	}
	if t.conflicts++; t.conflicts > 1 || ctx.Err() != nil || v.Kind != lull.KindTransient {
		return v
	}
	settle, ok := t.d.State().RepeatConflict(t.d.Now(), &t.spec, inbound.From(ctx).Attempt() > 1, t.d.Rand())
	if !ok {
		return v
	}
	defer func() { settle(t.d.Now()) }()
	return t.run(ctx)
}

func (t *transaction) run(ctx context.Context) (v lull.Verdict) {
	v, t.err = onConn(ctx, t.db, t.once)
	return v
}

// once runs the transaction once.
func (t *transaction) once(ctx context.Context, conn *sql.Conn) error {
	tx, err := conn.BeginTx(ctx, t.opts)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing
	if err := t.op(ctx, tx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return t.committed(err)
	}
	return nil
}

// committed returns the error of a transaction whose Commit returned err.
func (t *transaction) committed(err error) error {
	if c, _ := sqlerr.Classify(err); c.Answered || t.twice {
		return err
	}
	return &unknownOutcome{err}
}

// unknownOutcome is the error of a COMMIT that was not answered.
type unknownOutcome struct{ err error }

func (e *unknownOutcome) Error() string   { return ErrOutcomeUnknown.Error() + ": " + e.err.Error() }
func (e *unknownOutcome) Unwrap() []error { return []error{ErrOutcomeUnknown, e.err} }
