// Package lullotel makes OpenTelemetry spans and metrics of what lull does. It uses the
// OpenTelemetry API alone; which SDK and exporter there are is for the program to say.
//
//	t, err := lullotel.New()
//	...
//	payments, err := lull.NewDependency("payments", policy, t.Options()...)
//	t.Watch(payments)
//	...
//	receipt, err := lullotel.Do(ctx, t, payments, charge, lull.Operation("charge"))
//
// # Why
//
// Retries that nobody can see are how outages start: the caller's graphs look normal, since
// the second attempt succeeded, while what is called gets more load than it ever had. The
// figure that says so is attempts per call, and it is in no HTTP metric. And a trace in
// which each attempt stands by itself, or in which only the last is to be seen, does not
// tell why a request took two seconds.
//
// # Where it is put
//
// Metrics need an observer: [Telemetry.Options] for every dependency. An observer is told of
// events when they have happened, and cannot change the context that attempts are made
// with. So a call's span begins before the engine does, in a wrapper, and the events find
// it by the context:
//
//	driver      metrics                                span
//	lull.Do     NewDependency(name, p, t.Options()...)  lullotel.Do, Run, DoHedged
//	lullhttp    lullhttp.With(t.Options()...)           t.Transport(calls); t.Resends below otelhttp
//	lullgrpc    lullgrpc.With(t.Options()...)           t.StartGRPC in an interceptor before lullgrpc's
//	queue       queue.WithObserver(t.Queue)             t.Handler(name, system, handler)
//	admission   admission.WithObserver(t.Admission(…))  none: the server's own span is there
//	your own    d with t.Options()                      ctx, call := t.Start(ctx, d.Name()); call.End(err)
//
// What stands now rather than what has happened (budgets, breakers, limits) is read when
// metrics are: [Telemetry.Watch], WatchAll, WatchGate, WatchConsumer.
//
// # Spans
//
// A call is one span of kind internal, "call payments charge". Semantic conventions have
// nothing for retries, so the attributes are lull's: retry.dependency, retry.operation,
// retry.attempt (how many were made), retry.delay_ms (how long it waited in all, once the
// first had begun), retry.budget_exhausted, retry.reason (why it ended), retry.outcome, and,
// if it failed, error.type: what the classifier calls the last failure, or the reason if no
// attempt was made. Its events: retry.wait, with the attempt that failed, retry.delay_ms,
// retry.delay_before_jitter_ms, error.type, and retry.server_hint_ms if the server asked for
// a wait; retry.refused, with the reason why there was no further attempt;
// retry.hedge.started, retry.hedge.refused and retry.attempt.failed. Error texts are not
// recorded: they may hold what does not belong into a trace.
//
// Attempts are children of it, so that all are in one trace, whoever calls. Over HTTP they
// are otelhttp's client spans; otelhttp never sets http.request.resend_count, [Telemetry.Resends]
// does, on the second and later attempts and redirects, as semantic conventions (stable)
// have it.
//
// Calls that succeed at once have a span too, unless [SpansNoted] says otherwise: that
// saves the span, and the attempts of the others then stand beside the call's span, not
// under it.
//
// # Metrics
//
// Names are those of OpenTelemetry; Prometheus has retry_calls_total, retry_delay_seconds_bucket
// and so on. D is the number of dependencies, O that of pairs of a dependency and an
// operation. [Limits] bound both, whatever names come in: D ≤ 65, O ≤ 17 D, codes ≤ 33 D; all
// beyond is counted under [Other].
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
// Labels are absent where there is nothing to say: operation if the call has no name, reason
// of hedges that began, metrics_only unless it is true, error.type of what succeeded,
// messaging.system unless [Telemetry.Handler] was told. A histogram's series are as many again
// for each of its buckets (6 to 42). The SDK has a bound of its own, by default 2000 label
// sets an instrument; who has more pairs than that allows should raise it, or lower Limits.
//
// Every call is counted once, when it has ended, and so are its attempts: in retry.calls by
// its outcome (one that panicked is failed_terminal, reason panicked), in retry.attempts by
// whether they were the first. No figure needs a span. An attempt that failed is in
// retry.attempt.failures. Of one that lost to another, in a call that was hedged, nobody
// knows how it would have ended: it is in retry.attempts alone. A first attempt that succeeds
// is in retry.call.duration (outcome success_first) and not once more in
// retry.attempt.duration, which has all others that ended; the buckets are the same, so that
//
//	sum by (le) (rate(retry_attempt_duration_seconds_bucket[5m]) or rate(retry_call_duration_seconds_bucket{outcome="success_first"}[5m]))
//
// has all. (Where first attempts have to wait for room, or for the throttle, it has that wait
// as well.) A call that was refused at once has no duration. Nor has one that succeeds at
// once, without [lull.WithTiming], which is among the Options.
//
// Waits are in retry.delay, and hints in retry.server_hints, of calls that are retried;
// attempts that run side by side do not wait for each other. What a consumer of a queue does
// is in consumer, and in retry only what its handler calls in turn, and its breaker.
//
// A call that is made inside of the operation of another is a call of its own, and has a span
// if it is started by this package. (Below a [Telemetry.Transport], and a driver of your own,
// where lullotel does not see the operation begin, one to the same dependency is taken for
// part of the outer.)
//
// # Cost
//
// Nothing where it is not installed. A call that succeeds at once takes 25 ns more if it is
// counted, 235 ns if it is timed as well (the SDK's histogram 130, 25 for each label; the clock and the
// engine's way past it 50), and no allocation more. Counters are this package's own atomics, read when metrics
// are: adding to one of the SDK's takes 120 ns. (The least of many short turns, on a machine
// with much else to do: go test -run xx -bench OnTop -benchtime 3000x)
//
// A span of the SDK that is sampled takes 2 to 3 µs and 7 allocations, one that is not 0.8 µs
// and 4; SpansNoted, for a call without events, half a microsecond and 2. A histogram keeps
// exemplars where the trace is sampled, which takes about as long again. Reading the metrics
// of 100 operations takes half a millisecond. (go test -bench . -count 8)
package lullotel
