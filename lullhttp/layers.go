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

// sdks are clients that retry by themselves and number their attempts, by the header that they do it in. Other
// programs send these headers only if they pass requests on.
var sdks = map[string]*event.Layer{
	"Amz-Sdk-Request":         {Name: "the AWS SDK", Off: "aws.Config.RetryMaxAttempts: 1"},
	"X-Stainless-Retry-Count": {Name: "the API's client library", Off: "option.WithMaxRetries(0)"},
	"X-Goog-Api-Client":       {Name: "the client of Google Cloud Storage", Off: "storage.WithPolicy(storage.RetryNever)"},
}

// sameRequest is a client, or a loop of the program, that sends an *http.Request again.
var sameRequest = &event.Layer{Name: "the client that sends the same http.Request again", Off: "its own retries (RetryMax: 0 of go-retryablehttp)"}

const (
	// sentAgainWithin is for how long after its call was given up a request that is sent again counts as a
	// retry. Later it is taken for one that is sent now and then.
	sentAgainWithin = 10 * time.Second
	givenUpRequests = 8 // that a Transport remembers
)

// givenUp are the requests whose calls were given up last.
type givenUp struct {
	hasRecent atomic.Bool // some were a moment ago: else nobody pays for them

	mu   sync.Mutex
	next int
	last [givenUpRequests]struct {
		url weak.Pointer[url.URL] // the request's own: copies that http.Client and others make share it
		at  time.Time
	}
}

// record notes that a call of req was given up.
func (g *givenUp) record(req *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last[g.next].url, g.last[g.next].at = weak.Make(req.URL), time.Now()
	g.next = (g.next + 1) % givenUpRequests
	g.hasRecent.Store(true)
}

// wasGivenUp reports whether the call of req was given up a moment ago.
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

// layerAbove returns the layer of the program that retries above the Transport and has sent req again; nil if there is none.
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
