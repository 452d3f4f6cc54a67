package lullotel

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/embedded"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

func TestNewRefuses(t *testing.T) {
	for name, o := range map[string]Option{"limits": WithLimits(Limits{Operations: -1}), "spans": WithSpans(9)} {
		if _, err := New(WithMeterProvider(noop.NewMeterProvider()), o); err == nil {
			t.Errorf("%s: no error", name)
		} else {
			t.Log(err)
		}
	}
	err := Limits{Dependencies: -1, Operations: -2, Codes: 1e6}.Validate()
	for _, field := range []string{"Dependencies", "Operations", "Codes"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%v does not name %s", err, field)
		}
	}
	if _, err := New(nil, WithMeterProvider(nil), WithTracerProvider(nil), WithPropagator(nil)); err != nil { // the global ones, which do nothing
		t.Error(err)
	}
}

// broken is a meter that lacks some instruments, or refuses a callback. Its provider has no other
// meter.
type broken struct {
	noop.Meter
	instruments, callback bool // which fail
	registered            int
}

type brokenProvider struct {
	noop.MeterProvider
	meter *broken
}

func (p brokenProvider) Meter(string, ...metric.MeterOption) metric.Meter { return p.meter }

var errBroken = errors.New("not here")

func (b *broken) Int64Histogram(name string, o ...metric.Int64HistogramOption) (metric.Int64Histogram, error) {
	if b.instruments {
		return nil, errBroken
	}
	return b.Meter.Int64Histogram(name, o...)
}

func (b *broken) Float64Histogram(name string, o ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	if b.instruments {
		return nil, errBroken
	}
	return b.Meter.Float64Histogram(name, o...)
}

func (b *broken) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	b.registered++
	if b.callback {
		return registration{b: b}, errBroken
	}
	return registration{b: b}, nil
}

type registration struct {
	embedded.Registration
	b *broken
}

func (r registration) Unregister() error {
	r.b.registered--
	return nil
}

func TestMetersThatFail(t *testing.T) {
	for _, c := range []struct {
		broken *broken
		names  []string
	}{
		{&broken{instruments: true}, []string{"consumer.attempt", "grpc.client.call.retries", "retry.delay", "messaging.process.duration"}},
		{&broken{callback: true}, nil},
	} {
		tel, err := New(WithMeterProvider(brokenProvider{meter: c.broken}))
		if tel != nil || !errors.Is(err, errBroken) || !strings.HasPrefix(err.Error(), "lullotel: ") {
			t.Fatalf("%v, %v", tel, err)
		}
		for _, name := range c.names {
			if !strings.Contains(err.Error(), name+": not here") {
				t.Errorf("%v does not name %s", err, name)
			}
		}
		check.Equal(t, c.broken.registered, 0, "callbacks that are left behind")
	}
}

// Two of them on one provider count together, as two dependencies of one name do.
func TestTwoOnOneProvider(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	a, b := newRig(t, WithMeterProvider(meters)), newRig(t, WithMeterProvider(meters))
	a.reader = reader
	for _, r := range []*rig{a, b, b} {
		r.Observe(t.Context(), lull.Event{Kind: event.CallEnded, Dependency: "d", Attempt: 1, EndedAttempt: 1, Elapsed: 1, AttemptTook: 1})
	}
	all := a.collect(t)
	all.want(t, 3, "retry.calls")
	all.want(t, 3, "retry.call.duration")
	must.Succeed(b.Close())
	a.collect(t).want(t, 1, "retry.calls")
}

// Events may come in any order, also after the end.
func TestAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
		r := newRig(t, WithMeterProvider(meters))
		d := dependencyOn(t, r, "d", steady())
		stop := r.Watch(d)
		ctx, call := r.Start(t.Context(), "d")
		for range 2 {
			if err := meters.Shutdown(t.Context()); err != nil && !errors.Is(err, sdkmetric.ErrReaderShutdown) {
				t.Error(err)
			}
			must.Succeed(r.tracer.Shutdown(t.Context()))
			must.Succeed(r.Close())
			stop()
			must.Succeed(Run(ctx, r.Telemetry, d, func(context.Context) error { return nil }))
			call.End(nil)
		}
	})
}

func TestNothingIsWatched(t *testing.T) {
	r := newRig(t)
	for _, stop := range []func(){
		r.Watch(), r.Watch(nil), r.WatchAll(nil), r.WatchConsumer("c", nil), r.WatchGate("g", nil),
		r.WatchAll(func(yield func(*lull.Dependency) bool) { yield(nil) }),
	} {
		r.collect(t)
		stop()
		stop()
	}
}

