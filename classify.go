package lull

import (
	"cmp"
	"errors"
	"time"

	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/neterr"
)

// A Classifier turns an error of the operation into a Verdict. It is never called with nil, must
// be safe for concurrent use and should not block. For an error that it does not know it returns
// the result of [Classify]. The zero Verdict means that nothing is known of the error: the call
// ends. An error that is an answer gets KindSuccess.
type Classifier func(error) Verdict

func (d *Dependency) verdict(err error) Verdict { return VerdictOf(err, d.wiring.classify) }

// Classify returns lull's verdict on an error without a classifier of yours, by [VerdictOf]. It
// recognises by their types transient network errors, timeouts, and what this machine has no room
// for (files, ports), which is on the caller's side. Any other error is KindUnclassified, with
// the code CodeUnclassified, and not retried. So is context.Canceled, with the code "canceled":
// only the call's own context shows whether the caller has gone.
func Classify(err error) Verdict { return VerdictOf(err, network) }

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

type mark uint8

const (
	markTransient mark = iota
	markPermanent
	markRetryAfter
	markNotSent
)

// Transient marks err as worth another attempt. What else is known of err stays: that it was a
// timeout, or asked to wait. nil stays nil.
func Transient(err error) error { return newMark(err, markTransient, 0) }

// Permanent marks err as final: no other attempt is made. nil stays nil.
func Permanent(err error) error { return newMark(err, markPermanent, 0) }

// RetryAfter marks err as worth another attempt after d, counted from the end of the attempt, as
// a server asks with Retry-After. A d that is not positive marks err as rate-limited only. Of two
// such waits the longer one counts. nil stays nil.
func RetryAfter(err error, d time.Duration) error { return newMark(err, markRetryAfter, d) }

// NeverSent marks err as one after which the dependency provably has not seen the request, so
// that any operation may be repeated. An error of which nothing else is known is transient then.
// nil stays nil.
func NeverSent(err error) error { return newMark(err, markNotSent, 0) }

func newMark(err error, as mark, after time.Duration) error {
	if err == nil {
		return nil
	}
	return &marked{err, as, after}
}

// change adds the mark to v, the verdict on the error without it.
func (m *marked) change(v *Verdict) {
	unknown := v.Kind == KindUnclassified
	callerSide := v.CallerSide()
	code := ""
	switch m.as {
	case markTransient:
		code = "transient"
		if v.Kind != KindRateLimited { // it is repeated, too
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

// VerdictOf returns the verdict on an error of an operation, for drivers: the result of classify,
// changed by the marks ([Transient], [Permanent], [RetryAfter], [NeverSent]; the outermost counts
// most). An error of another call of lull ([*Error]) is final: it has the code CodeRetriedBelow,
// classify is not called, and only marks around it count.
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

// verdict returns the verdict on an error whose outermost mark is m.
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

// outermost returns the first mark in the tree of err, or nil. below: a branch has an [*Error]
// first.
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
				m = cmp.Or(m, first)
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
