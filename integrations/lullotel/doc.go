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
//	lull.Do     NewDependency(name, p, t.Options()...)  lullotel.Do, Run, DoHedged
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
// Names of metrics are those of OpenTelemetry; Prometheus has retry_calls_total,
// retry_delay_seconds_bucket and so on. D is the number of dependencies, O the number of pairs of
// a dependency and an operation. [Limits] bound both, whatever names come in: D ≤ 65, O ≤ 17 D,
// codes ≤ 33 D. Names beyond that are counted under [Other].
//
//	name                          kind       unit           labels                                            series
//	retry.calls                   counter    {call}         dependency operation outcome                      9 O
//	retry.call.failures           counter    {call}         dependency reason                                 15 D
//	retry.call.duration           histogram  s              dependency operation outcome                      9 O
//	retry.attempts                counter    {attempt}      dependency operation resend                       2 O
//	retry.attempt.failures        counter    {attempt}      dependency error.type                             codes
//	retry.attempt.duration        histogram  s              dependency operation resend                       2 O
//	retry.delay                   histogram  s              dependency                                        D
//	retry.budget.tokens           gauge      {token}        dependency                                        D
//	retry.budget.denied           counter    {attempt}      dependency                                        D
//	retry.breaker.state           gauge      {state}        dependency state                                  3 D, one of them 1
//	retry.breaker.transitions     counter    {transition}   dependency from to reason metrics_only            about 10 D
//	retry.hedges                  counter    {attempt}      dependency result reason                          about 8 D
//	retry.hedges.in_flight        gauge      {attempt}      dependency                                        D
//	retry.server_hints            counter    {hint}         dependency result                                 3 D
//	retry.throttle.refusal        gauge      {probability}  dependency                                        D
//	retry.throttle.rate           gauge      {attempt}/s    dependency                                        D
//	retry.limit.in_flight         gauge      {attempt}      dependency                                        D
//	retry.limit.waiting           gauge      {attempt}      dependency                                        D
//	admission.admitted            counter    {request}      admission priority attempt_class                  12 a controller
//	admission.shed                counter    {request}      admission priority attempt_class reason           12 × 8 at most
//	admission.queue.wait          histogram  s              admission result                                  2
//	admission.limit               gauge      {request}      admission                                         1
//	admission.in_flight           gauge      {request}      admission                                         1
//	admission.waiting             gauge      {request}      admission                                         1
//	admission.pressed             gauge      {state}        admission                                         1
//	consumer.deliveries           counter    {message}      queue outcome                                     7 a queue
//	consumer.attempt              histogram  {attempt}      queue                                             1
//	consumer.dlq                  counter    {message}      queue reason                                      33 at most
//	consumer.events               counter    {event}        queue event                                       4
//	consumer.in_flight            gauge      {message}      queue                                             1
//	messaging.process.duration    histogram  s              messaging.destination.name messaging.operation.name messaging.system error.type  34 at most
//	grpc.client.call.retries      histogram  {retry}        grpc.method grpc.target                           65 O at most
//	grpc.client.call.hedges       histogram  {hedge}        grpc.method grpc.target                           65 O at most
//	grpc.client.call.retry_delay  histogram  s              grpc.method grpc.target                           65 O at most
//
// A label is absent if it has no value: operation if the call has no name, reason of hedges that
// began, metrics_only unless it is true, error.type of successes, messaging.system unless
// [Telemetry.Handler] got it. A histogram has as many series for each of its buckets (6 to 42).
//
// A call that succeeds at once takes 25 ns more if it is counted, 235 ns if it is timed as well,
// and no allocation more. A sampled span takes 2 to 3 µs and 7 allocations.
//
// docs/telemetry.md has the rest: the attributes of spans, the rules of counting,
// and the measured costs.
package lullotel
