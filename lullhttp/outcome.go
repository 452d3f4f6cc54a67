package lullhttp

import (
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/lullgo/lull"
)

// An Outcome is how a call came to its response.
type Outcome struct {
	Attempts int
	Reason   lull.Reason   // why no further attempt was made; Success if none was needed
	Verdict  lull.Verdict  // on the response
	Elapsed  time.Duration // 0 for a success without an observer
	// Stale: the call has failed for Reason, and resp is an older response (WithStale).
	Stale bool
	// OutcomeUnknown: the operation may have been carried out, and must not be carried out twice
	// ([lull.Error]).
	OutcomeUnknown bool
}

// OutcomeOf returns how the call went that a Transport answered with resp. For any other response
// it returns one attempt. A copy of a response has no Outcome. A response whose Body was replaced
// keeps it.
func OutcomeOf(resp *http.Response) Outcome {
	if resp != nil && outcomeCount.Load() > 0 {
		if o, ok := outcomes.Load(weak.Make(resp)); ok {
			return o.(Outcome)
		}
	}
	return Outcome{Attempts: 1}
}

// outcomes has the Outcome of each response that took more than one attempt or is a failure, for as
// long as the response is in use. The response itself has no room for it: Request is the caller's,
// and Body is replaced by http.Client and by others.
var outcomes sync.Map // weak.Pointer[http.Response] to Outcome

// outcomeCount is about how many outcomes there are. While it is zero nobody has to make a weak pointer, which allocates.
var outcomeCount atomic.Int64

func (o Outcome) record(resp *http.Response) {
	key := weak.Make(resp)
	outcomeCount.Add(1) // before it is there
	if _, known := outcomes.Swap(key, o); !known {
		runtime.AddCleanup(resp, func(key weak.Pointer[http.Response]) {
			outcomes.Delete(key)
			outcomeCount.Add(-1)
		}, key)
	} else {
		outcomeCount.Add(-1)
	}
}
