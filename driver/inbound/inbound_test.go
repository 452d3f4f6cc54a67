package inbound_test

import (
	"context"
	"testing"
	"time"

	"github.com/lullgo/lull/driver/inbound"
)

type someKey struct{}

// own is a context that has the one below in an embedded field.
type own struct {
	context.Context
	name string
}

// lasting is a context that never ends, without context.WithoutCancel.
type lasting struct{ context.Context }

func (lasting) Deadline() (time.Time, bool) { return time.Time{}, false }
func (lasting) Done() <-chan struct{}       { return nil }
func (lasting) Err() error                  { return nil }

// hidden has the context below in a field that is not embedded.
type hidden struct{ below context.Context }

func (h hidden) Deadline() (time.Time, bool) { return h.below.Deadline() }
func (h hidden) Done() <-chan struct{}       { return h.below.Done() }
func (h hidden) Err() error                  { return h.below.Err() }
func (h hidden) Value(k any) any             { return h.below.Value(k) }

// A retry marks the work for it. Work for later, in a context that does not end with the
// request's or after its end, is no part of it.
func TestLaterWorkIsNoPartOfTheRequest(t *testing.T) {
	with := func(ctx context.Context, cancel context.CancelFunc) context.Context {
		t.Cleanup(cancel)
		return ctx
	}
	kinds := map[string]func(context.Context) context.Context{
		"itself": func(ctx context.Context) context.Context { return ctx },
		"value":  func(ctx context.Context) context.Context { return context.WithValue(ctx, someKey{}, 1) },
		"cancel": func(ctx context.Context) context.Context { return with(context.WithCancel(ctx)) },
		"cause": func(ctx context.Context) context.Context {
			c, cancel := context.WithCancelCause(ctx)
			return with(c, func() { cancel(nil) })
		},
		"timeout": func(ctx context.Context) context.Context { return with(context.WithTimeout(ctx, time.Hour)) },
		"own":     func(ctx context.Context) context.Context { return own{ctx, "x"} },
		"*own":    func(ctx context.Context) context.Context { return &own{ctx, "x"} },
		"hidden":  func(ctx context.Context) context.Context { return hidden{ctx} },
	}
	later := map[string]func(context.Context) context.Context{
		"":              nil,
		"WithoutCancel": context.WithoutCancel,
		"its own":       func(ctx context.Context) context.Context { return lasting{ctx} },
	}
	for below, derive := range kinds {
		for what, last := range later {
			for above, again := range kinds {
				for _, attempt := range []int{1, 2} {
					ctx, in := inbound.With(t.Context(), attempt, time.Hour)
					c := derive(ctx)
					// A first attempt marks nothing, and is not looked at so closely.
					part := last == nil || attempt == 1
					if last != nil {
						c = last(c)
					}
					c = again(c)
					if got := inbound.From(c); (got == in) != part || part == (got == nil) {
						t.Errorf("%s, %q, %s, attempt %d: part of the request: %v, want %v", below, what, above, attempt, got != nil, part)
					}
					if !part && inbound.From(c).Attempt() != 1 {
						t.Errorf("%s, %q, %s: attempt %d", below, what, above, inbound.From(c).Attempt())
					}
					in.End()
					if got := inbound.From(c); got != nil {
						t.Errorf("%s, %q, %s, attempt %d: part of a request that has ended", below, what, above, attempt)
					}
				}
			}
		}
	}
	outer, _ := inbound.With(t.Context(), 1, 0)
	inner, in := inbound.With(context.WithoutCancel(outer), 2, 0)
	if inbound.From(with(context.WithCancel(inner))) != in {
		t.Error("a request within what another has started is one")
	}
}
