package lullotel

import (
	"context"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/must"
)

// none is a span exporter that drops what it gets, in a processor that does nothing.
type none struct{}

func (none) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (none) OnEnd(sdktrace.ReadOnlySpan)                     {}
func (none) Shutdown(context.Context) error                  { return nil }
func (none) ForceFlush(context.Context) error                { return nil }

func benchTelemetry(tb testing.TB, sampler sdktrace.Sampler, opts ...Option) *Telemetry {
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(none{}), sdktrace.WithSampler(sampler))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	return must.Have(New(append([]Option{WithTracerProvider(tracers), WithMeterProvider(meters)}, opts...)...))
}

func succeed(context.Context) error { return nil }

// bare is a call that nobody observes, with a policy that needs no context of its own.
func bare(tb testing.TB, opts ...lull.Option) *lull.Dependency {
	return must.Have(lull.NewDependency("payments", lull.Policy{AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout}, opts...))
}

var charge = lull.Operation("charge")

// A call whose first attempt succeeds, with and without lullotel.
func BenchmarkCall(b *testing.B) {
	ctx := context.Background()
	run := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
		b.Run(name+"-parallel", func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					f()
				}
			})
		})
	}
	calls := func(d *lull.Dependency) func() { return func() { lull.Run(ctx, d, succeed, charge) } }
	t := benchTelemetry(b, sdktrace.AlwaysSample())
	run("unobserved", calls(bare(b)))
	run("unobserved-timed", calls(bare(b, lull.WithTiming())))
	run("counted", calls(bare(b, lull.WithObserver(t))))
	run("counted-timed", calls(bare(b, t.Options()...)))
	for name, s := range map[string]sdktrace.Sampler{"sampled": sdktrace.AlwaysSample(), "unsampled": sdktrace.NeverSample()} {
		t := benchTelemetry(b, s)
		d := bare(b, t.Options()...)
		run("span-"+name, func() { Run(ctx, t, d, succeed, charge) })
		t = benchTelemetry(b, s, WithSpans(SpansNoted))
		d = bare(b, t.Options()...)
		above, span := t.tracer.Start(ctx, "above")
		run("span-noted-"+name, func() { Run(above, t, d, succeed, charge) })
		span.End()
	}
}

// An observed call that succeeds allocates nothing more.
func TestNoAllocations(t *testing.T) {
	tel := benchTelemetry(t, sdktrace.AlwaysSample())
	ctx := context.Background()
	without := bare(t)
	with := bare(t, tel.Options()...)
	lull.Run(ctx, with, succeed, charge)
	a := testing.AllocsPerRun(1000, func() { lull.Run(ctx, without, succeed, charge) })
	b := testing.AllocsPerRun(1000, func() { lull.Run(ctx, with, succeed, charge) })
	if b > a {
		t.Errorf("%v allocations a call, %v without metrics", b, a)
	}
}
