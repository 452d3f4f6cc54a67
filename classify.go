package lull

import (
	"errors"

	"github.com/lullgo/lull/internal/neterr"
)

// Codes of failures that the engine itself looks at.
const (
	// CodeUnclassified: the code of a failure of KindUnclassified, if the classifier
	// gave it none.
	CodeUnclassified = "unclassified"
	// CodeRetriedBelow: the error of a call to another dependency, which has made
	// the retries that there are to make. Retrying it again would multiply them.
	CodeRetriedBelow = "retried_below"
	// CodePanic: there is no failure to classify, for the operation panicked.
	CodePanic = "panic"
	// CodeTimeout: the attempt took too long. Some budgets charge more for it.
	CodeTimeout = "timeout"
)

// verdict is what d makes of an error of the operation: its marks first, then
// the classifier.
func (d *Dependency) verdict(err error) Verdict {
	if v, ok := Marked(err); ok {
		return v
	}
	return d.plan.classify(err)
}

// Classify is what lull makes of an error that bears no mark: transient network
// errors are recognised by their types (never by their text), as are timeouts;
// the rest is KindUnclassified, with the code CodeUnclassified, and not retried.
// An [*Error] of another dependency is final: the layer that knows that
// dependency has retried already.
func Classify(err error) Verdict {
	if v, ok := Marked(err); ok {
		return v
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return Verdict{Kind: KindPermanent, Code: CodeRetriedBelow}
	}
	c, known := neterr.Classify(err)
	if !known {
		return Verdict{Kind: KindUnclassified, Code: CodeUnclassified}
	}
	return Verdict{Kind: kindOf[c.Kind], NeverSent: c.NeverSent, Code: c.Code}
}

var kindOf = [...]Kind{neterr.Transient: KindTransient, neterr.Permanent: KindPermanent, neterr.Canceled: KindCanceled}
