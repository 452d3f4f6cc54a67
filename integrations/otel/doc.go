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
// nothing for retries, so the attributes are lull's: retry.dependency, retry.operation, retry.attempt (how many were
// made), retry.delay_ms (how long it waited in all), retry.budget_exhausted, retry.reason
// (why it ended), retry.outcome, and error.type if it failed. Its events: retry.wait, with the attempt that failed,
// retry.delay_ms, retry.delay_before_jitter_ms, error.type, and retry.server_hint_ms if the
// server asked for a wait; retry.refused, with the reason why there was no further
// attempt; retry.hedge.started, retry.hedge.refused and retry.attempt.failed. Error texts
// are not recorded: they may hold what does not belong into a trace.
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
//	name                         kind       labels                                  series
//	retry.calls                  counter    dependency operation outcome            9 O
//	retry.call.failures          counter    dependency reason                       15 D
//	retry.attempts               counter    dependency operation resend             2 O
//	retry.attempt.failures       counter    dependency error.type                   codes
//	retry.delay                  s          dependency                              D
//	retry.call.duration          s          dependency operation outcome            9 O
//	retry.attempt.duration       s          dependency operation resend             2 O
//	retry.budget.tokens          gauge      dependency                              D
//	retry.budget.denied          counter    dependency                              D
//	retry.breaker.state          gauge      dependency state                        3 D, one of them 1
//	retry.breaker.transitions    counter    dependency from to reason metrics_only  about 10 D
//	retry.hedges                 counter    dependency result reason                about 8 D
//	retry.hedges.in_flight       gauge      dependency                              D
//	retry.server_hints           counter    dependency result                       3 D
//	retry.throttle.refusal, rate gauge      dependency                              2 D
//	retry.limit.in_flight, .waiting gauge   dependency                              2 D
//	admission.admitted           counter    admission priority attempt_class        12 a controller
//	admission.shed               counter    ... and reason                          12 × 8 at most
//	admission.queue.wait         s          admission result                        2
//	admission.limit, .in_flight, .waiting, .pressed  gauge  admission               4
//	consumer.deliveries          counter    queue outcome                           7 a queue
//	consumer.attempt             histogram  queue                                   1
//	consumer.dlq                 counter    queue reason                            33 at most
//	consumer.events              counter    queue event                             4
//	consumer.in_flight           gauge      queue                                   1
//	messaging.process.duration   s          messaging.operation.name, .destination.name  1
//	grpc.client.call.retries, .hedges, .retry_delay  histograms of gRFC A96, of calls that StartGRPC began
//
// A histogram's series are as many again for each of its buckets (15 to 17). The SDK has a
// bound of its own, by default 2000 label sets an instrument; who has more pairs than that
// allows should raise it, or lower Limits.
//
// An attempt is counted when its call has ended. A first attempt that succeeds is in
// retry.call.duration (outcome success_first) and not once more in retry.attempt.duration,
// which has all other attempts; the buckets are the same, so that
//
//	sum by (le) (rate(retry_attempt_duration_seconds_bucket[5m]) or rate(retry_call_duration_seconds_bucket{outcome="success_first"}[5m]))
//
// has all. A call that was refused at once has no duration. The buckets of calls without [lull.WithTiming], which is among the Options, lack
// those that succeed at once.
//
// What of this is exact without a span: the counts of calls and attempts, the waits, the
// budget. For the attempts of a call an observer alone cannot tell when each began, nor
// whether a call whose circuit opened did so at the end of an attempt or in a wait: the
// durations of attempts beyond the first need the call to have been started by this
// package, and so does the last per cent of retry.attempt.failures. Of a call that was
// hedged, the duration of its winner is not known.
//
// Calls made inside of an operation without a wrapper of their own are not taken for part of
// the outer call, unless they are to the same dependency.
//
// # Cost
//
// Nothing where it is not installed. A call that succeeds at once takes 25 ns more if it is
// counted, 235 ns if it is timed as well (the SDK's histogram 130, 25 for each label; the clock and the
// engine's way past it 50), and no allocation more. Counters are this package's own atomics, read when metrics
// are: adding to one of the SDK's takes 120 ns. (The least of many short turns, on a machine
// with much else to do: go test -run xx -bench OnTop -benchtime 3000x)
//
// A span of the SDK that is sampled takes 2 to 3 µs and 6 allocations, one that is not 0.8 µs
// and 3; SpansNoted, for a call without events, 0.4 µs and 1. A histogram keeps exemplars where the trace is
// sampled, which takes about as long again. Reading the metrics of 100 operations
// takes half a millisecond. (go test -bench . -count 8)
package lullotel
