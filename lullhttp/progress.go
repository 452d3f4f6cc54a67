package lullhttp

import (
	"context"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
)

// A requestProgress is what is known of how far the request of an attempt has got. It is made of facts: what the
// base transport reports to package httptrace, and what it did to the request's body. It is also the
// context of the request, which is how the base transport finds whom to report to. Nothing is
// allocated for one that does not look.
type requestProgress struct {
	context.Context                        // the attempt's; under a pool with a limit *dials
	tracer          atomic.Pointer[tracer] // of a base transport that reports
	bodyState       atomic.Uint32          // what became of the request's body: bodyTouched and so on
	detached        bool                   // the response has taken the attempt's context over
}

// dialTrace is the context of an attempt, with a trace that notes that a connection is being set up.
type dialTrace struct {
	context.Context
	traced context.Context // Context with the trace
	begun  atomic.Bool
}

// tracer is what a base transport reports to.
type tracer struct {
	httptrace.ClientTrace
	reusable        bool        // it can be used again: the caller has no trace
	connectionAsked atomic.Bool // for a connection
	connectionGot   atomic.Bool // a connection, so that the request may have been sent
}

// tracers are those that nothing reports to any more.
var tracers sync.Pool

// newTracer returns a tracer that also reports to the caller's own trace, if that is not nil.
func newTracer(callers *httptrace.ClientTrace) *tracer {
	t := new(tracer)
	if callers == nil {
		if t, _ := tracers.Get().(*tracer); t != nil {
			t.connectionAsked.Store(false)
			t.connectionGot.Store(false)
			return t
		}
		t.reusable, callers = true, new(httptrace.ClientTrace)
	}
	t.ClientTrace = *callers
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

// traceKey is the key under which package httptrace looks for a trace in a context. It does not
// export it, but asks for it.
var traceKey = func() any {
	var asked keyRecorder
	httptrace.ContextClientTrace(&asked)
	return asked.key
}()

// keyRecorder is a context that notes the key it is asked for.
type keyRecorder struct {
	context.Context
	key any
}

func (n *keyRecorder) Value(key any) any {
	n.key = key
	return nil
}

// newDialTrace returns the context of an attempt, ctx being that without the trace.
func newDialTrace(ctx context.Context) *dialTrace {
	d := &dialTrace{Context: ctx}
	d.traced = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSStart:     func(httptrace.DNSStartInfo) { d.begun.Store(true) },
		ConnectStart: func(string, string) { d.begun.Store(true) },
	})
	return d
}

// waitsForConnection reports whether the request waits for a connection of a pool with a limit, which has not begun to
// set one up for it.
func (w *requestProgress) waitsForConnection() bool {
	d, limited := w.Context.(*dialTrace)
	return limited && !d.begun.Load()
}

// Value returns the tracer of the attempt where package httptrace looks for a trace.
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

// AfterFunc lets the context package hook children on without a goroutine each.
func (w *requestProgress) AfterFunc(f func()) (stop func() bool) { return afterFunc(w.Context, f) }

func (d *dialTrace) Value(key any) any { return d.traced.Value(key) }

// AfterFunc is the same for those of a way.
func (d *dialTrace) AfterFunc(f func()) (stop func() bool) { return afterFunc(d.Context, f) }

func afterFunc(ctx context.Context, f func()) (stop func() bool) {
	if c, ok := ctx.(interface {
		AfterFunc(f func()) (stop func() bool)
	}); ok {
		return c.AfterFunc(f)
	}
	return context.AfterFunc(ctx, f)
}

// hasTracer reports whether the base transport has looked for a trace: it is, or has beneath it, one
// that reports.
func (w *requestProgress) hasTracer() bool { return w.tracer.Load() != nil }

// nothingSent reports whether nothing of the request was sent: the base transport has asked for a connection,
// and had none.
func (w *requestProgress) nothingSent() bool {
	t := w.tracer.Load()
	return t != nil && t.connectionAsked.Load() && !t.connectionGot.Load()
}

// recycleTracer lets the tracer be used again, after an http.Transport has returned: nothing reports to
// GetConn or GotConn any more, and a connection that is still being set up finds nothing else in it.
func (w *requestProgress) recycleTracer() {
	if t := w.tracer.Load(); t != nil && t.reusable {
		tracers.Put(t)
	}
}
