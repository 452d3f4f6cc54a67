package lullhttp

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/lullgo/lull"
)

// uploadBytes is the length above which a request's body is an upload, which may take longer than
// Policy.AttemptTimeout. The operating system takes a shorter body at once, so sending it is no
// progress.
const uploadBytes = 64 << 10

// isUpload reports whether the body of req is an upload, or may be one by its unknown length.
func isUpload(req *http.Request) bool {
	return hasBody(req) && (req.ContentLength > uploadBytes || req.ContentLength <= 0)
}

// keepBody keeps an unread body for the next attempt, and reports whether it could. From then on
// the base transport cannot read it.
func (w *requestProgress) keepBody() bool {
	for {
		was := w.bodyState.Load()
		if was&bodyTouched != 0 {
			return false
		}
		if w.bodyState.CompareAndSwap(was, was|bodyKept) {
			return true
		}
	}
}

// endBody ends a call whose body can be read once. It closes the caller's body if the base
// transport has closed its own, or no attempt gets it any more.
func (x *exchange) endBody() {
	if x.replay != nil {
		x.replay.endCall()
		return
	}
	if x.out == nil {
		return
	}
	was := x.out.progress.bodyState.Or(bodyOver)
	if was&bodyKept != 0 || was&(bodyTouched|bodyClosed) == bodyClosed {
		x.req.Body.Close()
	}
}

func hasBody(req *http.Request) bool { return req.Body != nil && req.Body != http.NoBody }

// outgoingBody is the body of a request on its way. It reports an upload's progress, and when the
// base transport closes it.
type outgoingBody struct {
	io.ReadCloser
	attempt   context.Context // for its progress; nil: that does not matter
	out       *outgoing
	unread    int64 // bytes of the Content-Length; below 0 the body is longer
	hasLength bool  // Content-Length is above 0
	once      bool  // it can be sent again only while nothing was read of it
	permit    *bodyPermit
}

// The states of a body, as bits of requestProgress.bodyState.
const (
	bodyTouched uint32 = 1 << iota // a Read of it has begun
	bodyWaiting                    // a Read of bytes that are due is under way, or was when the attempt's time ended
	bodyFailed                     // a Read has failed, or the length is not the Content-Length
	bodyClosed                     // the base transport has closed it
	bodyKept                       // untouched, for the next attempt
	bodyOver                       // the call is over
	bodySending                    // there is a body, and it is not closed yet
	bodyAwaited                    // closing it releases the attempt's context
	bodyEnded                      // it was read to its end
)

func (b *outgoingBody) Read(p []byte) (int, error) {
	if !b.permit.acquire() {
		return 0, http.ErrBodyReadAfterClose
	}
	state, mark := &b.out.progress.bodyState, bodyTouched
	if b.unread > 0 || !b.hasLength {
		mark |= bodyWaiting
	}
	if state.Or(mark)&bodyKept != 0 {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.ReadCloser.Read(p)
	b.permit.release()
	failed := err != nil && err != io.EOF
	if err == io.EOF {
		state.Or(bodyEnded)
	}
	if b.hasLength {
		b.unread -= int64(n)
		failed = failed || b.unread < 0 || err == io.EOF && b.unread > 0
	}
	if failed && state.Load()&bodyClosed == 0 { // otherwise Close has ended the Read
		state.Or(bodyFailed)
	}
	if mark&bodyWaiting != 0 && b.out.progress.Err() == nil { // http.Transport lets it return before it does
		state.And(^bodyWaiting)
	}
	if (n > 0 || err == io.EOF) && b.attempt != nil {
		lull.Progress(b.attempt)
	}
	return n, err
}

// Close leaves a caller's body open that may be sent again: see exchange.endBody.
func (b *outgoingBody) Close() (err error) {
	was := b.out.progress.bodyState.Or(bodyClosed)
	if was&bodyKept == 0 && !(b.once && was&(bodyTouched|bodyOver) == 0) {
		err = b.ReadCloser.Close()
	}
	if b.out.progress.bodyState.And(^(bodySending|bodyAwaited))&bodyAwaited != 0 {
		b.out.detached().Release()
	}
	return err
}

// bodyOf returns the body of get, the request's GetBody.
func bodyOf(get func() (io.ReadCloser, error), lease *bodyPermit) (io.ReadCloser, error) {
	if !lease.acquire() {
		return nil, http.ErrBodyReadAfterClose
	}
	defer lease.release()
	body, err := get()
	switch {
	case err == nil && body == nil:
		return nil, errors.New("GetBody returned neither a body nor an error")
	case err != nil && body != nil:
		body.Close()
	}
	return body, err
}

// wrapBody wraps the body of out, so that it reports to ctx, the attempt's context. That matters for
// an upload, and for what its sender may send slowly.
func (out *outgoing) wrapBody(ctx context.Context, wrapped *outgoingBody, once, streamed bool, lease *bodyPermit) {
	req := &out.req
	upload := isUpload(req)
	if !upload && !streamed {
		ctx = nil
	}
	out.progress.bodyState.Or(bodySending)
	*wrapped = outgoingBody{req.Body, ctx, out, req.ContentLength, req.ContentLength > 0, once, lease}
	req.Body = wrapped
	if get := req.GetBody; get != nil && (upload || lease != nil) {
		// http.Transport itself takes another body when it repeats a request on a
		// new connection.
		req.GetBody = func() (io.ReadCloser, error) {
			body, err := bodyOf(get, lease)
			if err != nil {
				return nil, err
			}
			out.progress.bodyState.And(^(bodyFailed | bodyClosed | bodyEnded))
			out.progress.bodyState.Or(bodySending)
			return &outgoingBody{body, ctx, out, req.ContentLength, req.ContentLength > 0, false, lease}, nil
		}
	}
}

// releaseContext ends the attempt's context at the end of the response, or else of the request's
// body: over HTTP/2 a server may answer before it has read everything.
func (out *outgoing) releaseContext() {
	if out.progress.bodyState.Or(bodyAwaited)&(bodySending|bodyAwaited) != bodySending {
		out.detached().Release()
	}
}
