package lullhttp

import (
	"context"
	"net/http"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
)

// problemBytes is how much of a body is read in search of problem details.
const problemBytes = 64 << 10

// classifyResponse returns what a response means. It asks the user's classifier, then what the user
// set for its problem type, then for its status, then lull's own rules. The server's hint counts
// with each of them.
func (x *exchange) classifyResponse(ctx context.Context, resp *http.Response) lull.Verdict {
	t, status := x.t, resp.StatusCode
	if o := OutcomeOf(resp); o.Reason != engine.Success && !o.Stale {
		return verdictBelow(o)
	}
	hint, ok := ParseHint(resp.Header, status, time.Now())
	if t.classifier != nil && status != http.StatusSwitchingProtocols {
		if v, is := t.userVerdict(resp, hint); is {
			return v
		}
	}
	if isGRPC(resp) {
		return x.grpcVerdict(ctx, resp)
	}
	if status < 400 {
		return lull.Verdict{Kind: lull.KindSuccess}
	}
	if isProblem(resp.Header.Get("Content-Type")) {
		until, bounded := ctx.Deadline()
		if p, is := peekProblem(resp, until, bounded); is {
			hint, ok = preferHint(hint, ok, p)
			if kind, set := t.problems[p.Type]; set {
				return withHint(kind, status, hint)
			}
		}
	}
	if kind, set := t.statuses[status]; set {
		return withHint(kind, status, hint)
	}
	if t.hinted429 && status == http.StatusTooManyRequests && !ok {
		return lull.Verdict{Kind: lull.KindPermanent, Code: statusCode(status)}
	}
	return classifyResponse(status, hint, ok)
}

// verdictBelow returns what a response means that another Transport further down has given up. That
// has made the retries already, as with an error (lull.VerdictOf).
func verdictBelow(o Outcome) lull.Verdict {
	if o.Reason == engine.Permanent {
		return o.Verdict
	}
	return lull.Verdict{Kind: lull.KindPermanent, Code: engine.CodeRetriedBelow}
}

// peekProblem reads the problem details of a response. It takes at most peekTime and half of the
// time that the attempt has left.
func peekProblem(resp *http.Response, until time.Time, bounded bool) (ProblemDetails, bool) {
	within := peekTime
	if bounded {
		within = min(within, time.Until(until)/2)
	}
	body, ok := peek(resp, problemBytes, false, within)
	if !ok {
		return ProblemDetails{}, false
	}
	return ParseProblem(body)
}
