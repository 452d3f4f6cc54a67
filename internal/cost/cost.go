// Package cost compares calls with the same calls without lull. It is for tests and benchmarks of
// adapters.
package cost

import (
	"context"
	"runtime"
	"testing"
	"time"
)

// Calls are the call without lull and the call with it, by name.
type Calls map[string][2]func(context.Context) error

// Most are the allocations that a call with lull may make beyond those of the other: if that gets
// its caller's context as it is, and if that has a time limit, as the attempt has.
type Most struct{ Bare, Bounded float64 }

// limit stands for the timeout of an attempt. No call here comes near it.
const limit = time.Minute

// bounded is call under a timeout, as a careful caller would write it without lull.
func bounded(call func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return call(ctx)
	}
}

// requests returns a context as that of a request that a server works on: it can be cancelled, and has
// no deadline.
func requests(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return ctx
}

// Check fails the test if a call with lull makes more allocations beyond those of the other than
// most has for its name.
func Check(t *testing.T, calls Calls, most map[string]Most) {
	t.Helper()
	ctx := requests(t)
	for name, x := range calls {
		with := least(ctx, x[1])
		if bare := least(ctx, x[0]); with > bare+most[name].Bare {
			t.Errorf("%s: %v allocations, where without lull it is %v: want %v more at most", name, with, bare, most[name].Bare)
		}
		if bare := least(ctx, bounded(x[0])); with > bare+most[name].Bounded {
			t.Errorf("%s: %v allocations, where without lull and with a time limit it is %v: want %v more at most", name, with, bare, most[name].Bounded)
		}
	}
}

// least returns how many allocations f makes, at the least of five measurements: goroutines that
// end meanwhile make some of their own. What f leaves running gets its turn after each run, so that it is not
// at work during the next.
func least(ctx context.Context, f func(context.Context) error) float64 {
	run := func() { f(ctx); runtime.Gosched() }
	n := testing.AllocsPerRun(50, run)
	for range 4 {
		n = min(n, testing.AllocsPerRun(50, run))
	}
	return n
}

// Bench runs each call without lull, without it and with a time limit, and with lull.
func Bench(b *testing.B, calls Calls) {
	ctx := requests(b)
	for name, x := range calls {
		for _, c := range []struct {
			what string
			call func(context.Context) error
		}{{"bare", x[0]}, {"bounded", bounded(x[0])}, {"lull", x[1]}} {
			b.Run(name+"/"+c.what, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					c.call(ctx)
				}
			})
		}
	}
}
