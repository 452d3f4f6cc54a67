// Package sqlcall has what the calls of lullsql and lullpgx share: whether a dial belongs to a call,
// what an error of a dial or of a COMMIT means, and when a transaction is run again.
package sqlcall

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/driver/inbound"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/attempt"
	"github.com/lullgo/lull/internal/sqlerr"
)

// Success is the verdict on an attempt that succeeded.
var Success = lull.Verdict{Kind: lull.KindSuccess}

// ErrOutcomeUnknown is the ErrOutcomeUnknown of both packages.
var ErrOutcomeUnknown = errors.New("COMMIT was sent and not answered: whether the transaction was committed is not known")

// unknownOutcome is an error with ErrOutcomeUnknown, and the reason.
type unknownOutcome struct {
	why string
	err error
}

func (e *unknownOutcome) Error() string   { return e.why + ": " + e.err.Error() }
func (e *unknownOutcome) Unwrap() []error { return []error{ErrOutcomeUnknown, e.err} }

// CommitError returns the error of a transaction whose COMMIT ended with err. It contains ErrOutcomeUnknown unless one of
// these is known: the database has answered with err, COMMIT was not sent (driver.ErrBadConn is no proof), or op has
// ended the transaction itself. If idle is set, the database has reported that the connection is in no transaction. An
// error without a code then means that the database has answered COMMIT with a rollback.
func CommitError(err error, idle bool) error {
	c, known := sqlerr.Classify(err)
	if c.Answered || !known && idle || nothingSent(c, err) || errors.Is(err, sql.ErrTxDone) {
		return err
	}
	return &unknownOutcome{ErrOutcomeUnknown.Error(), err}
}

// nothingSent reports whether nothing was sent before err, of class c.
func nothingSent(c sqlerr.Class, err error) bool {
	return c.NeverSent && !c.Answered && !errors.Is(err, driver.ErrBadConn)
}

// A DialError is why a dial failed.
type DialError struct{ Err error }

func (e *DialError) Error() string { return "dial: " + e.Err.Error() }

// Unwrap hides driver.ErrBadConn from database/sql, which would dial again.
func (e *DialError) Unwrap() error {
	if errors.Is(e.Err, driver.ErrBadConn) {
		return nil
	}
	return e.Err
}

var errPoolFull = errors.New("all connections of the pool are in use")

// PoolFull marks err, with which a call ended because other calls had all connections of the pool. It shows nothing of the
// database.
func PoolFull(err error) error { return fmt.Errorf("%w: %w", errPoolFull, err) }

// NoConn returns the error of a pool that had no connection. Nothing was sent, so an err that is known becomes a *DialError.
func NoConn(err error) error {
	if isDialError(err) || Classify(err).Kind == lull.KindUnclassified && !isSetupError(err) {
		return err
	}
	return &DialError{err}
}

// Classify returns the verdict on an error of a database.
func Classify(err error) lull.Verdict { return lull.VerdictOf(err, verdict) }

func verdict(err error) lull.Verdict {
	if e, ok := errors.AsType[*DialError](err); ok {
		v := Classify(lull.NeverSent(e.Err))
		if isSetupError(e.Err) && v.Kind == lull.KindTransient {
			v.Kind = Classify(e.Err).Kind
		}
		return v
	}
	if errors.Is(err, ErrOutcomeUnknown) {
		return lull.Verdict{Code: engine.CodeOutcomeUnknown}
	}
	if errors.Is(err, errPoolFull) {
		return lull.Verdict{Kind: engine.KindCallerTransient, NeverSent: true, Code: "pool_timeout"}
	}
	if c, known := sqlerr.Classify(err); known {
		return c.Verdict
	}
	return lull.Classify(err)
}

// isSetupError reports whether err is an answer about what is set up on the server (users, tables). Such an answer shows
// neither that the server is ill nor that the statement is wrong.
func isSetupError(err error) bool {
	c, _ := sqlerr.Classify(err)
	return c.Answered && c.Kind == lull.KindUnclassified
}

