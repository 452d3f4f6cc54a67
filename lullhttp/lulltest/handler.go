package lulltest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/lullgo/lull/internal/sleep"
)

// Handler returns an http.Handler that passes on to next what no rule ends. If next is nil, a
// request that is passed on is answered with an empty 200.
//
// It breaks real connections. It cannot refuse one, so it resets it before anything is answered. Over HTTP/2 each break is a
// reset of the stream. http.Transport itself repeats a GET whose connection broke before the answer began, if the connection had
// carried another request before: such attempts arrive here, and no retry policy knows of them.
func (f *Faults) Handler(next http.Handler) http.Handler {
	if next == nil {
		next = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	}
	return &handler{f, next}
}

type handler struct {
	f    *Faults
	next http.Handler
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.f.compile(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	index, rule := h.f.recordAttempt(r)
	body, err := h.f.readBody(index, r.Body) // all of it: else the server would not notice that its client goes
	if err != nil || sleep.For(r.Context(), rule.Delay) != nil {
		panic(http.ErrAbortHandler) // the client has gone
	}
	out := &faultyWriter{ResponseWriter: w, ctx: r.Context(), rule: rule, method: r.Method, left: rule.Bytes}
	switch {
	case rule.End == Refuse:
	case rule.Status == 0:
		h.next.ServeHTTP(out, withRequestBody(r, body))
	default:
		out.WriteHeader(rule.Status)
		io.WriteString(out, rule.Body)
	}
	out.finish()
}

// errBroken is the error of a Write to a connection that the rule has broken.
var errBroken = errors.New("lulltest: the rule has ended this response")

// A faultyWriter carries out a rule on the answer that a handler writes.
type faultyWriter struct {
	http.ResponseWriter
	ctx    context.Context
	rule   *Rule
	method string
	left   int // bytes until the end, if Where is InBody

	status   int  // that was written
	broken   bool // nothing more may be written
	hijacked bool // the connection is no longer the server's
}

// Unwrap is for http.ResponseController.
func (w *faultyWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// discards reports whether nothing of the answer is sent.
func (w *faultyWriter) discards() bool { return w.rule.End != Answer && w.rule.Where != InBody }

func (w *faultyWriter) WriteHeader(status int) {
	switch {
	case w.status != 0 || w.broken || w.discards():
		return
	case status >= 200 || status == http.StatusSwitchingProtocols:
		w.status = status
		w.rule.setHeader(w.Header())
		if w.rule.Where == InBody {
			w.forgetLength()
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// forgetLength removes the length of a body that is not longer than what arrives of it: its last
// byte would be its end.
func (w *faultyWriter) forgetLength() {
	n, err := strconv.ParseUint(strings.TrimSpace(w.Header().Get("Content-Length")), 10, 63)
	if err == nil && n <= uint64(w.rule.Bytes) {
		w.Header().Del("Content-Length")
	}
}

func (w *faultyWriter) Write(p []byte) (n int, err error) {
	switch {
	case w.broken:
		return 0, errBroken
	case w.discards():
		return len(p), nil
	}
	if w.status == 0 {
		if h := w.Header(); h["Content-Type"] == nil && h.Get("Content-Encoding") == "" && len(p) > 0 {
			h.Set("Content-Type", http.DetectContentType(p)) // net/http would see one byte of a slow body
		}
		w.WriteHeader(http.StatusOK)
	}
	if !w.rule.changesBody() || !hasBody(w.method, w.status) {
		return w.ResponseWriter.Write(p)
	}
	for n < len(p) {
		piece := p[n:]
		if w.rule.Where == InBody {
			if w.left == 0 {
				w.endExchange()
				return n, errBroken
			}
			piece = piece[:min(len(piece), w.left)]
		}
		if w.rule.PerByte > 0 {
			piece = piece[:1]
			if err := sleep.For(w.ctx, w.rule.PerByte); err != nil {
				return n, err
			}
		}
		m, err := w.ResponseWriter.Write(piece)
		n += m
		w.left -= m
		if err != nil {
			return n, err
		}
		if w.rule.PerByte > 0 {
			w.Flush()
		}
	}
	return n, nil
}

// Flush sends what was written.
func (w *faultyWriter) Flush() {
	if w.broken || w.discards() {
		return
	}
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	http.NewResponseController(w.ResponseWriter).Flush()
}

// finish is the end of the handler.
func (w *faultyWriter) finish() {
	if w.rule.End == Answer {
		if w.status == 0 {
			w.WriteHeader(http.StatusOK)
		}
		return
	}
	if w.rule.Where == InBody {
		if w.status == 0 {
			w.WriteHeader(http.StatusOK)
		}
		if !hasBody(w.method, w.status) {
			return
		}
	}
	if !w.broken {
		w.endExchange()
	}
	if !w.hijacked {
		panic(http.ErrAbortHandler) // the server ends the connection, or the stream
	}
}

// endExchange ends the exchange as the rule has it, as far as the connection can be had.
func (w *faultyWriter) endExchange() {
	if w.rule.Where == InBody {
		w.Flush()
	}
	w.broken = true
	hangs := w.rule.End == Hang
	if hangs && w.rule.Where != InHeader {
		<-w.ctx.Done()
		return
	}
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil { // HTTP/2, or no server at all
		if hangs {
			<-w.ctx.Done()
		}
		return
	}
	w.hijacked = true
	if w.rule.Where == InHeader {
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n")
	}
	if hangs {
		io.Copy(io.Discard, buffered.Reader) // until the client goes
	}
	if w.rule.End == Reset || w.rule.End == Refuse {
		resetOnClose(&conn)
	}
	conn.Close()
}

// resetOnClose has the connection reset when it is closed, if it is one of TCP, also under TLS.
func resetOnClose(conn *net.Conn) {
	if under, ok := (*conn).(interface{ NetConn() net.Conn }); ok {
		*conn = under.NetConn() // closing TLS would say goodbye first
	}
	if tcp, ok := (*conn).(interface{ SetLinger(int) error }); ok {
		tcp.SetLinger(0)
	}
}
