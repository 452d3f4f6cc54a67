// Package response lets a middleware look at a handler's response as it begins:
// before the header is sent, when its status is known and fields can still be added.
package response

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// A Writer is the http.ResponseWriter that a middleware hands to its handler. It can
// all that the one beneath can: what goes by interfaces (Flusher, Hijacker, Pusher,
// ReaderFrom) and what goes by http.ResponseController. It is used by one goroutine
// at a time.
type Writer struct {
	http.ResponseWriter
	// Begin, if not nil, is called once, before the header is sent: with its status,
	// or with 0 if the connection was hijacked. It may change the header.
	Begin func(status int)

	status int // of the final response; 0: not begun, or hijacked
	begun  bool
}

// Status is that of the response, or 0 if it has not begun or the connection was
// hijacked. A handler that returns without having begun one answers 200.
func (w *Writer) Status() int { return w.status }

// Begun tells whether the response has begun, or the connection was hijacked.
func (w *Writer) Begun() bool { return w.begun }

func (w *Writer) begin(status int) {
	if w.begun {
		return
	}
	w.begun, w.status = true, status
	if w.Begin != nil {
		w.Begin(status)
	}
}

// WriteHeader begins the response, but for 1xx, which only announce one. (101 is
// final.)
func (w *Writer) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		w.begin(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write begins the response with 200 if it has not begun.
func (w *Writer) Write(p []byte) (int, error) {
	w.begin(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

// WriteString is Write.
func (w *Writer) WriteString(s string) (int, error) {
	w.begin(http.StatusOK)
	return io.WriteString(w.ResponseWriter, s)
}

// ReadFrom is for io.Copy: a file goes to the connection without a buffer between.
func (w *Writer) ReadFrom(r io.Reader) (int64, error) {
	w.begin(http.StatusOK)
	return io.Copy(w.ResponseWriter, r)
}

// Flush sends what there is. Without a Flusher beneath it does nothing.
func (w *Writer) Flush() {
	w.FlushError()
}

// FlushError is Flush for http.ResponseController.
func (w *Writer) FlushError() error {
	w.begin(http.StatusOK)
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Hijack takes the connection over, if what is beneath permits it.
func (w *Writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.begin(0)
	}
	return c, rw, err
}

// Push is HTTP/2 server push, which what is beneath mostly does not support.
func (w *Writer) Push(target string, opts *http.PushOptions) error {
	if p, ok := w.ResponseWriter.(http.Pusher); ok {
		return p.Push(target, opts)
	}
	return http.ErrNotSupported
}

// Unwrap is for http.ResponseController.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