// VerdictOn returns the verdict on an attempt that ended with err. An unknown error is transient if the connection is
// broken. broken may be nil.
func VerdictOn(err error, broken func() bool) lull.Verdict {
	v := Classify(err)
	if v.Kind != lull.KindUnclassified || v.Code == engine.CodeOutcomeUnknown || isSetupError(err) {
		return v
	}
	if broken != nil && broken() {
		return lull.Verdict{Kind: lull.KindTransient, Code: "connection_lost"}
	}
	return v
}

// ShouldClose reports whether the pool should dial another connection after err, whose verdict is v: this server refuses
// what another one may carry out.
func ShouldClose(v lull.Verdict, err error) bool {
	c, _ := sqlerr.Classify(err)
	return c.OtherServer && v.Kind == lull.KindTransient
}

// OfCaller returns the error of an op that ended with err. A write in a transaction that the caller has made read-only is the
// caller's own failure.
func OfCaller(err error, readOnly bool) error {
	if c, _ := sqlerr.Classify(err); readOnly && c.OtherServer {
		return lull.Permanent(err)
	}
	return err
}

// Apply applies opts to s.
func Apply(opts []lull.CallOption, s *engine.Spec) {
	for i := range opts {
		opts[i].Apply(s)
	}
}

// Call makes a call to d. attempt makes it once. The error is that of an attempt that succeeded, or a [*lull.Error].
func Call(ctx context.Context, d *lull.Dependency, spec engine.Spec, attempt func(context.Context) (lull.Verdict, error)) error {
	var err error
	r := d.Drive(ctx, spec, func(ctx context.Context) (v lull.Verdict) {
		v, err = attempt(ctx)
		return v
	}, nil, func() error { return err })
	if r.Reason == engine.Success {
		return err
	}
	return d.Error(spec.Operation, r, err)
}

// Tx makes a transaction as a call to d. run makes one attempt. If twice is set, the transaction may be carried out twice:
// it is repeated after a COMMIT that was not answered.
func Tx(ctx context.Context, d *lull.Dependency, opts []lull.CallOption, run func(ctx context.Context, twice bool) (lull.Verdict, error)) error {
	spec := engine.Spec{Operation: "tx", NotIdempotent: true}
	Apply(opts, &spec)
	twice, conflicts := !spec.NotIdempotent, 0
	spec.NotIdempotent = false // only its COMMIT is not idempotent
	return Call(ctx, d, spec, func(ctx context.Context) (lull.Verdict, error) {
		ctx = WithCall(ctx, d)
		v, err := run(ctx, twice)
		if err == nil {
			return v, nil
		}
		class, _ := sqlerr.Classify(err)
		if !class.Conflict {
			return v, err
		}
		// Another transaction was in its way.
		if conflicts++; conflicts > 1 || ctx.Err() != nil || v.Kind != lull.KindTransient {
			return v, err
		}
		settle, ok := d.State().RepeatConflict(d.Now(), &spec, inbound.From(ctx).Attempt() > 1, d.Rand())
		if !ok {
			return v, err
		}
		defer func() { settle(d.Now()) }()
		return run(ctx, twice)
	})
}

// callKey is the key of the dependency that a context's call goes to. A context with an attempt.Context does not need it.
type callKey struct{}

// WithCall returns a context of a call to d: InCall finds the call in it.
func WithCall(ctx context.Context, d *lull.Dependency) context.Context {
	if inAttempt(ctx, d) {
		return ctx
	}
	return context.WithValue(ctx, callKey{}, d)
}

// InCall reports whether ctx belongs to a call to d.
func InCall(ctx context.Context, d *lull.Dependency) bool {
	of, _ := ctx.Value(callKey{}).(*lull.Dependency)
	return of == d || inAttempt(ctx, d)
}

func inAttempt(ctx context.Context, d *lull.Dependency) bool {
	a := attempt.From(ctx)
	return a != nil && a.State == d.State().Current()
}
