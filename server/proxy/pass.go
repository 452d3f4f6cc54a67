package proxy

import (
	"cmp"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"time"
)

// pass makes the request of the door that r asks for, and answers with the response to it, as httputil.ReverseProxy does. With
// that, a request took 13 allocations more (BenchmarkDoorAlone) and 1 KB more of the stack, so that each connection kept 16 KB of
// stack in place of 8.
func (d *door) pass(w http.ResponseWriter, r *http.Request) {
	c := callOf(r.Context())
	out := c.outgoing(r)
	d.direct(out, r)
	if out.Body != nil {
		defer out.Body.Close() // a transport may read it for a while
	}
	c.early.passTo(w)
	resp, err := d.calls.RoundTrip(out)
	c.early.passTo(nil)
	if err == nil {
		if resp.StatusCode != http.StatusSwitchingProtocols {
			removeHopByHop(resp.Header)
		}
		if err = d.receive(resp); err != nil {
			resp.Body.Close()
		}
	}
	if err != nil {
		d.refuse(w, out, err)
		return
	}
	c.answer(w, resp)
}

// outgoing returns r without hop-by-hop headers, as a request that may be changed.
func (c *call) outgoing(r *http.Request) *http.Request {
	out, u := *r, *r.URL
	out.URL, out.Close = &u, false
	if r.ContentLength == 0 {
		out.Body = nil
	}
	h := maps.Clone(r.Header)
	upgrade := upgradeOf(h)
	removeHopByHop(h)
	for one := range elements(r.Header["Te"]) {
		if strings.EqualFold(one, "trailers") {
			h["Te"] = []string{"trailers"}
		}
	}
	if upgrade != "" {
		h["Connection"], h["Upgrade"] = []string{"Upgrade"}, []string{upgrade}
	}
	if _, ok := h["User-Agent"]; !ok {
		h["User-Agent"] = nil // net/http would send its own
	}
	out.Header = h
	return &out
}

// answer answers with resp.
func (c *call) answer(w http.ResponseWriter, resp *http.Response) {
	defer resp.Body.Close()
	h := w.Header()
	addHeader(h, resp.Header)
	announced := len(resp.Trailer)
	if announced > 0 {
		h["Trailer"] = []string{strings.Join(slices.Collect(maps.Keys(resp.Trailer)), ", ")}
	}
	w.WriteHeader(resp.StatusCode)
	if err := c.copyBody(w, resp); err != nil {
		panic(http.ErrAbortHandler) // so the client sees that it is not the whole
	}
	resp.Body.Close() // completes the trailer
	removeOurs(resp)
	if len(resp.Trailer) == 0 {
		return
	}
	_ = http.NewResponseController(w).Flush() // only a chunked body has trailers
	for name, values := range resp.Trailer {
		if len(resp.Trailer) != announced {
			name = http.TrailerPrefix + name
		}
		h[name] = append(h[name], values...)
	}
}

// addHeader adds what is in more. Lists of values are shared: neither side changes one.
func addHeader(h, more http.Header) {
	for name, values := range more {
		if had := h[name]; len(had) > 0 {
			values = slices.Concat(had, values)
		}
		h[name] = values
	}
}

// copyBody copies the body of a response. A part of one is sent on at once if nobody knows how long the body is, and after
// flushAfter if nothing follows.
func (c *call) copyBody(w http.ResponseWriter, resp *http.Response) error {
	if resp.Body == http.NoBody {
		return nil
	}
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	to := &c.flusher
	to.ResponseWriter = w
	to.late = true // the header
	if to.atOnce = resp.ContentLength < 0 || strings.EqualFold(strings.TrimSpace(kind), "text/event-stream"); to.atOnce {
		to.flush()
	} else {
		to.timer = time.AfterFunc(flushAfter, to.flush)
		defer to.stop()
	}
	p := buffers.Get().(*[]byte)
	defer buffers.Put(p)
	for {
		n, err := resp.Body.Read(*p)
		if n > 0 {
			if _, err := to.Write((*p)[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		} else if err != nil {
			c.Error = cmp.Or(c.Error, err.Error())
			return err
		}
	}
}

// flushAfter is how long a part of a body of known length is held back for more.
const flushAfter = 10 * time.Millisecond

var buffers = sync.Pool{New: func() any { return new(make([]byte, 16<<10)) }}

// A flusher sends on what has been written to it, at once or soon.
type flusher struct {
	http.ResponseWriter
	atOnce bool

	mu    sync.Mutex // also for writes, which a flush must not meet
	timer *time.Timer
	late  bool // flush is to come
}

func (f *flusher) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.ResponseWriter.Write(p)
	if f.atOnce {
		_ = http.NewResponseController(f.ResponseWriter).Flush()
	} else if !f.late {
		f.late = true
		f.timer.Reset(flushAfter)
	}
	return n, err
}

func (f *flusher) flush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.late {
		_ = http.NewResponseController(f.ResponseWriter).Flush()
	}
	f.late = false
}

func (f *flusher) stop() {
	f.timer.Stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.late = false
}

// early passes on responses that come before the one to a request (1xx).
type early struct {
	mu    sync.Mutex
	w     http.ResponseWriter // nil: to nobody
	trace httptrace.ClientTrace
}

func (e *early) passTo(w http.ResponseWriter) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.w = w
}

func (e *early) pass(status int, header textproto.MIMEHeader) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.w != nil {
		h := e.w.Header()
		addHeader(h, http.Header(header))
		e.w.WriteHeader(status)
		clear(h)
	}
	return nil
}
