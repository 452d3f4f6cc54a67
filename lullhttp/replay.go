package lullhttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/option"
)

// WithReplay lets a body be sent again for which the request has no GetBody, as with the SDKs of
// AWS and MinIO, and in a proxy: an io.ReadSeeker, and a body of at most limit bytes. What is read
// of the latter is kept in memory until the response begins. A body of unknown length is kept as it
// comes. If more than limit bytes were read of it, it is not kept any more, and a failure ends the
// call ([lull.ErrNotReplayable]). A limit of zero allows only ReadSeekers. All other bodies are sent
// once.
//
// A ReadSeeker is set back to its position when the base transport has closed the body of the
// attempt before. Requests with these bodies are not hedged.
func WithReplay(limit int64) Option {
	return option.If(limit >= 0, func(t *Transport) { t.replays, t.replayLimit = true, limit },
		"lullhttp: WithReplay(%d): want a number of bytes, or 0 for an io.ReadSeeker alone", limit)
}

// replay is a body that every attempt of a call gets, one after the other.
type replay struct {
	body   io.ReadCloser // the caller's
	source io.Reader
	seek   io.Seeker // source; nil: what is read of it is kept
	from   int64     // where seek stood
	limit  int64     // of kept

	mu      sync.Mutex
	changed sync.Cond // something of the following has
	kept    []byte
	err     error       // what ended source; nil: nothing yet
	reading bool        // a Read of source is under way, of any attempt
	lost    bool        // source had more than was to be kept
	failed  bool        // the latest attempt has, and maybe another follows: until then no Read makes the body lost
	attempt int         // the latest
	last    *replayBody // its latest
	over    bool        // no other attempt follows
	ended   bool        // the caller's body is closed
}

