package lullhttp

import (
	"fmt"
	"net/http"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/option"
)

// WithBeforeRetry calls prepare before each attempt after the first, to sign the request again or
// to give it a new token. next is a copy, of which URL and Header may be changed. Its context is
// the attempt's, and lull.AttemptFrom returns its number. last is the error of the attempt that
// failed most recently, a [*StatusError] if there was a response. It is nil before a hedge if no
// attempt has failed yet. prepare must be safe for concurrent use.
//
// An error of prepare ends the call. It is the last error of the [*lull.Error], together with that
// of the attempt before, and does not count as a failure of the dependency. Use a base transport
// for what the first attempt needs as well.
func WithBeforeRetry(prepare func(next *http.Request, last error) error) Option {
	return option.If(prepare != nil, func(t *Transport) { t.beforeRetry = prepare },
		"lullhttp: WithBeforeRetry(nil): want a function")
}

// runBeforeRetry calls the user's function for an attempt after the first. It returns false, and
// the verdict, if that has failed.
func (x *exchange) runBeforeRetry(out *http.Request) (lull.Verdict, bool) {
	if out.Header == nil {
		out.Header = make(http.Header)
	} else {
		out.Header = out.Header.Clone()
	}
	u := *out.URL
	out.URL = &u
	last := x.err
	err := x.t.beforeRetry(out, last)
	if err == nil {
		return lull.Verdict{}, true
	}
	if out.Body != nil {
		out.Body.Close()
	}
	x.err = fmt.Errorf("lullhttp: before attempt %d: %w", x.attempts, err)
	if last != nil {
		x.err = fmt.Errorf("%w (after: %w)", x.err, last)
	}
	return lull.Verdict{Kind: engine.KindCallerSide, Code: "before_retry", NeverSent: true}, false
}
