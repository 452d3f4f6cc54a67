package lullhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"sync"
	"time"
)

// WithReplay lets a body be sent again for which the request has no GetBody, as with the SDKs of
// AWS and MinIO: an io.ReadSeeker, and a body of at most limit bytes by its Content-Length. What is
// read of the latter is kept in memory until the call ends. A limit of zero allows only
// ReadSeekers. All other bodies are sent once.
//
// A ReadSeeker is set back to its position when the base transport has closed the body of the
// attempt before. Requests with these bodies are not hedged.
func WithReplay(limit int64) Option {
	return func(t *Transport) error {
		if limit < 0 {
			return fmt.Errorf("lullhttp: WithReplay(%d): want a number of bytes, or 0 for an io.ReadSeeker alone", limit)
		}
		t.replays, t.replayLimit = true, limit
		return nil
	}
}

// replay is a body that every attempt of a call gets, one after the other.
type replay struct {
	body   io.ReadCloser // the caller's
	source io.Reader
	seek   io.Seeker // src; nil: what is read of it is kept
	from   int64     // where seek stood
	limit  int64     // of kept

	mu      sync.Mutex
	kept    []byte
	err     error       // what ended src; nil: nothing yet
	lost    bool        // src had more than was to be kept
	attempt int         // the latest
	last    *replayBody // its latest
	over    bool        // no other attempt follows
}

// replayOf returns nil for a body that can be sent only once.
func (t *Transport) replayOf(req *http.Request) *replay {
	if s := seeker(req.Body); s != nil {
		if from, err := s.Seek(0, io.SeekCurrent); err == nil { // a pipe has no position
			return &replay{body: req.Body, source: s, seek: s, from: from}
		}
	}
	if req.ContentLength > 0 && req.ContentLength <= t.replayLimit {
		return &replay{body: req.Body, source: req.Body, limit: t.replayLimit}
	}
	return nil
}

// seeker returns the body as a ReadSeeker, or nil. http.NewRequest hides one without Close in an
// io.NopCloser.
func seeker(body io.ReadCloser) io.ReadSeeker {
	if s, ok := body.(io.ReadSeeker); ok {
		return s
	}
	if typ := reflect.TypeOf(body); typ == nopCloser || typ == nopCloserWriterTo {
		s, _ := reflect.ValueOf(body).Field(0).Interface().(io.ReadSeeker)
		return s
	}
	return nil
}

var (
	nopCloser         = reflect.TypeOf(io.NopCloser(nil))
	nopCloserWriterTo = reflect.TypeOf(io.NopCloser(struct {
		io.Reader
		io.WriterTo
	}{}))
)

// bodyFor returns a body for the attempt with that number, the first or another one. The base
// transport may read the body before until it closes it, even after RoundTrip has returned.
func (r *replay) bodyFor(ctx context.Context, attempt int) (io.ReadCloser, error) {
	last, err := r.beginAttempt(attempt)
	if err != nil {
		return nil, err
	}
	if last != nil {
		timer := time.NewTimer(drainTime)
		defer timer.Stop()
		select {
		case <-last.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timer.C:
			return nil, errors.New("the base transport has not closed the body of the attempt before")
		}
		if r.seek != nil {
			if _, err := r.seek.Seek(r.from, io.SeekStart); err != nil {
				return nil, err
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.last != last || r.over:
		return nil, errNotItsTurn
	case r.lost:
		return nil, errors.New("it is longer than its Content-Length")
	}
	r.last = &replayBody{replay: r, done: make(chan struct{})}
	return r.last, nil
}

var errNotItsTurn = errors.New("the body belongs to a later attempt, or the call is over")

// beginAttempt begins the attempt, and returns the body before its next one. If that is of the same
// attempt and unread, it is closed: over HTTP/2 net/http does not close a body that it could not
// begin to send.
func (r *replay) beginAttempt(attempt int) (*replayBody, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if attempt < r.attempt || r.over {
		return nil, errNotItsTurn
	}
	if b := r.last; attempt == r.attempt && b != nil && !b.touched && !b.closed {
		b.closed = true
		close(b.done)
	}
	r.attempt = attempt
	return r.last, nil
}

// endCall closes the caller's body, now or when that of the last attempt is closed.
func (r *replay) endCall() {
	r.mu.Lock()
	r.over = true
	closeNow := r.last != nil && r.last.free()
	r.mu.Unlock()
	if closeNow {
		r.body.Close()
	}
}

type replayBody struct {
	*replay
	done chan struct{} // closed when it is closed and nobody reads

	// Guarded by mu.
	at      int  // in kept
	touched bool // a Read has begun
	reading bool
	closed  bool
}

func (b *replayBody) free() bool { return b.closed && !b.reading }

func (b *replayBody) Read(p []byte) (n int, err error) {
	b.mu.Lock()
	b.touched = true
	switch {
	case b.closed:
		err = http.ErrBodyReadAfterClose
	case b.at < len(b.kept):
		n = copy(p, b.kept[b.at:])
		b.at += n
	case b.err != nil:
		err = b.err
	default:
		b.reading = true
	}
	reads := b.reading
	b.mu.Unlock()
	if !reads {
		return n, err
	}
	n, err = b.source.Read(p)
	b.mu.Lock()
	b.recordRead(p[:n], err)
	b.reading = false
	b.unlockAndRelease()
	return n, err
}

// recordRead keeps what was read of the source. The lock is held.
func (b *replayBody) recordRead(p []byte, err error) {
	switch {
	case b.seek != nil || b.lost:
	case int64(len(b.kept)+len(p)) > b.limit:
		b.lost, b.kept, b.at = true, nil, 0
	default:
		b.kept = append(b.kept, p...)
		b.at = len(b.kept)
		b.err = err
	}
}

// Close returns at once, also during a Read. It leaves the caller's body open for the next attempt.
func (b *replayBody) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	b.unlockAndRelease()
	return nil
}

// unlockAndRelease unlocks, and releases the source if the body is closed and nobody reads.
func (b *replayBody) unlockAndRelease() {
	free, over := b.free(), b.over
	if free {
		close(b.done)
	}
	b.mu.Unlock()
	if free && over {
		b.body.Close()
	}
}
