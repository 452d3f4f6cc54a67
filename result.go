package lull

import (
	"context"
	"reflect"
	"sync/atomic"

	"github.com/lullgo/lull/internal/attempt"
	"github.com/lullgo/lull/internal/owned"
)

// A result such as an *http.Response is read after its attempt has returned, and needs the attempt's
// context for that. Package owned finds such results by their types.

// attempted makes an attempt of op in its context ctx. before is the result of the attempt before
// it.
func attempted[T any](ctx context.Context, op func(context.Context) (T, error), before T) (T, error) {
	in, own := ctx.(*attempt.Context)
	if !own { // it does not end with the attempt
		notePlain(reflect.TypeFor[T]())
		return op(ctx)
	}
	if in.Number > 1 {
		owned.Close(addressable(before), true)
	}
	out, err := op(ctx)
	return kept(in, out, err != nil), err
}

// plain has types whose values own nothing, by their addresses, if known and if there is room. It
// takes 2 ns to ask it, and 10 ns to ask package owned.
var plain [256]atomic.Uintptr

func isPlain[T any]() bool {
	p := reflect.ValueOf(reflect.TypeFor[T]()).Pointer()
	return plain[p>>6%256].Load() == p
}

// notePlain records whether values of type t own nothing, and reports it. Those of an interface
// type may own something.
func notePlain(t reflect.Type) bool {
	if owned.MayOwn(t) {
		return false
	}
	if t.Kind() != reflect.Interface {
		p := reflect.ValueOf(t).Pointer()
		plain[p>>6%256].Store(p)
	}
	return true
}

// kept returns the result of an attempt, and keeps the attempt's context alive for what that
// owns. After a failure that is only a stream: other values that come with an error are seldom
// new.
func kept[T any](in *attempt.Context, out T, failed bool) T {
	t := reflect.TypeFor[T]()
	if t.Kind() == reflect.Interface && !owned.MayOwn(t) {
		t = reflect.TypeOf(any(out)) // nil: there is none
	}
	if t == nil || notePlain(t) {
		return out
	}
	v := addressable(out)
	owned.KeepContextFor(in, v, failed)
	return *v.Addr().Interface().(*T)
}

// addressable returns a copy of v. Only the copy is allocated: v itself stays on the stack.
func addressable[T any](v T) reflect.Value {
	p := new(T)
	*p = v
	return reflect.ValueOf(p).Elem()
}
