package proxy

import (
	"cmp"
	"io"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// A requestBody is the body of a request, as it comes from the client. The transport may read it after the handler has returned.
type requestBody struct {
	io.ReadCloser
	length int64 // 0: unknown
	n      atomic.Int64
	ended  atomic.Bool
	failed atomic.Pointer[error] // it broke off
	closed atomic.Bool           // by who read it
	http2  bool

	trailer   http.Header // of the request
	announced http.Header // its names; others are left out, as over HTTP/2

	mu     sync.Mutex
	idle   time.Duration // how long it may bring nothing; 0: for ever, as streams do, or it is over
	until  time.Time     // it must have brought something
	client *http.ResponseController
}

// takeBody returns the body of r, which it replaces; nil if there is none.
func takeBody(w http.ResponseWriter, r *http.Request, limits Limits) *requestBody {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	b := &requestBody{ReadCloser: r.Body, http2: r.ProtoMajor == 2, trailer: r.Trailer, client: http.NewResponseController(w)}
	if r.ContentLength > 0 {
		b.length = r.ContentLength
		b.idle = cmp.Or(limits.BodyIdle, defaultBodyIdle)
	}
	r.Body = b
	return b
}

func (b *requestBody) Read(p []byte) (int, error) {
	if b.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	b.wait(false)
	if b.announced == nil && len(b.trailer) > 0 {
		b.announced = maps.Clone(b.trailer)
	}
	n, err := b.ReadCloser.Read(p)
	b.n.Add(int64(n))
	if err != nil {
		b.mu.Lock()
		b.idle = 0 // net/http's own deadlines follow
		b.mu.Unlock()
		if err == io.EOF {
			b.ended.Store(true)
			maps.DeleteFunc(b.trailer, func(name string, _ []string) bool { _, ok := b.announced[name]; return !ok })
		} else if err != http.ErrBodyReadAfterClose && !b.closed.Load() {
			b.failed.CompareAndSwap(nil, &err)
		}
	}
	return n, err
}

// Close is called by a transport that gives up. Over HTTP/2 it ends a Read. Over HTTP/1 it would wait for that and for a part
// of the rest, and the response would wait, too: net/http does so when the handler has returned.
func (b *requestBody) Close() error {
	b.closed.Store(true)
	if !b.http2 {
		return nil
	}
	return b.ReadCloser.Close()
}

// wait gives the client time for the next bytes. last: for those that net/http discards when the handler has returned.
func (b *requestBody) wait(last bool) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.idle > 0 && b.awaited() {
		b.until = time.Now().Add(b.idle)
		_ = b.client.SetReadDeadline(b.until)
	}
	if last {
		b.idle = 0
	}
}

// whole reports whether all of it has been read.
func (b *requestBody) whole() bool {
	return b == nil || b.ended.Load() || b.length > 0 && b.n.Load() == b.length
}

// failure returns the error of the client, or nil.
func (b *requestBody) failure() error {
	if b == nil || b.failed.Load() == nil {
		return nil
	}
	return *b.failed.Load()
}

func (b *requestBody) bytes() int64 {
	if b == nil {
		return 0
	}
	return b.n.Load()
}

// awaited reports whether a part of the body is still to come.
func (b *requestBody) awaited() bool { return b != nil && b.n.Load() < b.length }

// late reports whether the client let the time pass. Then net/http cancels the request's context, as if it were gone.
func (b *requestBody) late() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.awaited() && !b.until.IsZero() && !time.Now().Before(b.until)
}

// bodyFailure returns the status for a client whose body could not be read, or 0.
func bodyFailure(r *http.Request) int {
	c := callOf(r.Context())
	switch {
	case c == nil || c.body == nil:
		return 0
	case c.body.late():
		return http.StatusRequestTimeout
	case c.body.failure() != nil:
		return http.StatusBadRequest
	}
	return 0
}
