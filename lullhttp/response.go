package lullhttp

import (
	"bytes"
	"io"
	"net/http"
	"time"

	"github.com/lullgo/lull"
)

// problemBytes is how much of a body is read in search of problem details.
const problemBytes = 64 << 10

// classifyResponse is what a response that is no success means: the user's word
// on its problem type first, then the user's word on its status, then lull's own.
// What the server said about the next attempt counts with each of them.
func (t *Transport) classifyResponse(resp *http.Response) lull.Verdict {
	status := resp.StatusCode
	hint, ok := ParseHint(resp.Header, status, time.Now())
	if isProblem(resp.Header.Get("Content-Type")) {
		if p, is := peekProblem(resp); is {
			hint, ok = preferHint(hint, ok, p)
			if kind, set := t.problems[p.Type]; set {
				return hinted(kind, status, hint)
			}
		}
	}
	if kind, set := t.statuses[status]; set {
		return hinted(kind, status, hint)
	}
	return classifyResponse(status, hint, ok)
}

// peekProblem reads the body's beginning and puts it back. An error in reading
// stays where it is, for whoever reads on.
func peekProblem(resp *http.Response) (Problem, bool) {
	if resp.Body == nil {
		return Problem{}, false
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, problemBytes))
	resp.Body = &rewound{io.MultiReader(bytes.NewReader(body), resp.Body), resp.Body}
	if err != nil {
		return Problem{}, false
	}
	return ParseProblem(body)
}

// rewound is a body that was read from, and put together again.
type rewound struct {
	io.Reader
	io.Closer
}