// Prometheus takes a counter that falls for a restart of the process: then it adds its whole value
// once more.
func TestCountersNeverFall(t *testing.T) {
	r := newRig(t)
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; !stop.Load(); i++ {
			e := lull.Event{Kind: event.CallEnded, Dependency: "d", Reason: engine.CircuitOpen}
			if i%4 == 0 {
				e.Reason, e.Attempt, e.EndedAttempt = engine.Success, 1, 1
			}
			r.Observe(context.Background(), e)
		}
	}()
	defer func() {
		stop.Store(true)
		<-done
	}()
	last := make(map[string]int64)
	for range 500 {
		all := r.collect(t)
		for _, name := range []string{"retry.calls", "retry.attempts", "retry.call.failures"} {
			d, _ := all[name].(metricdata.Sum[int64])
			for _, p := range d.DataPoints {
				series := name + p.Attributes.Encoded(attribute.DefaultEncoder())
				if p.Value < last[series] {
					t.Fatalf("%s fell from %d to %d", series, last[series], p.Value)
				}
				last[series] = p.Value
			}
		}
	}
}

// Everything at the same time, while policies are replaced and metrics are read.
func TestConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers, each = 8, 150
		r := newRig(t)
		p := steady()
		p.Backoff.Base, p.Backoff.Cap = 100*time.Microsecond, 100*time.Microsecond
		p.Breaker.Off, p.Budget.Unlimited = false, false
		p.Limit = bulkhead.Config{InFlight: workers}
		q := p
		q.Attempts, q.Hedge = 1, hedge.Config{Attempts: 3, Delay: 100 * time.Microsecond, Share: -1}
		d := dependencyOn(t, r, "d", p)
		defer r.Watch(d)()
		var attempts, panics atomic.Int64
		var stop atomic.Bool
		var calls, others sync.WaitGroup
		others.Go(func() {
			for i := 0; !stop.Load(); i++ {
				d.Update([]lull.Policy{p, q}[i%2])
				time.Sleep(70 * time.Microsecond)
			}
		})
		others.Go(func() {
			for !stop.Load() {
				r.collect(t)
				time.Sleep(50 * time.Microsecond)
			}
		})
		for w := range workers {
			calls.Go(func() {
				for i := range each {
					hedged := (w+i)%4 > 1
					op := func(ctx context.Context) (int, error) {
						switch n := attempts.Add(1); {
						case n%50 == 0 && !hedged: // the panic of an attempt that has lost is raised on its own goroutine
							panics.Add(1)
							panic("oh")
						case n%3 == 0:
							return 0, errDown
						}
						return 1, nil
					}
					func() {
						defer func() { recover() }()
						switch (w + i) % 4 {
						case 0:
							Do(context.Background(), r.Telemetry, d, op)
						case 1:
							lull.Do(context.Background(), d, op)
						case 2:
							DoHedged(context.Background(), r.Telemetry, d, op)
						case 3:
							lull.DoHedged(context.Background(), d, op)
						}
					}()
				}
			})
		}
		calls.Wait()
		stop.Store(true)
		others.Wait()
		all := r.collect(t)
		all.want(t, workers*each, "retry.calls")
		check.Equal(t, len(r.spans.GetSpans()), workers*each/2, "spans")
		all.want(t, float64(attempts.Load()), "retry.attempts")
		if n := all.value("retry.call.failures", "reason", "panicked"); n == 0 || n != float64(panics.Load()) {
			t.Errorf("%v calls panicked, want %v", n, panics.Load())
		}
	})
}

// Watch reports the values of the policy in force.
func TestWatchAfterUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p := steady()
		d := dependencyOn(t, r, "d", p)
		r.Watch(d)
		r.collect(t).wantSeries(t, 0, "retry.breaker.state")
		r.collect(t).wantSeries(t, 0, "retry.budget.tokens")
		p.Breaker.Off, p.Budget.Unlimited, p.Limit.InFlight = false, false, 5
		must.Succeed(d.Update(p))
		d.Breaker().ForceOpen(d.Now())
		r.collect(t).wantSeries(t, 3, "retry.breaker.state")
		r.collect(t).wantSeries(t, 1, "retry.budget.tokens")
		r.collect(t).wantSeries(t, 1, "retry.limit.in_flight")
		p.Limit.InFlight = 0
		must.Succeed(d.Update(p))
		r.collect(t).want(t, 1, "retry.breaker.state", "state", "open")
		r.collect(t).wantSeries(t, 0, "retry.limit.in_flight")
	})
}
