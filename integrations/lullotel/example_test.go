package lullotel_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
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
