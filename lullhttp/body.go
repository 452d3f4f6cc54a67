package lullhttp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/lullgo/lull/driver"
)

// The rest of a discarded body is read so that its connection can be used again. Beyond these
// limits a new connection is cheaper.
const (
	drainBytes = 64 << 10
	drainTime  = time.Second
)

// drainLimit returns how long a call may still drain a body that has this time left, beside the
// deadline of ctx.
func drainLimit(ctx context.Context, left time.Duration) time.Duration {
	if until, bounded := ctx.Deadline(); bounded {
		left = min(left, time.Until(until))
	}
	return max(min(left, drainTime), 0)
}

// drain reads the rest of body within these limits and within the time that the call has left, and
// closes it. detached is the attempt's context.
func drain(body io.ReadCloser, within time.Duration, detached driver.Detached) {
	if body == nil {
		return
	}
	timer := time.AfterFunc(min(drainTime, within), func() { interruptRead(body, detached) })
	_, _ = io.CopyN(io.Discard, body, drainBytes)
	// A body of exactly that length still needs the read that finds its end.
	var one [1]byte
	_, _ = body.Read(one[:])
	timer.Stop()
	body.Close()
}

// interruptRead ends the Read of body that is under way, by the end of the attempt's context if the
// attempt has one. Close is only for bodies that ignore the context: from Go 1.27 on it first tries
// for 50 ms to read the rest, and blocks the clock of a bubble of testing/synctest.
func interruptRead(body io.Closer, detached driver.Detached) {
	if detached == (driver.Detached{}) { // it is the caller's
		body.Close()
		return
	}
	detached.Release()
	time.AfterFunc(time.Millisecond, func() { body.Close() })
}

// inMemory reports whether http.NewRequest has made the body of req from bytes in memory, so that
// reading it cannot fail.
func inMemory(req *http.Request) bool {
	if typ := reflect.TypeOf(req.Body); typ != nopCloser && typ != nopCloserWriterTo {
		return false
	}
	switch r := reflect.ValueOf(req.Body).Field(0).Interface().(type) {
	case *bytes.Reader, *bytes.Buffer, *strings.Reader:
		return int64(r.(interface{ Len() int }).Len()) == req.ContentLength
	}
	return false
}

// bindContext gives resp a body whose end or Close ends the attempt's context. A response without a
// body, which nobody has to close, ends it at once.
func (out *outgoing) bindContext(resp *http.Response) {
	if rw, ok := resp.Body.(io.ReadWriteCloser); ok {
		resp.Body = &upgradedBody{rw, out.detached()}
		return
	}
	if bodiless(resp) {
		out.releaseContext()
		return
	}
	out.responseBody = resp.Body
	resp.Body = (*releasingBody)(out)
}

// trailedBody is the body of a copy of a response. A trailer that was not announced is there at the
// end of the body.
type trailedBody struct {
	io.ReadCloser
	from, to *http.Response
}

func (b *trailedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.to.Trailer = b.from.Trailer
	}
	return n, err
}

// bodiless reports whether resp has no bytes to read and holds no stream open. Over HTTP/2 a stream
// may stay open after a 204, so there only a body without state, such as http.NoBody, is one.
func bodiless(resp *http.Response) bool {
	if resp.Body == http.NoBody || resp.Body == nil || reflect.TypeOf(resp.Body).Size() == 0 {
		return true
	}
	return resp.ProtoMajor == 1 && (resp.ContentLength == 0 || resp.StatusCode == http.StatusNoContent ||
		resp.StatusCode == http.StatusNotModified || resp.Request.Method == http.MethodHead)
}

// releasingBody is a body whose end or Close ends its attempt's context.
type releasingBody outgoing

func (b *releasingBody) Read(p []byte) (int, error) {
	n, err := b.responseBody.Read(p)
	if err == io.EOF {
		(*outgoing)(b).releaseContext()
	}
	return n, err
}

func (b *releasingBody) Close() error {
	err := b.responseBody.Close()
	(*outgoing)(b).detached().Release()
	return err
}

// upgradedBody is the body of a 101 response, which is also written to. One direction may end long
// before the other, so only Close ends the attempt's context.
type upgradedBody struct {
	io.ReadWriteCloser
	detached driver.Detached
}

// CloseWrite ends what is sent, and leaves what is received open. Its error is http.ErrNotSupported
// if the connection cannot do that, as with the body of http.Transport.
func (b *upgradedBody) CloseWrite() error {
	if c, ok := b.ReadWriteCloser.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return fmt.Errorf("lullhttp: CloseWrite: %w", http.ErrNotSupported)
}

func (b *upgradedBody) Close() error {
	err := b.ReadWriteCloser.Close()
	b.detached.Release()
	return err
}
