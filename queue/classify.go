package queue

import (
	"errors"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
)

// Classify returns the verdict on an error of a handler. It is that of [lull.Classify], with two exceptions:
//
//   - The error of a call that was made with lull inside the handler. Elsewhere it is final. Here it is transient if the
//     call gave up ([lull.Reason.GaveUp]), could not be repeated safely, or found no room: an outage must not make a message
//     a dead letter at once. It is permanent if the dependency's refusal of the request was permanent. (At the second
//     attempt of a message such calls are not retried: lull.Policy.Nested.)
//   - A permanent failure of the network before anything was sent, such as a name that does not exist. Here it is
//     unclassified, since it shows nothing about the message.
//
// A permanent error makes the message a dead letter. After an unclassified one the attempt counts, and the message comes
// again. A classifier of yours (WithClassifier) decides about the other errors; it may call Classify for those that it does not know.
func Classify(err error) lull.Verdict { return classified(err, lull.Classify) }

func classified(err error, classify lull.Classifier) lull.Verdict {
	v := lull.VerdictOf(err, func(err error) lull.Verdict {
		v := classify(err)
		if v.Kind == lull.KindPermanent && v.NeverSent {
			v.Kind = lull.KindUnclassified
		}
		return v
	})
	if v.Code == engine.CodeRetriedBelow {
		if inner, ok := errors.AsType[*lull.Error](err); ok && inner != nil {
			return engine.FromBelow(inner.Reason, inner.Verdict, inner.Attempts)
		}
	}
	return v.Failed(engine.NotCutOff)
}
