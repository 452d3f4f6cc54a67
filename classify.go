package lull

import (
	"errors"
	"time"

	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/neterr"
)

// A Classifier turns an error of the operation into a Verdict. It is never
// called with nil, must be safe for concurrent use and should not block. For an error
// that it does not know it returns what [Classify] makes of it. The zero Verdict means
// that nothing is known of the error: the call ends, and the error is not lost. An
// error that is an answer after all needs engine.VerdictKind: KindSuccess.
type Classifier func(error) Verdict

// verdict returns d's verdict on an error of the operation.
func (d *Dependency) verdict(err error) Verdict { return VerdictOf(err, d.wiring.classify) }

// Classify returns lull's verdict on an error without a classifier of yours, by
// [VerdictOf]: transient network errors are recognised by their types (never by their
// text), as are timeouts, and what this machine has no room for (files, ports), which is on the
// caller's side; the rest is KindUnclassified, with the code CodeUnclassified,
// and not retried. So is context.Canceled, with the code "canceled": whether the caller has
// gone away is decided by the call's own context. Fall back on it in a classifier.
func Classify(err error) Verdict { return VerdictOf(err, network) }

// network returns the verdict on a failure of the network.
func network(err error) Verdict {
	c, known := neterr.Classify(err)
	if !known {
		return Verdict{Kind: KindUnclassified, Code: engine.CodeUnclassified}
	}
	v := Verdict{Kind: kindOf[c.Kind], NeverSent: c.NeverSent, Code: c.Code}
	if c.CallerSide {
		v = v.OnCallerSide()
	}
	return v
}

var kindOf = [...]engine.VerdictKind{neterr.Transient: KindTransient, neterr.Permanent: KindPermanent, neterr.Canceled: KindUnclassified}

// marked is an error of which the operation knows more than its type shows.
type marked struct {
	err   error
	as    mark
	after time.Duration // markRetryAfter
}

func (m *marked) Error() string { return m.err.Error() }
func (m *marked) Unwrap() error { return m.err }

// mark is the content of a mark.
type mark uint8

const (
	markTransient mark = iota
	markPermanent
	markRetryAfter
	markNotSent
)

// Transient marks err as worth another attempt. What else is known of err stays: that
// it was a timeout, or asked to wait. nil stays nil.
func Transient(err error) error { return newMark(err, markTransient, 0) }

// Permanent marks err as final: no other attempt is made. nil stays nil.
func Permanent(err error) error { return newMark(err, markPermanent, 0) }

// RetryAfter marks err as worth another attempt, but not before d has passed,
// counted from the end of the attempt: what a server asks for with Retry-After.
// A d that is not positive marks it as rate-limited and asks for nothing. Of two such
// waits the longer one counts. nil stays nil.
func RetryAfter(err error, d time.Duration) error { return newMark(err, markRetryAfter, d) }

// NeverSent marks err as one after which the dependency provably has not seen
// the request, so that another attempt is safe even for an operation that is
// not idempotent. An error of which nothing else is known is transient then. nil
// stays nil.
func NeverSent(err error) error { return newMark(err, markNotSent, 0) }

func newMark(err error, as mark, after time.Duration) error {
	if err == nil {
		return nil
	}
	return &marked{err, as, after}
}

// change adds to v, the verdict on the error without the mark.
func (m *marked) change(v *Verdict) {
	unknown := v.Kind == KindUnclassified
	callerSide := v.CallerSide()
	code := ""
	switch m.as {
	case markTransient:
		code = "transient"
		if v.Kind != KindRateLimited { // which is worth another attempt, too
			v.Kind = KindTransient
		}
	case markPermanent:
		code = "permanent"
		v.Kind = KindPermanent
	case markRetryAfter:
		code = "rate_limited"
		v.Kind = KindRateLimited
		v.After = max(v.After, m.after)
	case markNotSent:
		code = "never_sent"
		v.NeverSent = true
		if unknown {
			v.Kind = KindTransient
		}
	}
	if callerSide {
		*v = v.OnCallerSide()
	}
	if v.Code == "" || unknown && v.Code == engine.CodeUnclassified {
		v.Code = code
	}
}

// VerdictOf returns the verdict on an error of an operation, for drivers: what classify makes
// of it, and what its marks add to that ([Transient], [Permanent], [RetryAfter],
// [NeverSent]; the outermost mark counts most). An error of a call that lull made
// further down ([*Error]) is final: it has the code CodeRetriedBelow, classify is not
// asked, and marks inside of it do not count. Only a mark around it does.
func VerdictOf(err error, classify Classifier) Verdict {
	m, below := outermost(err)
	switch {
	case below:
		return Verdict{Kind: KindPermanent, Code: engine.CodeRetriedBelow}
	case m == nil:
		return classify(err)
	}
	return m.verdict(err, classify)
}

// verdict is that of an error whose outermost mark is m.
func (m *marked) verdict(err error, classify Classifier) (v Verdict) {
	inner, below := outermost(m.err)
	switch {
	case below: // of which nothing counts
	case inner != nil:
		v = inner.verdict(err, classify)
	default:
		v = classify(err)
	}
	m.change(&v)
	return v
}

// outermost is the first mark in the tree of err, or nil; below, that a branch of it
// comes to an [*Error] first.
func outermost(err error) (m *marked, below bool) {
	for err != nil {
		switch e := err.(type) {
		case *marked:
			return e, false
		case *Error:
			return nil, e != nil
		case interface{ Unwrap() []error }:
			for _, branch := range e.Unwrap() {
				first, below := outermost(branch)
				if below {
					return nil, true
				}
				if m == nil {
					m = first
				}
			}
			return m, false
		}
		if e, ok := err.(interface{ As(any) bool }); ok {
			if inner := (*Error)(nil); e.As(&inner) && inner != nil {
				return nil, true
			}
		}
		err = errors.Unwrap(err)
	}
	return nil, false
}
