package lullhttp

import (
	"context"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
)

// requestProgress records how far the request of an attempt has got: what the base transport
// reports to package httptrace, and what it did to the request's body. It is the context of the
// request, since the base transport looks for a trace there. If the base transport does not look,
// nothing is allocated.
type requestProgress struct {
	context.Context                        // the attempt's; a *dialTrace if the pool has a limit
	tracer          atomic.Pointer[tracer] // made when the base transport looks for a trace
	bodyState       atomic.Uint32          // what became of the request's body: bodyTouched and so on
	detached        bool                   // the response's body ends the attempt's context
}

// dialTrace is the context of an attempt, with a trace that records whether a connection is being
// set up.
type dialTrace struct {
	context.Context
	traced context.Context // Context with the trace
	begun  atomic.Bool
}

// A tracer gets the reports of a base transport.
type tracer struct {
	httptrace.ClientTrace
	reusable        bool        // another attempt may use it: the caller has no trace
	connectionAsked atomic.Bool // the base transport has asked for a connection
	connectionGot   atomic.Bool // it has one, so the request may have been sent
}

// tracers are those that nothing reports to.
var tracers sync.Pool

// newTracer returns a tracer that also reports to the caller's own trace, if that is not nil.
func newTracer(callers *httptrace.ClientTrace) *tracer {
	if callers != nil {
		return makeTracer(callers)
	}
	if t, _ := tracers.Get().(*tracer); t != nil {
		t.connectionAsked.Store(false)
		t.connectionGot.Store(false)
		return t
	}
	t := makeTracer(new(httptrace.ClientTrace))
	t.reusable = true
	return t
}

func makeTracer(callers *httptrace.ClientTrace) *tracer {
	t := &tracer{ClientTrace: *callers}
	t.GetConn = func(address string) {
		t.connectionAsked.Store(true)
		if callers.GetConn != nil {
			callers.GetConn(address)
		}
	}
	t.GotConn = func(info httptrace.GotConnInfo) {
		t.connectionGot.Store(true)
		if callers.GotConn != nil {
			callers.GotConn(info)
		}
	}
	return t
}

// traceKey is the key under which package httptrace looks for a trace in a context. It is not
// exported, so httptrace is made to look it up.
var traceKey = func() any {
	var asked keyRecorder
	httptrace.ContextClientTrace(&asked)
	return asked.key
}()

// keyRecorder is a context that records the key that it is asked for.
type keyRecorder struct {
	context.Context
	key any
}

func (n *keyRecorder) Value(key any) any {
	n.key = key
	return nil
}

// newDialTrace returns the context of an attempt, from the one without the trace.
func newDialTrace(ctx context.Context) *dialTrace {
	d := &dialTrace{Context: ctx}
	d.traced = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSStart:     func(httptrace.DNSStartInfo) { d.begun.Store(true) },
		ConnectStart: func(string, string) { d.begun.Store(true) },
	})
	return d
}

// waitsForConnection reports whether the request waits for a connection of a pool with a limit, and
// the pool has not begun to set one up for it.
func (w *requestProgress) waitsForConnection() bool {
	d, limited := w.Context.(*dialTrace)
	return limited && !d.begun.Load()
}

// Value returns the tracer of the attempt under the key of package httptrace.
func (w *requestProgress) Value(key any) any {
	if key != traceKey {
		return w.Context.Value(key)
	}
	if t := w.tracer.Load(); t != nil {
		return &t.ClientTrace
	}
	callers, _ := w.Context.Value(key).(*httptrace.ClientTrace)
	t := newTracer(callers)
	if !w.tracer.CompareAndSwap(nil, t) {
		t = w.tracer.Load()
	}
	return &t.ClientTrace
}

// AfterFunc spares package context a goroutine for each child.
func (w *requestProgress) AfterFunc(f func()) (stop func() bool) { return afterFunc(w.Context, f) }

func (d *dialTrace) Value(key any) any { return d.traced.Value(key) }

func (d *dialTrace) AfterFunc(f func()) (stop func() bool) { return afterFunc(d.Context, f) }

func afterFunc(ctx context.Context, f func()) (stop func() bool) {
	if c, ok := ctx.(interface {
		AfterFunc(f func()) (stop func() bool)
	}); ok {
		return c.AfterFunc(f)
	}
	return context.AfterFunc(ctx, f)
}

// nothingSent reports whether nothing of the request was sent: the base transport has asked for a
// connection, and had none.
func (w *requestProgress) nothingSent() bool {
	t := w.tracer.Load()
	return t != nil && t.connectionAsked.Load() && !t.connectionGot.Load()
}

// recycleTracer lets another attempt use the tracer, after an http.Transport has returned. Nothing
// reports to GetConn or GotConn any more, and a connection that is still being set up uses nothing
// else of it.
func (w *requestProgress) recycleTracer() {
	if t := w.tracer.Load(); t != nil && t.reusable {
		tracers.Put(t)
	}
}
