package lullhttp

import (
	"net/http"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/option"
)

// WithClassifier makes classify decide what the end of an attempt means. It gets every response,
// whatever its status, or every error of the base transport; the other argument is nil. If it
// returns the zero lull.Verdict, [ClassifyStatus] and [ClassifyError] decide.
//
// The response's Request is the caller's, and [Peek] reads the beginning of its body. A verdict
// without a Code gets the status as its Code. The server's request for a wait, or for no further
// attempt, counts for a verdict of lull.KindTransient or lull.KindRateLimited without a wait of its
// own. Marks on an error, and calls of lull further down, count as in [lull.VerdictOf]. classify
// must be safe for concurrent use.
func WithClassifier(classify func(resp *http.Response, err error) lull.Verdict) Option {
	return option.If(classify != nil, func(t *Transport) { t.classifier = classify },
		"lullhttp: WithClassifier(nil): want a function")
}

// Peek returns the first n bytes of the body of resp, for a classifier. It returns fewer if there
// are no more, or if no more come within a quarter of a second. The body can still be read from its
// beginning. The bytes must not be changed.
func Peek(resp *http.Response, n int) []byte {
	if n <= 0 || resp.Body == nil || resp.StatusCode == http.StatusSwitchingProtocols {
		return nil
	}
	b, _ := peek(resp, n, false, peekTime)
	return b
}

// classifyError asks the user's classifier first, then otherwise.
func (t *Transport) classifyError(err error, otherwise lull.Classifier) lull.Verdict {
	if t.classifier == nil {
		return lull.VerdictOf(err, otherwise)
	}
	return lull.VerdictOf(err, func(err error) lull.Verdict {
		if v := t.classifier(nil, err); v != (lull.Verdict{}) {
			return v
		}
		return otherwise(err)
	})
}

// userVerdict returns the verdict of the user's classifier on a response. ok is false if it leaves
// the decision to lull.
func (t *Transport) userVerdict(resp *http.Response, h Hint) (v lull.Verdict, ok bool) {
	v = t.classifier(resp, nil)
	if v == (lull.Verdict{}) || v.Kind == lull.KindSuccess {
		return v, v != lull.Verdict{}
	}
	own := v
	v = withHint(v.Kind, resp.StatusCode, h)
	v.NeverSent = own.NeverSent
	if own.Code != "" {
		v.Code = own.Code
	}
	if own.After > 0 {
		v.Kind, v.After = own.Kind, own.After
	}
	return v, true
}
