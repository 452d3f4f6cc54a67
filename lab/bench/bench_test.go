package bench

import (
	"context"
	"runtime"
	"testing"

	"github.com/lullgo/lull/internal/must"
)

// With -cpu 1 the benchmarks run on one goroutine, with more in parallel.

func BenchmarkRetrySuccess(b *testing.B)    { benchmark(b, "RetrySuccess") }
func BenchmarkComposedSuccess(b *testing.B) { benchmark(b, "ComposedSuccess") }
func BenchmarkThreeFailures(b *testing.B)   { benchmark(b, "ThreeFailures") }
func BenchmarkHTTPGet(b *testing.B)         { benchmark(b, "HTTPGet") }
func BenchmarkHTTPPut1K(b *testing.B)       { benchmark(b, "HTTPPut1K") }
func BenchmarkHedgeSuccess(b *testing.B)    { benchmark(b, "HedgeSuccess") }
func BenchmarkHedgeGet(b *testing.B)        { benchmark(b, "HedgeGet") }
func BenchmarkMetrics(b *testing.B)         { benchmark(b, "Metrics") }
func BenchmarkGRPCUnary(b *testing.B)       { benchmark(b, "GRPCUnary") }
func BenchmarkAdapters(b *testing.B)        { benchmark(b, "Adapters") }

func benchmark(b *testing.B, name string) {
	for _, g := range groups() {
		if g.name != name {
			continue
		}
		for _, s := range g.subjects {
			b.Run(s.name+"/"+s.does.String(), s.measure)
		}
	}
}

// measure is the benchmark of one subject: on one core a plain loop, on several a
// goroutine for each, all with the subject's one shared state.
func (s subject) measure(b *testing.B) {
	bind := s.start(b.Cleanup)
	b.ReportAllocs()
	ready := func() (call func() error) {
		ctx, cancel := context.WithCancel(context.Background())
		b.Cleanup(cancel)
		return bind(ctx)
	}
	if runtime.GOMAXPROCS(0) == 1 {
		call := ready()
		b.ResetTimer()
		for range b.N {
			must.Succeed(call())
		}
		return
	}
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		call := ready()
		for pb.Next() {
			if err := call(); err != nil {
				b.Error(err)
			}
		}
	})
}
