package idempotency

import (
	"bytes"
	"errors"
	"io"
	"net/http"
)

var (
	errTooLong = errors.New("idempotency: the body is too long")
	// errConsumed: without this check all payloads would look the same.
	errConsumed = errors.New("idempotency: the body was read before it came here: put what reads it inside of the middleware")
)

// firstRead is the room that is made for a body before anything of it has come: what
// net/http has for a connection anyway. From there on it doubles.
const firstRead = 4 << 10

func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	if r.ContentLength > limit {
		// Nothing is read, so a client that expects 100-continue sends nothing.
		return nil, errTooLong
	}
	var b bytes.Buffer
	if r.ContentLength > 0 {
		// The buffer grows with what has arrived, not with what was announced: a connection
		// that sends nothing costs nothing.
		b.Grow(int(min(r.ContentLength, firstRead)) + bytes.MinRead)
	}
	// MaxBytesReader has net/http close the connection, so that what is too long need
	// not be read to its end.
	_, err := b.ReadFrom(http.MaxBytesReader(w, r.Body, limit))
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		return nil, errTooLong
	}
	if err == nil && b.Len() == 0 && r.ContentLength > 0 {
		err = errConsumed
	}
	return b.Bytes(), err
}

func withBody(r *http.Request, body []byte) *http.Request {
	r = r.WithContext(r.Context())
	r.Body = http.NoBody
	if len(body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	r.ContentLength = int64(len(body))
	r.TransferEncoding = nil
	return r
}
