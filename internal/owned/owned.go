// Package owned finds the parts of a result that are read or closed after its attempt has returned: the body of an
// *http.Response, *sql.Rows, a stream of gRPC. It finds them by type: a method Close, CloseSend or Scan, or a field of type
// io.ReadCloser, up to three levels down.
package owned

import (
	"io"
	"reflect"
	"runtime"
	"sync"

	"github.com/lullgo/lull/internal/attempt"
)

// KeepContextFor keeps the context of an attempt alive for what v, its result, owns, but no longer than the caller's context.
// If v owns one body, the context ends when that is closed or read to its end. A wrapper replaces the body, so v must be
// settable, or hold a pointer. If v owns one pointer, the context ends when nobody refers to that. With streamsOnly, only
// bodies count.
func KeepContextFor(in *attempt.Context, v reflect.Value, streamsOnly bool) {
	var of reflect.Value
	var one part
	n := 0
	eachPart(v, func(p part, owned reflect.Value) {
		if p.stream || !streamsOnly {
			of, one, n = owned, p, n+1
		}
	})
	if n == 0 || !in.Detach() {
		return
	}
	if n > 1 {
		return // it ends with the caller's
	}
	if one.stream && of.CanSet() {
		body := of.Interface().(io.ReadCloser)
		if _, writes := body.(io.Writer); !writes { // else it is a connection, of which users expect more methods
			of.Set(reflect.ValueOf(&stream{body, in}))
			return
		}
	}
	if of.Kind() == reflect.Interface {
		of = of.Elem()
	}
	if of.Kind() == reflect.Pointer {
		cancelAfter(of, in)
	}
}

// cancelAfter ends the context when nobody refers to the pointer p any more, so that a caller's context
// which lives long does not keep it.
func cancelAfter(p reflect.Value, in *attempt.Context) {
	defer func() { _ = recover() }() // AddCleanup panics if Go has not allocated that memory
	runtime.AddCleanup((*byte)(p.UnsafePointer()), (*attempt.Context).Cancel, in)
}

// stream is a body that ends its attempt's context when it ends or is closed.
type stream struct {
	io.ReadCloser
	in *attempt.Context
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if err == io.EOF {
		s.in.Cancel()
	}
	return n, err
}

func (s *stream) Close() error {
	defer s.in.Cancel()
	return s.ReadCloser.Close()
}

// part is something in a result that is to be closed, or to be read once.
type part struct {
	path   []int // the indices of fields, from the result on; none: the result itself
	stream bool  // it is a field (or a result) of type io.ReadCloser, for which a wrapper may stand
}

var (
	streamType = reflect.TypeFor[io.ReadCloser]()
	closing    = [...]reflect.Type{
		reflect.TypeFor[io.Closer](),
		reflect.TypeFor[interface{ Close() }](),            // pgx.Rows
		reflect.TypeFor[interface{ CloseSend() error }](),  // streams of gRPC
		reflect.TypeFor[interface{ Scan(...any) error }](), // sql.Row
	}
	parts sync.Map // reflect.Type to []part: there are no more than the program has types
)

// MayOwn reports whether values of type t may own something. Of an interface type those in it may, as well.
func MayOwn(t reflect.Type) bool { return len(partsOf(t)) > 0 }

// partsOf returns what a value of type t owns.
func partsOf(t reflect.Type) []part {
	if have, ok := parts.Load(t); ok {
		return have.([]part)
	}
	var found []part
	for depth := 0; depth <= 3 && found == nil; depth++ {
		found = partsAt(depth, t, nil, nil)
	}
	parts.Store(t, found)
	return found
}

// partsAt appends what a value of type t owns so many levels down. The level nearest to the result counts
// alone: the Request of an *http.Response has a body, too.
func partsAt(depth int, t reflect.Type, path []int, found []part) []part {
	if depth == 0 {
		if t == streamType {
			return append(found, part{path, true})
		}
		for _, c := range closing {
			if t.Implements(c) {
				return append(found, part{path, false})
			}
		}
		return found
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return found
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() {
			found = partsAt(depth-1, f.Type, append(path[:len(path):len(path)], i), found)
		}
	}
	return found
}

// eachPart calls f with what v owns that is there.
func eachPart(v reflect.Value, f func(part, reflect.Value)) {
	if v.Kind() == reflect.Interface && v.Type() != streamType {
		v = v.Elem()
	}
	if !v.IsValid() {
		return
	}
	for _, p := range partsOf(v.Type()) {
		if owned := follow(v, p.path); isPresent(owned) {
			f(p, owned)
		}
	}
}

// follow returns the field at the end of path, or the zero Value if a pointer on the way is nil.
func follow(v reflect.Value, path []int) reflect.Value {
	for _, i := range path {
		if v.Kind() == reflect.Pointer {
			if v = v.Elem(); !v.IsValid() {
				return v
			}
		}
		v = v.Field(i)
	}
	return v
}

// isPresent reports whether v holds something. http.NoBody, for example, holds nothing.
func isPresent(v reflect.Value) bool {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return v.IsValid() && v.Type().Size() > 0
}

// Close closes the streams of v, a result that nobody gets, and unless it came with an error v itself.
// Other fields may be shared.
func Close(v reflect.Value, failed bool) {
	eachPart(v, func(p part, owned reflect.Value) {
		if !p.stream && (failed || len(p.path) > 0) {
			return
		}
		switch c := owned.Interface().(type) {
		case io.Closer:
			c.Close()
		case interface{ Close() }:
			c.Close()
		}
	})
}
