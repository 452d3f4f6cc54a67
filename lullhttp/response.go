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

// peekProblem reads the body's beginning and puts it back, and after it the error
// that ended the reading, if one did.
func peekProblem(resp *http.Response) (Problem, bool) {
	if resp.Body == nil {
		return Problem{}, false
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, problemBytes))
	if err != nil {
		resp.Body = &rewound{io.MultiReader(bytes.NewReader(body), failing{err}), resp.Body}
		return Problem{}, false
	}
	resp.Body = &rewound{io.MultiReader(bytes.NewReader(body), resp.Body), resp.Body}
	return ParseProblem(body)
}

// rewound is a body that was read from, and put together again.
type rewound struct {
	io.Reader
	io.Closer
}

// failing is the rest of a body that could not be read.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
