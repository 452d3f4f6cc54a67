// Package response lets a middleware look at a handler's response as it begins:
// before the header is sent, when its status is known and fields can still be added.
package response

import (
	"bufio"
	"cmp"
	"io"
	"net"
	"net/http"
)

// A Writer looks at what a handler does with the http.ResponseWriter that Shown gives
// it. It is used by one goroutine at a time.
type Writer struct {
	below  http.ResponseWriter
	begin  func(status int)
	status int // of the final response; 0: not begun, or hijacked
	begun  bool
}

// New looks at what is written to w. If begin is not nil it is called once, before the
// header is sent, and may change it: with its status, or with 0 if the connection was
// taken over (Hijack).
func New(w http.ResponseWriter, begin func(status int)) *Writer {
	return &Writer{below: w, begin: begin}
}

// Final returns the status that the client gets if the handler returns now: 200 if it
// has written nothing.
func (w *Writer) FinalStatus() int { return cmp.Or(w.status, http.StatusOK) }

// Shown returns the ResponseWriter for the handler. It has exactly the abilities of the one
// below: http.ResponseController finds that by Unwrap, and a type assertion to Flusher or
// Hijacker succeeds if it would below.
func (w *Writer) ForHandler() http.ResponseWriter {
	flushes, hijacks := false, false
	for below := w.below; below != nil; below = writerBelow(below) {
		switch below.(type) {
		case http.Flusher, interface{ FlushError() error }:
			flushes = true
		}
		if _, ok := below.(http.Hijacker); ok {
			hijacks = true
		}
	}
	base := (*handlerWriter)(w)
	switch {
	case flushes && hijacks:
		return struct {
			*handlerWriter
			flusher
			hijacker
		}{base, flusher{w}, hijacker{w}}
	case flushes:
		return struct {
			*handlerWriter
			flusher
		}{base, flusher{w}}
	case hijacks:
		return struct {
			*handlerWriter
			hijacker
		}{base, hijacker{w}}
	}
	return base
}

// writerBelow is the writer beneath, or nil.
func writerBelow(w http.ResponseWriter) http.ResponseWriter {
	if u, ok := w.(interface{ Unwrap() http.ResponseWriter }); ok {
		return u.Unwrap()
	}
	return nil
}

func (w *Writer) beginResponse(status int) {
	if w.begun {
		return
	}
	w.begun, w.status = true, status
	if w.begin != nil {
		w.begin(status)
	}
}

// handlerWriter has the methods of every response.
type handlerWriter Writer

func (w *handlerWriter) Header() http.Header { return w.below.Header() }

// WriteHeader begins the response with the first status that is final: those from 100
// to 199 are not, but for 101.
func (w *handlerWriter) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		(*Writer)(w).beginResponse(status)
	}
	w.below.WriteHeader(status)
}

func (w *handlerWriter) Write(p []byte) (int, error) {
	(*Writer)(w).beginResponse(http.StatusOK)
	return w.below.Write(p)
}

func (w *handlerWriter) WriteString(s string) (int, error) {
	(*Writer)(w).beginResponse(http.StatusOK)
	return io.WriteString(w.below, s)
}

// ReadFrom lets io.Copy send a file without a buffer between, if the one below can.
func (w *handlerWriter) ReadFrom(src io.Reader) (int64, error) {
	(*Writer)(w).beginResponse(http.StatusOK)
	return io.Copy(w.below, src)
}

// Unwrap is for http.ResponseController.
func (w *handlerWriter) Unwrap() http.ResponseWriter { return w.below }

type flusher struct{ w *Writer }

func (f flusher) Flush() { _ = f.FlushError() }

func (f flusher) FlushError() error {
	f.w.beginResponse(http.StatusOK)
	return http.NewResponseController(f.w.below).Flush()
}

type hijacker struct{ w *Writer }

func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(h.w.below).Hijack()
	if err == nil {
		h.w.beginResponse(0)
	}
	return c, rw, err
}
