package lullhttp

import (
	"io"
	"time"

	"github.com/lullgo/lull"
)

// A discarded body is read to its end so that its connection can be used again,
// but no further and no longer than this: beyond it a new connection is cheaper.
const (
	drainBytes = 64 << 10
	drainTime  = time.Second
)

// drain reads the rest of body within bounds and closes it.
func drain(body io.ReadCloser) {
	if body == nil {
		return
	}
	// Close while a Read is under way ends that Read, for HTTP/1 and 2 alike.
	late := time.AfterFunc(drainTime, func() { body.Close() })
	_, _ = io.CopyN(io.Discard, body, drainBytes)
	// A body of exactly that length still needs the read that finds its end.
	var one [1]byte
	_, _ = body.Read(one[:])
	late.Stop()
	body.Close()
}

// releasingBody is a body that ends its attempt's context when it ends or is
// closed.
type releasingBody struct {
	io.ReadCloser
	detached lull.Detached
}

func (b *releasingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.detached.Release()
	}
	return n, err
}

func (b *releasingBody) Close() error {
	err := b.ReadCloser.Close()
	b.detached.Release()
	return err
}

// releasingReadWriter is one that is also written to: that of a 101 response.
type releasingReadWriter struct {
	*releasingBody
	io.Writer
}
