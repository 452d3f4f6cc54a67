package main

import "testing"

// The measurements of the command as Go benchmarks. With -cpu 1 they run on one
// goroutine, with more in parallel.

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
			b.Run(s.name, func(b *testing.B) {
				if err := loop(b, s); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}
