package lullotel_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	lullotel "github.com/lullgo/lull/integrations/lullotel"
)

// A call that is retried twice, as a trace shows it.
func Example() {
	shown := tracetest.NewInMemoryExporter()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(shown))
	t, err := lullotel.New(lullotel.WithTracerProvider(tracers), lullotel.WithMeterProvider(sdkmetric.NewMeterProvider()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer t.Close()
	policy := lull.Policy{Backoff: backoff.Schedule{Base: time.Millisecond, Jitter: backoff.None}}
	payments, err := lull.NewDependency("payments", policy, t.Options()...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer t.Watch(payments)()

	n := 0
	_, err = lullotel.Do(context.Background(), t, payments, func(context.Context) (string, error) {
		if n++; n < 3 {
			return "", lull.Transient(errors.New("connection refused"))
		}
		return "paid", nil
	}, lull.Operation("charge"))
	fmt.Println(err)

	for _, span := range shown.GetSpans() {
		fmt.Println(span.Name)
		for _, e := range span.Events {
			fmt.Println(" ", e.Name, e.Attributes[0].Value.String(), e.Attributes[1].Value.String())
		}
		for _, a := range span.Attributes {
			if a.Key == "retry.attempt" || a.Key == "retry.reason" || a.Key == "retry.outcome" {
				fmt.Println("  "+string(a.Key)+":", a.Value.String())
			}
		}
	}
	// Output:
	// <nil>
	// call payments charge
	//   retry.wait 1 1
	//   retry.wait 2 2
	//   retry.attempt: 3
	//   retry.reason: success
	//   retry.outcome: success_retry
}

// What callers hold, and what is left of the budget, as metrics show it.
func ExampleTelemetry_Watch() {
	reader := sdkmetric.NewManualReader()
	t, err := lullotel.New(lullotel.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer t.Close()
	policy := lull.Policy{Attempts: 2, Backoff: backoff.Schedule{Base: time.Millisecond, Jitter: backoff.None}}
	payments, err := lull.NewDependency("payments", policy, t.Options()...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer t.Watch(payments)()
	lull.Run(context.Background(), payments, func(context.Context) error { return lull.Transient(errors.New("connection refused")) })

	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Gauge[float64]:
			for _, p := range data.DataPoints {
				fmt.Println(m.Name, p.Value)
			}
		case metricdata.Sum[float64]:
			for _, p := range data.DataPoints {
				in, _ := p.Attributes.Value("in")
				fmt.Println(m.Name, in.AsString(), p.Value > 0)
			}
		}
	}
	// Unordered output:
	// retry.held attempt true
	// retry.held wait true
	// retry.budget.tokens 19
	// retry.budget.stock 20
	// retry.cooldown 0
}
