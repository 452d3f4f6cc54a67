package engine

import (
	"time"

	"github.com/lullgo/lull/internal/choice"
)

// VerdictKind is what the end of one attempt means for the next one.
type VerdictKind uint8

const (
	// KindUnclassified: nothing is known of the failure. The call ends, as for
	// KindPermanent, and it counts neither for nor against the dependency. The zero
	// value: a classifier that forgets a case fails fast.
	KindUnclassified VerdictKind = iota
	// KindSuccess: the operation answered. An error that is an answer (such as
	// the end of a listing) may be classified so as well: it ends the call, is handed to
	// the caller, and counts in the dependency's favour.
	KindSuccess
	// KindTransient: it failed in a way that another attempt may mend.
	KindTransient
	// KindRateLimited: the server asked for fewer requests (429). It may be repeated,
	// but after a longer wait than a blip.
	KindRateLimited
	// KindOverloaded: the server asked not to retry. The call ends.
	KindOverloaded
	// KindPermanent: another attempt would fail the same way.
	KindPermanent
	// KindCanceled: the caller went away. The call ends, and it counts neither for
	// nor against the dependency.
	KindCanceled
	// KindCallerSide: what failed is on the caller's side, such as the reader of the request's body, or
	// its credentials. The call ends. It shows nothing of the dependency: it opens no circuit, spends
	// no budget and ejects no endpoint.
	KindCallerSide
	// KindCallerTransient: the same, but another attempt may succeed: the caller's own limit of
	// connections, files or ports. A retry is free as long as no attempt has reached the dependency.
	KindCallerTransient
)

// CallerSide reports whether v is a failure on the caller's side.
func (v Verdict) CallerSide() bool {
	return v.Kind == KindCallerSide || v.Kind == KindCallerTransient
}

// OnCallerSide is v, the verdict on a failure, if that is on the caller's side.
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

// String is the kind in lower case, such as "transient".
func (k VerdictKind) String() string { return choice.Name("kind", kindNames[:], k) }

// A Verdict is a classifier's judgement on the end of one attempt. The zero
// Verdict is unclassified, never a success.
type Verdict struct {
	Kind VerdictKind
	// NeverSent: the request provably did not reach the server's application
	// (connection refused, name not resolved), so repeating it is safe even for
	// an operation that is not idempotent.
	NeverSent bool
	// After is how long the server asked to wait, counted from the moment the
	// verdict is handed to the engine. Zero or negative: it did not ask.
	After time.Duration
	// Code is a short, low-cardinality name of the failure for logs and metrics,
	// such as "503" or "connection_refused".
	Code string
}

// A CutOff is who ended an attempt before it was over. The driver reads it from the contexts that
// it has made, never from the error of the attempt: a client may return an error of its own when
// its context ends.
type CutOff uint8

const (
	// NotCutOff: nobody did. The failure is what its verdict says.
	NotCutOff CutOff = iota
	// CutByCaller: the caller has gone away.
	CutByCaller
	// CutByTime: the time of the attempt, or of its call, was over.
	CutByTime
)

// Failed returns v, the verdict on the failure of an attempt that was cut off by that, as the engine
// and the observers learn of it. If the caller has gone away v is canceled, whatever the attempt
// returned. If its time was over it is a timeout, unless the verdict is that of an answer (permanent,
// rate-limited, overloaded), the request was never sent, the caller's side had failed, or it may have been carried out though the
// operation is otherwise safe to repeat (CodeOutcomeUnknown). A failure of which nothing is known gets a code.
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

// Committed is v, the verdict on an attempt that failed after the caller had received a part
// of its answer, such as the start of a stream. It cannot be repeated, and what broke may lie
// on either side.
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

// answers reports whether v is a permanent failure that the dependency is known to
// have answered with. What was never sent it has not answered, nor what timed out,
// though a mark may have made it permanent.
func (v Verdict) answers() bool {
	return v.Kind == KindPermanent && !v.NeverSent && v.Code != CodeRetriedBelow && v.Code != CodeTimeout
}

// Codes of failures that the engine itself looks at.
const (
	// CodeUnclassified: the code of a failure of KindUnclassified, if the classifier
	// gave it none.
	CodeUnclassified = "unclassified"
	// CodeRetriedBelow: the error of a call to another dependency, which has made
	// the retries that there are to make. Retrying it again would multiply them.
	CodeRetriedBelow = "retried_below"
	// CodeOutcomeUnknown: the operation is safe to repeat but for a step that may have been carried
	// out, such as a COMMIT that was not answered. It is never repeated.
	CodeOutcomeUnknown = "outcome_unknown"
	// CodePanic: there is no failure to classify, for the operation panicked.
	CodePanic = "panic"
	// CodeTimeout: the attempt took too long. Some budgets charge more for it.
	CodeTimeout = "timeout"
)
