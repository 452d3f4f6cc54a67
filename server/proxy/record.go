package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"syscall"
	"time"

	"github.com/lullgo/lull/driver/inbound"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
)

// A Record is what became of one request, for an access log.
type Record struct {
	Time     time.Time     `json:"time"` // when it came
	Took     time.Duration `json:"-"`
	Door     string        `json:"door,omitempty"`
	Method   string        `json:"method,omitempty"`
	Host     string        `json:"host,omitempty"`
	Path     string        `json:"path,omitempty"`
	Protocol string        `json:"protocol,omitempty"` // "HTTP/1.1", "HTTP/2.0"
	Status   int           `json:"status,omitempty"`   // of the answer; 499: the client went away before it; 0: there was none
	BytesIn  int64         `json:"bytes_in"`           // of the request's body, as far as it was read
	BytesOut int64         `json:"bytes_out"`          // of the answer's body

	// Of the call; empty if there was none.
	Dependency string        `json:"dependency,omitempty"`
	Operation  string        `json:"operation,omitempty"`
	Reason     engine.Reason `json:"-"`               // why no further attempt was made
	Attempts   []Attempt     `json:"-"`               // in their order
	Stale      bool          `json:"stale,omitempty"` // an older response was served
	Own        bool          `json:"own,omitempty"`   // the answer is the proxy's own
	Error      string        `json:"error,omitempty"` // what the last attempt failed with, if it had no response, or what its response broke off with
}

// An Attempt is one attempt of a call.
type Attempt struct {
	Code   string // such as "503" or "timeout"; empty: it succeeded
	Took   time.Duration
	Waited time.Duration // the wait after it
}

// A call is a request on its way through a door, and the context of what is done for it.
type call struct {
	context.Context // of the request
	Record
	door  *door
	route route
	above []layer          // for which it may be made
	once  bool             // it has one attempt
	in    *inbound.Request // nil: the ingress door's has another one
	late  bool             // it came when its time was over

	early   early
	flusher flusher
	writer  writer
	body    *requestBody // nil: none
	last    bool         // its connection takes no other request
}

type callKey struct{}

func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// clientHasLeft reports whether nobody waits for an answer any more.
func (c *call) clientHasLeft() bool {
	if c.Context.Err() != nil {
		return true
	}
	err := c.body.failure()
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET)
}

// end completes the record.
func (c *call) end() {
	c.Took = time.Since(c.Time)
	if c.Status == 0 { // no tunnel
		c.Status, c.BytesIn, c.BytesOut = c.writer.status, c.body.bytes(), c.writer.bytes
	}
	if c.Status < 200 && c.Status != http.StatusSwitchingProtocols {
		c.Status = 0
		if c.clientHasLeft() {
			c.Status = 499
		}
	}
	c.door.proxy.wiring.Record(&c.Record)
}

// observer completes the record of the call that an event belongs to.
type observer struct{}

func (observer) Observe(ctx context.Context, e event.Event) {
	if e.Kind != event.CallEnded {
		return
	}
	c := callOf(ctx)
	if c == nil {
		return
	}
	c.Dependency, c.Operation, c.Reason = e.Dependency, e.Operation, e.Reason
	before := len(c.Attempts)
	for b := e.Earlier; b != nil; b = b.Before {
		c.Attempts = append(c.Attempts, Attempt{b.Verdict.Code, b.Took, b.Slept})
	}
	slices.Reverse(c.Attempts[before:])
	if before > 0 && len(c.Attempts) > before { // a download goes on: the first of these is the end of the last before
		c.Attempts[before-1].Code, c.Attempts[before-1].Waited = c.Attempts[before].Code, c.Attempts[before].Waited
		c.Attempts = slices.Delete(c.Attempts, before, before+1)
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

// A writer counts what is answered, and completes the header.
type writer struct {
	http.ResponseWriter
	call   *call
	status int
	bytes  int64
}

func (w *writer) WriteHeader(status int) {
	if status < 200 {
		if w.call.Protocol == "HTTP/1.0" {
			return // RFC 9110, 15.2
		}
		for _, name := range forApplication {
			delete(w.Header(), name) // it is the upstream's
		}
	}
	if w.status < 200 {
		w.status = status
		if status >= 200 {
			w.call.begin(w.Header(), status)
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(p []byte) (int, error) {
	if w.status < 200 {
		w.WriteHeader(http.StatusOK)
	}
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
