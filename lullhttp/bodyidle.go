package lullhttp

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/driver"
	"github.com/lullgo/lull/internal/option"
)

// DefaultBodyIdleTimeout is the limit that NewClient sets: see [WithBodyIdleTimeout].
const DefaultBodyIdleTimeout = time.Minute

// WithBodyIdleTimeout limits how long a Read of a response's body waits for its next byte. After d
// it closes the body and returns a timeout (os.ErrDeadlineExceeded). It limits neither slow readers
// nor connections that have switched protocols. [NewClient] sets it, since neither Policy.Deadline
// nor AttemptTimeout covers the body. Zero, the default of [New], is no limit, as streams need that
// may be silent for longer.
//
// It costs up to three allocations for a response with a body, and about 100 ns for each Read.
func WithBodyIdleTimeout(d time.Duration) Option {
	return option.If(d >= 0, func(t *Transport) { t.bodyIdle = d },
		"lullhttp: WithBodyIdleTimeout(%v): want a positive duration, or 0 for no limit", d)
}

func limitIdle(resp *http.Response, limit time.Duration, detached driver.Detached) {
	if bodiless(resp) {
		return
	}
	if _, upgraded := resp.Body.(io.Writer); upgraded {
		return
	}
	resp.Body = &idleBody{ReadCloser: resp.Body, limit: limit, detached: detached}
}

// idleBody is a body that limits how long a Read waits.
type idleBody struct {
	io.ReadCloser
	limit    time.Duration
	detached driver.Detached
	timer    *time.Timer // made by the first Read, and running during each
	timedOut atomic.Bool // it has fired
}

func (b *idleBody) Read(p []byte) (int, error) {
	if b.timer == nil {
		b.timer = time.AfterFunc(b.limit, b.expire)
	} else {
		b.timer.Reset(b.limit)
	}
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	if err != nil && err != io.EOF && b.timedOut.Load() {
		err = &bodyIdleError{b.limit}
	}
	return n, err
}

// expire ends the Read that is under way.
func (b *idleBody) expire() {
	b.timedOut.Store(true)
	interruptRead(b.ReadCloser, b.detached)
}

type bodyIdleError struct{ limit time.Duration }

func (e *bodyIdleError) Error() string {
	return fmt.Sprintf("lullhttp: no byte of the response's body came for %v (WithBodyIdleTimeout)", e.limit)
}
func (e *bodyIdleError) Timeout() bool        { return true }
func (e *bodyIdleError) Temporary() bool      { return true } // for net.Error
func (e *bodyIdleError) Is(target error) bool { return target == os.ErrDeadlineExceeded }
