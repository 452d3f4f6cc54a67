package proxy

import (
	"context"
	"net/http"
	"time"

	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
)

// A Record is what became of one request, for an access log.
type Record struct {
	Time     time.Time // when it came
	Took     time.Duration
	Door     string
	Method   string
	Host     string
	Path     string
	Protocol string // "HTTP/1.1", "HTTP/2.0"
	Status   int    // of the answer; 0: there was none
	BytesIn  int64  // of the request's body, as far as it was read
	BytesOut int64  // of the answer's body

	// Of the call; empty if there was none.
	Dependency string
	Operation  string
	Reason     engine.Reason // why no further attempt was made
	Attempts   []Attempt     // in their order
	Stale      bool          // an older response was served
	Own        bool          // the answer is the proxy's own
	Error      string        // what the last attempt failed with, if it had no response
}

// An Attempt is one attempt of a call.
type Attempt struct {
	Code   string // such as "503" or "timeout"; empty: it succeeded
	Took   time.Duration
	Waited time.Duration // the wait after it
}

// A call is a request on its way through a door.
type call struct {
	Record
	door   *door
	body   *requestBody
	resp   *http.Response
	route  route
	above  []layer             // for which it may be made
	writer http.ResponseWriter // for a response that switches protocols
}

type callKey struct{}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// observer completes the record of the call that an event belongs to.
type observer struct{}

func (observer) Observe(ctx context.Context, e event.Event) {
	if e.Kind != event.CallEnded {
		return
	}
	c := callOf(ctx)
	if c == nil || c.door.proxy.record == nil {
		return
	}
	c.Dependency, c.Operation, c.Reason = e.Dependency, e.Operation, e.Reason
	c.Attempts = c.Attempts[:0]
	for b := e.Earlier; b != nil; b = b.Before {
		c.Attempts = append(c.Attempts, Attempt{b.Verdict.Code, b.Took, b.Slept})
	}
	for i, j := 0, len(c.Attempts)-1; i < j; i, j = i+1, j-1 {
		c.Attempts[i], c.Attempts[j] = c.Attempts[j], c.Attempts[i]
	}
	if e.EndedAttempt > 0 || e.Attempt == 1 {
		last := Attempt{Code: e.Verdict.Code, Took: e.AttemptTook}
		if e.Verdict.Kind == engine.KindSuccess {
			last.Code = ""
		}
		if last.Took == 0 {
			last.Took = time.Since(c.Time)
		}
		c.Attempts = append(c.Attempts, last)
	}
	if e.Err != nil {
		c.Error = e.Err.Error()
	}
}

// A countingWriter counts what is answered.
type countingWriter struct {
	http.ResponseWriter
	last   bool // of its connection
	status int
	bytes  int64
}

func (w *countingWriter) WriteHeader(status int) {
	switch {
	case status < 200:
		for _, name := range forApplication {
			delete(w.Header(), name) // it is the upstream's
		}
	case w.last:
		w.Header().Set("Connection", "close")
	}
	if w.status < 200 && w.status != http.StatusSwitchingProtocols {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *countingWriter) Write(p []byte) (int, error) {
	if w.status < 200 {
		w.WriteHeader(http.StatusOK)
	}
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

func (w *countingWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Unwrap is for http.ResponseController.
func (w *countingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
