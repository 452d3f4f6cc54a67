package lullhttp

import (
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/lullgo/lull/event"
)

// sdks are clients that retry by themselves, by the header in which they number their attempts.
// Other programs send these headers only if they pass requests on.
var sdks = map[string]*event.Layer{
	"Amz-Sdk-Request":         {Name: "the AWS SDK", Off: "aws.Config.RetryMaxAttempts: 1"},
	"X-Stainless-Retry-Count": {Name: "the API's client library", Off: "option.WithMaxRetries(0)"},
	"X-Goog-Api-Client":       {Name: "the client of Google Cloud Storage", Off: "storage.WithPolicy(storage.RetryNever)"},
}

var sameRequest = &event.Layer{Name: "the client that sends the same http.Request again", Off: "its own retries (RetryMax: 0 of go-retryablehttp)"}

const (
	// sentAgainWithin is for how long a request counts as a retry if it is sent again after its
	// call was given up. A request that is sent later is taken for a new one.
	sentAgainWithin = 10 * time.Second
	givenUpRequests = 8 // that a Transport remembers
)

// givenUp has the requests whose calls were given up most recently.
type givenUp struct {
	hasRecent atomic.Bool // some were given up a moment ago: otherwise no request takes the lock

	mu   sync.Mutex
	next int
	last [givenUpRequests]struct {
		url weak.Pointer[url.URL] // the request's own: copies that http.Client and others make share it
		at  time.Time
	}
}

func (g *givenUp) record(req *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last[g.next].url, g.last[g.next].at = weak.Make(req.URL), time.Now()
	g.next = (g.next + 1) % givenUpRequests
	g.hasRecent.Store(true)
}

// wasGivenUp reports whether a call of req was given up a moment ago.
func (g *givenUp) wasGivenUp(req *http.Request) bool {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	fresh := false
	for i := range g.last {
		if last := &g.last[i]; now.Sub(last.at) < sentAgainWithin {
			if fresh = true; last.url.Value() == req.URL {
				return true
			}
		}
	}
	g.hasRecent.Store(fresh)
	return false
}

// layerAbove returns the layer above the Transport that retries and has sent req again, or nil.
func (t *Transport) layerAbove(req *http.Request, forRetry bool) *event.Layer {
	if forRetry {
		for key, sdk := range sdks {
			if h := req.Header[key]; len(h) > 0 && ParseAttempt(http.Header{key: h}) > 1 {
				return sdk
			}
		}
	}
	if t.givenUp.wasGivenUp(req) {
		return sameRequest
	}
	return nil
}
