package lullhttp

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// peekTime is how long a response is held back for the beginning of its body. Servers usually send
// both together.
const peekTime = 250 * time.Millisecond

const peekBytes = 4 << 10 // at a time

// peek reads up to limit bytes of the body of resp, for no longer than within. It returns true if
// they are the whole body, or as many as the limit; with first, if there are some, or the body is
// empty. The body can be read from its beginning afterwards.
func peek(resp *http.Response, limit int, first bool, within time.Duration) ([]byte, bool) {
	if resp.Body == nil || resp.Body == http.NoBody {
		return nil, resp.Body != nil
	}
	a := &prefetchedBody{body: resp.Body, done: make(chan struct{})}
	a.more.L = &a.mu
	resp.Body = a
	go a.prefetch(limit, first)
	timer := time.NewTimer(max(within, 0))
	defer timer.Stop()
	select {
	case <-a.done:
	case <-timer.C:
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.buf, a.over && (a.err == nil || a.err == io.EOF)
}

// prefetchedBody is a body whose beginning is read by a goroutine. A Read cannot be given up
// without closing the body, so it goes on after peek has returned, and what it reads is kept.
type prefetchedBody struct {
	body io.ReadCloser
	done chan struct{} // closed when prefetching is over

	mu   sync.Mutex
	more sync.Cond // there is more in buf, or it is over
	buf  []byte    // what was prefetched; only appended to
	read int       // how much of it was read by the owner
	over bool      // prefetching is over
	err  error     // what ended that; nil: the limit
}

func (a *prefetchedBody) prefetch(limit int, first bool) {
	defer close(a.done)
	chunk := make([]byte, min(limit, peekBytes))
	for left := limit; ; {
		n, err := a.body.Read(chunk[:min(left, len(chunk))])
		left -= n
		a.mu.Lock()
		a.buf = append(a.buf, chunk[:n]...)
		a.err, a.over = err, err != nil || left == 0 || first && n > 0
		over := a.over
		a.more.Broadcast()
		a.mu.Unlock()
		if over {
			return
		}
	}
}

func (a *prefetchedBody) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	a.mu.Lock()
	for a.read == len(a.buf) && !a.over {
		a.more.Wait()
	}
	n := copy(p, a.buf[a.read:])
	a.read += n
	err := a.err
	a.mu.Unlock()
	if n > 0 {
		return n, nil
	}
	if err != nil {
		return 0, err
	}
	return a.body.Read(p)
}

// isEmpty reports whether the body has ended without a byte.
func (a *prefetchedBody) isEmpty() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.over && a.err == io.EOF && len(a.buf) == 0
}

// Close ends the prefetching as well.
func (a *prefetchedBody) Close() error { return a.body.Close() }
