// Package lullotel makes OpenTelemetry spans and metrics of the calls that lull makes. It uses
// only the OpenTelemetry API; the program chooses the SDK and the exporter.
//
//	t, err := lullotel.New()
//	...
//	payments, err := lull.NewDependency("payments", policy, t.Options()...)
//	...
//	defer t.Watch(payments)()
//	...
//	receipt, err := lullotel.Do(ctx, t, payments, charge, lull.Operation("charge"))
//
// Metrics need an observer: [Telemetry.Options] for every dependency. An observer receives events
// when they have happened, and cannot change the context of attempts. So a wrapper begins a
// call's span before the engine starts, and the events find it by the context:
//
//	driver      metrics                                span
//	lull.Do     NewDependency(name, p, t.Options()...)  lullotel.Do, Run, DoHedged, DoOr
//	lullhttp    lullhttp.With(t.Options()...)           t.Transport(calls); t.Resends below otelhttp
//	lullgrpc    lullgrpc.With(t.Options()...)           t.StartGRPC in an interceptor before lullgrpc's
//	queue       queue.WithObserver(t.Queue)             t.Handler(name, system, handler)
//	admission   admission.WithObserver(t.Admission(…))  none: the server's own span is there
//	your own    d with t.Options()                      ctx, call := t.Start(ctx, d.Name()); call.End(err)
//
// Current states (budgets, breakers, limits) are read together with the metrics:
// [Telemetry.Watch], WatchAll, WatchGate, WatchConsumer.
//
// A call is one span of kind internal, such as "call payments charge". Attempts are its children,
// so all are in one trace. [SpansNoted] saves the span of calls that succeed at once.
//
// docs/telemetry.md has the rest: the table of metrics, the attributes of spans, the rules of
// counting, and the measured costs.
package lullotel
