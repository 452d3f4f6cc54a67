package lull

import "github.com/lullgo/lull/internal/neterr"

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

// verdict is what d makes of an error of the operation.
func (d *Dependency) verdict(err error) Verdict { return VerdictOf(err, d.plan.classify) }

// Classify is what lull makes of an error without a classifier of yours, by
// [VerdictOf]: transient network errors are recognised by their types (never by their
// text), as are timeouts; the rest is KindUnclassified, with the code CodeUnclassified,
// and not retried. Fall back on it in a classifier.
func Classify(err error) Verdict { return VerdictOf(err, network) }

// network is what lull knows by itself.
func network(err error) Verdict {
	c, known := neterr.Classify(err)
	if !known {
		return Verdict{Kind: KindUnclassified, Code: CodeUnclassified}
	}
	return Verdict{Kind: kindOf[c.Kind], NeverSent: c.NeverSent, Code: c.Code}
}

var kindOf = [...]Kind{neterr.Transient: KindTransient, neterr.Permanent: KindPermanent, neterr.Canceled: KindCanceled}
