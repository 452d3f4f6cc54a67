package lulltest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/lullgo/lull/internal/neterr"
	"github.com/lullgo/lull/internal/sleep"
)

// Transport returns an http.RoundTripper that passes on to next what no rule ends. If next is
// nil, a request that is passed on is answered with an empty 200. It returns the errors that net/http returns for such a
// failure, of the same types, and needs no network.
func (f *Faults) Transport(next http.RoundTripper) http.RoundTripper {
	return &transport{f, next}
}

type transport struct {
	f    *Faults
	next http.RoundTripper // nil: an empty 200
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	if err := t.f.compile(); err != nil {
		return nil, err
	}
	ctx := r.Context()
	if ctx.Err() != nil { // as in http.Transport, such a request is not sent
		return nil, context.Cause(ctx)
	}
	index, rule := t.f.recordAttempt(r)
	if rule.End == Refuse {
		if err := sleep.For(ctx, rule.Delay); err != nil {
			return nil, err
		}
		return nil, opError("dial", r, os.NewSyscallError("connect", neterr.Refused))
	}
	body, err := t.f.readBody(index, r.Body)
	if err != nil {
		return nil, err
	}
	if err := sleep.For(ctx, rule.Delay); err != nil {
		return nil, err
	}
	var resp *http.Response
	if rule.Status == 0 && t.next != nil {
		if resp, err = t.next.RoundTrip(withRequestBody(r, body)); err != nil {
			return nil, err
		}
	} else {
		resp = answerOf(r, rule)
	}
	if rule.End != Answer && rule.Where != InBody {
		resp.Body.Close()
		if rule.End == Hang {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		return nil, rule.headerError(r)
	}
	if rule.Header != nil {
		if resp.Header = resp.Header.Clone(); resp.Header == nil {
			resp.Header = make(http.Header)
		}
		rule.setHeader(resp.Header)
	}
	if rule.changesBody() && hasBody(r.Method, resp.StatusCode) {
		if rule.Where == InBody && resp.ContentLength <= int64(rule.Bytes) {
			resp.ContentLength = -1 // or its last byte would be its end
			resp.Header.Del("Content-Length")
		}
		b := &faultyBody{body: resp.Body, rule: rule, left: rule.Bytes, req: r}
		b.ctx, b.cancel = context.WithCancelCause(ctx)
		resp.Body = b
	}
	return resp, nil
}

// withRequestBody returns the request with a body that was read.
func withRequestBody(r *http.Request, body []byte) *http.Request {
	if body == nil {
		return r
	}
	r = r.WithContext(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r
}

// answerOf returns the answer that Status makes, or an empty 200.
func answerOf(r *http.Request, rule *Rule) *http.Response {
	h, status := make(http.Header), cmp.Or(rule.Status, http.StatusOK)
	body, length := io.ReadCloser(http.NoBody), int64(len(rule.Body))
	if length > 0 {
		h.Set("Content-Type", http.DetectContentType([]byte(rule.Body)))
		if hasBody(r.Method, status) {
			body = io.NopCloser(strings.NewReader(rule.Body))
		}
	}
	return &http.Response{
		Status: fmt.Sprint(status, " ", http.StatusText(status)), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: body, ContentLength: length, Request: r,
	}
}

// readError returns the error with which a read fails when the rule has ended the connection.
func (rule *Rule) readError(r *http.Request) error {
	if rule.End == Reset {
		return opError("read", r, os.NewSyscallError("read", neterr.Reset))
	}
	return io.ErrUnexpectedEOF
}

// headerError returns the error of http.Transport for a response without a whole header.
func (rule *Rule) headerError(r *http.Request) error {
	switch {
	case rule.Where == InHeader: // a reset, too: http.Transport reads on, and then finds the end
		return fmt.Errorf("net/http: HTTP/1.x transport connection broken: %w", io.ErrUnexpectedEOF)
	case rule.End == Close:
		return io.EOF
	}
	return rule.readError(r)
}

func opError(op string, r *http.Request, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Addr: server(r.URL.Host), Err: err}
}

// server is the address of a server that has a name only.
type server string

func (server) Network() string  { return "tcp" }
func (s server) String() string { return string(s) }

// faultyBody is the body of a response that is slow or ends too early.
type faultyBody struct {
	body io.ReadCloser
	rule *Rule
	left int // bytes until the end, if Where is InBody
	req  *http.Request
	err  error // how it has ended

	ctx    context.Context // of the request, until Close
	cancel context.CancelCauseFunc
}

func (b *faultyBody) Read(p []byte) (n int, err error) {
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	if b.rule.PerByte > 0 {
		p = p[:1]
	}
	if b.rule.Where == InBody {
		p = p[:min(len(p), b.left)]
		if len(p) == 0 {
			b.err = b.end()
			return 0, b.err
		}
	}
	n, err = b.body.Read(p)
	b.left -= n
	if n > 0 {
		if w := sleep.For(b.ctx, b.rule.PerByte); w != nil {
			n, err = 0, w
		}
	}
	if err == io.EOF && b.rule.Where == InBody { // a shorter body
		if b.left, err = 0, nil; n == 0 {
			err = b.end()
		}
	}
	b.err = err
	return n, err
}

// end waits for the caller if the rule hangs, and returns the error of the break.
func (b *faultyBody) end() error {
	if b.rule.End == Hang {
		<-b.ctx.Done()
		return context.Cause(b.ctx)
	}
	return b.rule.readError(b.req)
}

func (b *faultyBody) Close() error {
	b.cancel(http.ErrBodyReadAfterClose)
	return b.body.Close()
}
