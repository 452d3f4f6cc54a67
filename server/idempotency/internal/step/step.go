// Package step marks the places in the protocol at which a process may be killed, so
// that the tests of a store can kill it there. Nothing is hooked in production, where
// a place costs one load.
package step

import "sync/atomic"

// A Point is a place between two steps of the middleware.
type Point string

const (
	BeforeClaim   Point = "before claim"
	AfterClaim    Point = "after claim"
	AfterHandler  Point = "after handler"
	AfterComplete Point = "after complete" // before the response is sent
	AfterResponse Point = "after response"
)

var hook atomic.Pointer[func(Point)]

// At is called by the middleware when it has come to p.
func At(p Point) {
	if f := hook.Load(); f != nil {
		(*f)(p)
	}
}

// Set has f called at every point, until it is set anew; nil for none.
func Set(f func(Point)) {
	if f == nil {
		hook.Store(nil)
		return
	}
	hook.Store(&f)
}
