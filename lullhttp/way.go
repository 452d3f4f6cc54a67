package lullhttp

import (
	"context"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
)

// A way is what is known of how far the request of an attempt has got. It is made of facts: what the
// base transport reports to package httptrace, and what it did to the request's body. It is also the
// context of the request, which is how the base transport finds whom to report to. Nothing is
// allocated for one that does not look.
type way struct {
	context.Context                        // the attempt's; under a pool with a limit *dials
	trace           atomic.Pointer[tracer] // of a base transport that reports
	body            atomic.Uint32          // what became of the request's body: bodyTouched and so on
	detached        bool                   // the response has taken the attempt's context over
}

// dials is the context of an attempt, with a trace that notes that a connection is being set up.
type dials struct {
	context.Context
	traced context.Context // Context with the trace
	begun  atomic.Bool
}

// tracer is what a base transport reports to.
type tracer struct {
	httptrace.ClientTrace
	again bool        // it can be used again: the caller has no trace
	asked atomic.Bool // for a connection
	got   atomic.Bool // a connection, so that the request may have been sent
}

// tracers are those that nothing reports to any more.
var tracers sync.Pool

// newTracer returns a tracer that also reports to the caller's own trace, if that is not nil.
func newTracer(callers *httptrace.ClientTrace) *tracer {
	t := new(tracer)
	if callers == nil {
		if t, _ := tracers.Get().(*tracer); t != nil {
			t.asked.Store(false)
			t.got.Store(false)
			return t
		}
		t.again, callers = true, new(httptrace.ClientTrace)
	}
	t.ClientTrace = *callers
	t.GetConn = func(address string) {
		t.asked.Store(true)
		if callers.GetConn != nil {
			callers.GetConn(address)
		}
	}
	t.GotConn = func(info httptrace.GotConnInfo) {
		t.got.Store(true)
		if callers.GotConn != nil {
			callers.GotConn(info)
		}
	}
	return t
}

// traceKey is the key under which package httptrace looks for a trace in a context. It does not
// export it, but asks for it.
var traceKey = func() any {
	var asked keyNote
	httptrace.ContextClientTrace(&asked)
	return asked.key
}()

// keyNote is a context that notes the key it is asked for.
type keyNote struct {
	context.Context
	key any
}

func (n *keyNote) Value(key any) any {
	n.key = key
	return nil
}

// newDials returns the context of an attempt, ctx being that without the trace.
func newDials(ctx context.Context) *dials {
	d := &dials{Context: ctx}
	d.traced = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSStart:     func(httptrace.DNSStartInfo) { d.begun.Store(true) },
		ConnectStart: func(string, string) { d.begun.Store(true) },
	})
	return d
}

// queued reports whether the request waits for a connection of a pool with a limit, which has not begun to
// set one up for it.
func (w *way) queued() bool {
	d, limited := w.Context.(*dials)
	return limited && !d.begun.Load()
}

// Value returns the tracer of the attempt where package httptrace looks for a trace.
func (w *way) Value(key any) any {
	if key != traceKey {
		return w.Context.Value(key)
	}
	if t := w.trace.Load(); t != nil {
		return &t.ClientTrace
	}
	callers, _ := w.Context.Value(key).(*httptrace.ClientTrace)
	t := newTracer(callers)
	if !w.trace.CompareAndSwap(nil, t) {
		t = w.trace.Load()
	}
	return &t.ClientTrace
}

// AfterFunc lets the context package hook children on without a goroutine each.
func (w *way) AfterFunc(f func()) (stop func() bool) { return afterFunc(w.Context, f) }

func (d *dials) Value(key any) any { return d.traced.Value(key) }

// AfterFunc is the same for those of a way.
func (d *dials) AfterFunc(f func()) (stop func() bool) { return afterFunc(d.Context, f) }

func afterFunc(ctx context.Context, f func()) (stop func() bool) {
	if c, ok := ctx.(interface {
		AfterFunc(f func()) (stop func() bool)
	}); ok {
		return c.AfterFunc(f)
	}
	return context.AfterFunc(ctx, f)
}

// reports reports whether the base transport has looked for a trace: it is, or has beneath it, one
// that reports.
func (w *way) reports() bool { return w.trace.Load() != nil }

// unsent reports whether nothing of the request was sent: the base transport has asked for a connection,
// and had none.
func (w *way) unsent() bool {
	t := w.trace.Load()
	return t != nil && t.asked.Load() && !t.got.Load()
}

// answered lets the tracer be used again, after an http.Transport has returned: nothing reports to
// GetConn or GotConn any more, and a connection that is still being set up finds nothing else in it.
func (w *way) answered() {
	if t := w.trace.Load(); t != nil && t.again {
		tracers.Put(t)
	}
}
