package lull

import (
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/neterr"
)

// A Classifier turns an error of the operation into a Verdict. It is never
// called with nil, must be safe for concurrent use and should not block. For an error
// that it does not know it returns what [Classify] makes of it. The zero Verdict means
// that nothing is known of the error: the call ends, and the error is not lost. An
// error that is an answer after all needs engine.Kind: KindSuccess.
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

var kindOf = [...]engine.Kind{neterr.Transient: KindTransient, neterr.Permanent: KindPermanent, neterr.Canceled: KindUnclassified}
