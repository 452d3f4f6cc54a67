package engine

import (
	"time"

	"github.com/lullgo/lull/internal/choice"
)

// VerdictKind is what the end of one attempt means for the next one.
type VerdictKind uint8

const (
	// KindUnclassified: nothing is known of the failure. The call ends, and it counts neither for
	// nor against the dependency. The zero value: a classifier that forgets a case fails fast.
	KindUnclassified VerdictKind = iota
	// KindSuccess: the operation was answered. An error that is an answer (the end of a listing)
	// may be classified so as well: it ends the call, is returned to the caller, and counts for
	// the dependency.
	KindSuccess
	// KindTransient: another attempt may succeed.
	KindTransient
	// KindRateLimited: the server asked for fewer requests (429). The operation may be repeated,
	// after a longer wait.
	KindRateLimited
	// KindOverloaded: the server asked not to retry. The call ends.
	KindOverloaded
	// KindPermanent: another attempt would fail the same way.
	KindPermanent
	// KindCanceled: the caller went away. The call ends, and it counts neither for
	// nor against the dependency.
	KindCanceled
	// KindCallerSide: the failure is on the caller's side, such as the reader of the request's
	// body, or credentials. The call ends. It opens no circuit, spends no budget and ejects no
	// endpoint.
	KindCallerSide
	// KindCallerTransient: as KindCallerSide, but another attempt may succeed: the caller's own
	// limit of connections, files or ports. A retry is free as long as no attempt has reached the
	// dependency.
	KindCallerTransient
)

// CallerSide reports whether v is a failure on the caller's side.
func (v Verdict) CallerSide() bool {
	return v.Kind == KindCallerSide || v.Kind == KindCallerTransient
}

// OnCallerSide returns v as a failure on the caller's side.
func (v Verdict) OnCallerSide() Verdict {
	switch v.Kind {
	case KindTransient, KindRateLimited, KindCallerTransient:
		v.Kind = KindCallerTransient
	default:
		v.Kind = KindCallerSide
	}
	return v
}

var kindNames = [...]string{"unclassified", "success", "transient", "rate_limited", "overloaded", "permanent", "canceled", "caller_side", "caller_transient"}

// String returns the kind in lower case, such as "transient".
func (k VerdictKind) String() string { return choice.Name("kind", kindNames[:], k) }

// A Verdict is a classifier's judgement on the end of one attempt. The zero
// Verdict is unclassified, never a success.
type Verdict struct {
	Kind VerdictKind
	// NeverSent: the request provably did not reach the server's application (connection refused,
	// name not resolved), so any operation may be repeated.
	NeverSent bool
	// After is how long the server asked to wait, counted from when the engine gets the verdict.
	// Zero or negative: it did not ask.
	After time.Duration
	// Code is a short, low-cardinality name of the failure for logs and metrics,
	// such as "503" or "connection_refused".
	Code string
}

// A CutOff is who ended an attempt before it was over. The driver reads it from the contexts that
// it made, never from the attempt's error: a client may return an error of its own when its
// context ends.
type CutOff uint8

const (
	// NotCutOff: nobody did. The failure is what its verdict says.
	NotCutOff CutOff = iota
	// CutByCaller: the caller's context ended.
	CutByCaller
	// CutByTime: the time of the attempt, or of its call, was over.
	CutByTime
)

// Failed returns v, the verdict on a failed attempt, given who cut it off. If the caller has
// gone, v is canceled. If the time was over, v is a timeout, unless it is the verdict on an
// answer, the request was never sent, the failure is on the caller's side, or the outcome is
// unknown (CodeOutcomeUnknown). A failure of which nothing is known gets a code.
func (v Verdict) Failed(by CutOff) Verdict {
	switch {
	case by == CutByCaller:
		v.Kind = KindCanceled
	case by == CutByTime && v.Code != CodeOutcomeUnknown && (v.Kind == KindUnclassified || v.Kind == KindCanceled || v.Kind == KindTransient && !v.NeverSent):
		v.Kind, v.Code = KindTransient, CodeTimeout
	}
	if v.Code == "" && (v.Kind == KindUnclassified || v.Kind == KindCanceled) {
		v.Code = CodeUnclassified
	}
	return v
}

// OutcomeUnknown reports whether nobody knows what an attempt that ended with v has done, and it
// matters: one step of it may have been carried out (CodeOutcomeUnknown), or the operation is not
// idempotent, and the attempt was sent and not answered for good. A failure of which nothing is
// known (KindUnclassified) is not counted: it may be an answer. A timeout that a mark made permanent
// is none.
func (v Verdict) OutcomeUnknown(notIdempotent bool) bool {
	switch v.Kind {
	case KindTransient, KindRateLimited, KindOverloaded, KindCanceled, KindCallerTransient:
		return v.Code == CodeOutcomeUnknown || notIdempotent && !v.NeverSent
	case KindPermanent:
		return v.Code == CodeOutcomeUnknown || notIdempotent && !v.NeverSent && v.Code == CodeTimeout // by a mark
	}
	return v.Code == CodeOutcomeUnknown
}

// Committed returns v for an attempt that failed after the caller had received a part of its
// answer, such as the start of a stream. It cannot be repeated, and either side may have failed.
func (v Verdict) Committed() Verdict {
	switch v.Kind {
	case KindCallerTransient:
		v.Kind = KindCallerSide
		return v
	case KindTransient, KindRateLimited:
		return Verdict{Kind: KindUnclassified, Code: CodeUnclassified, NeverSent: v.NeverSent}
	}
	return v
}

// answers reports whether the dependency is known to have answered with the permanent failure v.
// A mark may have made a timeout permanent.
func (v Verdict) answers() bool {
	return v.Kind == KindPermanent && !v.NeverSent && v.Code != CodeRetriedBelow && v.Code != CodeTimeout
}

// The codes of failures that the engine knows.
const (
	// CodeUnclassified is the code of KindUnclassified if the classifier gave none.
	CodeUnclassified = "unclassified"
	// CodeRetriedBelow: the error is that of another call of lull, which has made its retries.
	CodeRetriedBelow = "retried_below"
	// CodeOutcomeUnknown: one step may have been carried out, such as a COMMIT that was not
	// answered. It is never repeated.
	CodeOutcomeUnknown = "outcome_unknown"
	// CodePanic: the operation panicked.
	CodePanic = "panic"
	// CodeTimeout: the attempt took too long. Some budgets charge more for it.
	CodeTimeout = "timeout"
)
