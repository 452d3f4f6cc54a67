package queue

import (
	"errors"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
)

// Classify returns the verdict on an error of a handler. It is that of [lull.Classify], with two
// exceptions.
//
// The first is the error of a call that was made with lull inside the handler. It is final elsewhere. Here it is transient
// if the call gave up ([lull.Reason.GaveUp]), could not be repeated safely, or found no room: no attempt of a message may
// be lost to an outage. It is permanent if the dependency refused the request for good. (At the second attempt of a message
// such calls are not retried: lull.Policy.Nested.) The second is a permanent failure of the network before anything was
// sent, such as a name that does not exist. It says nothing about the message, and is unclassified here.
//
// A permanent error is a dead letter. An unclassified one counts as an attempt, and the message comes again. A classifier of
// yours (WithClassifier) is asked about the other errors; to add to what is known of them, fall back on Classify.
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
