package lullhttp

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/lullgo/lull"
)

// uploadBytes is the length above which a request's body is an upload, which may
// well take longer than Policy.AttemptTimeout. The system takes a shorter one at once,
// whatever becomes of it then: that it was taken is no progress.
const uploadBytes = 64 << 10

// isUpload reports whether the body of req is one, as far as its length is known.
func isUpload(req *http.Request) bool {
	return hasBody(req) && (req.ContentLength > uploadBytes || req.ContentLength <= 0)
}

func hasBody(req *http.Request) bool { return req.Body != nil && req.Body != http.NoBody }

// outgoingBody is the body of a request on its way: it reports an upload's progress,
// and when the base transport is done with it.
type outgoingBody struct {
	io.ReadCloser
	attempt context.Context // of an upload; nil: its progress is of no interest
	out     *outgoing
	lease   *lease
}

func (b *outgoingBody) Read(p []byte) (int, error) {
	if !b.lease.take() {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.ReadCloser.Read(p)
	b.lease.giveBack()
	if n > 0 && b.attempt != nil {
		lull.Progress(b.attempt)
	}
	return n, err
}

func (b *outgoingBody) Close() error {
	err := b.ReadCloser.Close()
	if b.out.sending.Swap(bodySent) == bodyAwaited {
		b.out.detached.Release()
	}
	return err
}

// What became of an outgoing body.
const (
	bodySent     uint32 = iota // closed, or there is none
	bodyUnderWay               // not closed yet
	bodyAwaited                // the same, and when it is closed the context is released
)

// bodyOf returns the body that get, the request's GetBody, returns.
func bodyOf(get func() (io.ReadCloser, error), lease *lease) (io.ReadCloser, error) {
	if !lease.take() {
		return nil, http.ErrBodyReadAfterClose
	}
	defer lease.giveBack()
	body, err := get()
	switch {
	case err == nil && body == nil:
		return nil, errors.New("GetBody returned neither a body nor an error")
	case err != nil && body != nil:
		body.Close()
	}
	return body, err
}

// send wraps the body of out, so that ctx, the attempt's context, learns of it.
func (out *outgoing) send(ctx context.Context, wrapped *outgoingBody, lease *lease) {
	req := &out.req
	upload := isUpload(req)
	if !upload {
		ctx = nil
	}
	out.sending.Store(bodyUnderWay)
	*wrapped = outgoingBody{req.Body, ctx, out, lease}
	req.Body = wrapped
	if get := req.GetBody; get != nil && (upload || lease != nil) {
		// http.Transport itself takes another body when it repeats a request on a
		// new connection.
		req.GetBody = func() (io.ReadCloser, error) {
			body, err := bodyOf(get, lease)
			if err != nil {
				return nil, err
			}
			out.sending.CompareAndSwap(bodySent, bodyUnderWay)
			return &outgoingBody{body, ctx, out, lease}, nil
		}
	}
}

// release ends the attempt's context now that the response has ended, or else when
// the request's body has: over HTTP/2 a server may answer before it has read it all.
func (out *outgoing) release() {
	if !out.sending.CompareAndSwap(bodyUnderWay, bodyAwaited) {
		out.detached.Release()
	}
}
