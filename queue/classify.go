package queue

import (
	"errors"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
)

// Classify is [lull.Classify] but for one thing: the error of a call that was made with
// lull inside the handler. Elsewhere such an error is final, as the layer that knows
// the dependency has retried already, and to retry once more from further up would
// multiply. A message cannot be given back to a caller; to take that for final would
// dead-letter every message that comes while a dependency is down. And its next attempt
// is not one more of the same moment but one after a wait of another order. So what the
// call gave up on (lull.Reason.GaveUp) is transient here, and so is a call that found
// no room. Calls inside the handler are not multiplied even so: at the second attempt
// of a message they are not retried (lull.Policy.Nested).
//
// What a classifier of yours (WithClassifier) is asked about are the other errors. To add
// to what is known of them, fall back on Classify.
func Classify(err error) lull.Verdict { return classified(err, lull.Classify) }

// classified returns the verdict on err, an error of the handler.
func classified(err error, classify lull.Classifier) lull.Verdict {
	v := lull.VerdictOf(err, classify)
	if v.Code == engine.CodeRetriedBelow {
		if inner, ok := errors.AsType[*lull.Error](err); ok && inner != nil {
			return engine.FromBelow(inner.Reason, inner.Verdict, inner.Attempts)
		}
	}
	return v.Failed(false)
}