// replayOf returns nil for a body that can be sent only once.
func (t *Transport) replayOf(req *http.Request) *replay {
	r := &replay{body: req.Body, source: req.Body, limit: t.replayLimit}
	r.changed.L = &r.mu
	if s := seeker(req.Body); s != nil {
		if from, err := s.Seek(0, io.SeekCurrent); err == nil { // a pipe has no position
			r.source, r.seek, r.from = s, s, from
			return r
		}
	}
	if r.limit > 0 && req.ContentLength <= r.limit {
		return r
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
// transport may read the body before until it closes it, even after RoundTrip has returned. A
// ReadSeeker has to wait for that. What is kept does not: the body before gives nothing any more.
func (r *replay) bodyFor(ctx context.Context, attempt int) (io.ReadCloser, error) {
	last, err := r.beginAttempt(attempt)
	if err != nil {
		return nil, err
	}
	if last != nil && r.seek != nil {
		timer := time.NewTimer(drainTime)
		defer timer.Stop()
		select {
		case <-last.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timer.C:
			return nil, errors.New("the base transport has not closed the body of the attempt before")
		}
		if _, err := r.seek.Seek(r.from, io.SeekStart); err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.last != last || r.over:
		return nil, errNotItsTurn
	case r.readsTooMuch():
		return nil, errLost
	}
	r.failed, r.last = false, &replayBody{replay: r, done: make(chan struct{})}
	return r.last, nil
}

var (
	errNotItsTurn = errors.New("the body belongs to a later attempt, or the call is over")
	// errLost is for a base transport that repeats what the server has refused.
	errLost = lull.Transient(errors.New("lullhttp: the request was refused, and its body is longer than WithReplay keeps"))
)

// beginAttempt begins the attempt, and returns the body before its next one. That is closed unless
// the base transport has to do it: over HTTP/2 net/http does not close a body that it could not
// begin to send.
func (r *replay) beginAttempt(attempt int) (*replayBody, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if attempt < r.attempt || r.over {
		return nil, errNotItsTurn
	}
	if b := r.last; b != nil && (r.seek == nil || attempt == r.attempt && !b.touched) {
		b.close()
	}
	r.attempt = attempt
	return r.last, nil
}

// readsTooMuch reports whether the source had more than was to be kept, or a Read is under way that
// may show it. Then nothing is kept any more. The lock is held.
func (r *replay) readsTooMuch() bool {
	if r.reading && r.seek == nil && r.isFull() {
		r.lose()
	}
	return r.lost
}

func (r *replay) isFull() bool { return int64(len(r.kept)) >= r.limit }

func (r *replay) lose() { r.lost, r.kept = true, nil }

// attemptFailed reports whether the body can be sent again, and keeps it so until the next attempt or
// endCall. The base transport can read more, so that its connection can be used again.
func (r *replay) attemptFailed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.readsTooMuch() {
		return false
	}
	r.failed = true
	return true
}

// endCall closes the caller's body, now or when that of the last attempt is closed.
func (r *replay) endCall() {
	r.mu.Lock()
	r.over = true
	if r.last != nil {
		r.last.forget()
	}
	r.unlockAndClose()
}

// unlockAndClose unlocks, and closes the caller's body if nobody reads it any more.
func (r *replay) unlockAndClose() {
	end := r.over && !r.ended && !r.reading && r.last != nil && r.last.closed
	r.ended = r.ended || end
	r.mu.Unlock()
	r.changed.Broadcast()
	if end {
		r.body.Close()
	}
}

type replayBody struct {
	*replay
	done chan struct{} // closed when it is closed and nobody reads

	// Guarded by mu.
	at      int  // in kept
	touched bool // a Read has begun
	closed  bool
}

func (b *replayBody) Read(p []byte) (n int, err error) {
	b.mu.Lock()
	b.touched = true
	for !b.closed && b.at >= len(b.kept) && b.err == nil && (b.reading || b.failed && b.keeps() && b.isFull()) {
		b.changed.Wait()
	}
	switch {
	case b.closed:
		err = http.ErrBodyReadAfterClose
	case b.at < len(b.kept):
		n = copy(p, b.kept[b.at:])
		b.at += n
		b.forget()
	case b.err != nil:
		err = b.err
	default:
		return b.readSource(p)
	}
	b.mu.Unlock()
	return n, err
}

// keeps reports whether what is read of the source is kept.
func (r *replay) keeps() bool { return r.seek == nil && !r.lost && !r.over }

// forget releases what was kept, when it was sent and the call is over.
func (b *replayBody) forget() {
	if b.over && b.at >= len(b.kept) {
		b.kept, b.at = nil, 0
	}
}

// readSource reads the source without the lock.
func (b *replayBody) readSource(p []byte) (n int, err error) {
	if b.keeps() && !b.isFull() {
		p = p[:min(int64(len(p)), b.limit-int64(len(b.kept)))]
	}
	b.reading = true
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		b.reading = false
		b.record(p[:n], err)
		if b.closed {
			close(b.done)
		}
		b.unlockAndClose()
	}()
	return b.source.Read(p)
}

// record keeps what was read of the source, for the next attempt or for the one that waits for this
// Read. The lock is held.
func (b *replayBody) record(p []byte, err error) {
	switch need := len(b.kept) + len(p); {
	case !b.keeps() && (b == b.last || b.seek != nil || b.lost):
	case int64(need) > b.limit:
		b.lose()
	default:
		if need > cap(b.kept) {
			grown := make([]byte, len(b.kept), min(int64(max(need, 2*cap(b.kept))), b.limit))
			copy(grown, b.kept)
			b.kept = grown
		}
		b.kept = append(b.kept, p...)
		b.at = len(b.kept)
		b.err = err
	}
}

// Close returns at once, also during a Read. It leaves the caller's body open for the next attempt.
func (b *replayBody) Close() error {
	b.mu.Lock()
	b.close()
	b.unlockAndClose()
	return nil
}

// close is Close with the lock held.
func (b *replayBody) close() {
	if !b.closed {
		b.closed = true
		if !b.reading {
			close(b.done)
		}
	}
}
