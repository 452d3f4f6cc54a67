package lull

import (
	"cmp"
	"errors"
	"time"
)

// marked is an error that carries its own verdict.
type marked struct {
	err     error
	verdict Verdict
}

func (m *marked) Error() string { return m.err.Error() }
func (m *marked) Unwrap() error { return m.err }

// Transient marks err as worth another attempt. nil stays nil.
func Transient(err error) error {
	return mark(err, func(v *Verdict) { v.Kind, v.Code = KindTransient, cmp.Or(v.Code, "transient") })
}

// Permanent marks err as final: no other attempt is made. nil stays nil.
func Permanent(err error) error {
	return mark(err, func(v *Verdict) { v.Kind, v.Code, v.After = KindPermanent, cmp.Or(v.Code, "permanent"), 0 })
}

// RetryAfter marks err as worth another attempt, but not before d has passed,
// counted from the end of the attempt: what a server asks for with Retry-After.
// A d that is not positive marks it as throttled and asks for nothing. nil
// stays nil.
func RetryAfter(err error, d time.Duration) error {
	return mark(err, func(v *Verdict) { v.Kind, v.Code, v.After = KindThrottled, cmp.Or(v.Code, "throttled"), max(d, 0) })
}

// NeverSent marks err as one after which the dependency provably has not seen
// the request, so that another attempt is safe even for an operation that is
// not idempotent. nil stays nil.
func NeverSent(err error) error {
	return mark(err, func(v *Verdict) {
		v.NeverSent = true
		if v.Code == "" {
			v.Kind, v.Code = KindTransient, "never_sent"
		}
	})
}

// mark wraps err with a verdict that starts from the one it carries already, so
// that marks combine: RetryAfter(NeverSent(err), time.Second).
func mark(err error, change func(*Verdict)) error {
	if err == nil {
		return nil
	}
	m := &marked{err: err}
	if inner, ok := errors.AsType[*marked](err); ok {
		m.verdict = inner.verdict
	}
	change(&m.verdict)
	return m
}

// Marked is the verdict that the marks of err add up to (Transient, Permanent,
// RetryAfter, NeverSent); ok is false if it has none, and a classifier has to say.
func Marked(err error) (v Verdict, ok bool) {
	m, ok := errors.AsType[*marked](err)
	if !ok {
		return Verdict{}, false
	}
	return m.verdict, true
}
