package lullotel

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lullgo/lull"
)

const (
	keyDependency  = "dependency"
	keyOperation   = "operation"
	keyOutcome     = "outcome"
	keyReason      = attribute.Key("reason")
	keyResend      = "resend"
	keyErrorType   = attribute.Key("error.type")
	keyState       = attribute.Key("state")
	keyFrom        = attribute.Key("from")
	keyTo          = attribute.Key("to")
	keyMetricsOnly = attribute.Key("metrics_only")
	keyResult      = attribute.Key("result")
	keyIn          = attribute.Key("in")
	keyCause       = attribute.Key("cause")
)

// Buckets of histograms, in seconds.
var (
	delayBuckets    = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	durationBuckets = []float64{.001, .0025, .005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 30}
	attemptBuckets  = []float64{1, 2, 3, 4, 5, 7, 10, 15, 25} // numbers

	// The recommendations of gRFC A96 and, for times, A66.
	a96Buckets = []float64{1, 2, 3, 4, 5}
	a66Buckets = []float64{
		0, .00001, .00005, .0001, .0003, .0006, .0008, .001, .002, .003, .004, .005, .006, .008, .01, .013, .016, .02, .025, .03, .04,
		.05, .065, .08, .1, .13, .16, .2, .25, .3, .4, .5, .65, .8, 1, 2, 5, 10, 20, 50, 100,
	}
)

type instruments struct {
	// Written to at events.
	callDuration, attemptDuration, delay metric.Float64Histogram
	admissionWait                        metric.Float64Histogram
	consumerAttempt                      metric.Int64Histogram
	processDuration                      metric.Float64Histogram
	grpcRetries, grpcHedges              metric.Int64Histogram
	grpcDelay                            metric.Float64Histogram

	// Read from this package's counters.
	calls, callFailures, attempts, failures, denied, hints, hedges, transitions metric.Int64ObservableCounter
	held                                                                        metric.Float64ObservableCounter
	admitted, shed                                                              metric.Int64ObservableCounter
	deliveries, deadLetters, consumerEvents                                     metric.Int64ObservableCounter

	// Read from watched objects.
	tokens, stock, refusal, rate             metric.Float64ObservableGauge
	cooldown                                 metric.Float64ObservableGauge // and from the counters
	state, inFlight, waiting, hedgesInFlight metric.Int64ObservableGauge
	admissionLimit, admissionInFlight        metric.Int64ObservableGauge
	admissionWaiting, admissionPressed       metric.Int64ObservableGauge
	consumerInFlight                         metric.Int64ObservableGauge
}

// builder makes instruments, and keeps the errors.
type builder struct {
	meter    metric.Meter
	observed []metric.Observable
	errs     []error
}

// made returns the instrument that create makes. O is the type of its options, as which every option of all instruments will do.
// buckets are those of a histogram.
func made[I, O any](b *builder, create func(string, ...O) (I, error), name, unit, description string, buckets ...float64) I {
	opts := []O{metric.WithUnit(unit).(O), metric.WithDescription(description).(O)}
	if buckets != nil {
		opts = append(opts, metric.WithExplicitBucketBoundaries(buckets...).(O))
	}
	i, err := create(name, opts...)
	if err != nil {
		b.errs = append(b.errs, fmt.Errorf("%s: %w", name, err))
	}
	if o, ok := any(i).(metric.Observable); ok {
		b.observed = append(b.observed, o)
	}
	return i
}

func (b *builder) instruments() (i instruments) {
	m := b.meter
	counter, gauge, level := m.Int64ObservableCounter, m.Int64ObservableGauge, m.Float64ObservableGauge
	times, counts := m.Float64Histogram, m.Int64Histogram
	i.held = made(b, m.Float64ObservableCounter, "retry.held", "s", "How long callers were held by calls that ended: in attempts, and in waits for retries and for room.")
	i.calls = made(b, counter, "retry.calls", "{call}", "Calls that ended, by outcome.")
	i.callFailures = made(b, counter, "retry.call.failures", "{call}", "Calls that failed, by the reason why no further attempt was made.")
	i.attempts = made(b, counter, "retry.attempts", "{attempt}", "Attempts of calls that ended; resend: all but the first.")
	i.failures = made(b, counter, "retry.attempt.failures", "{attempt}", "Attempts that failed, by what the classifier calls it.")
	i.delay = made(b, times, "retry.delay", "s", "The wait before a retry, as drawn.", delayBuckets...)
	i.callDuration = made(b, times, "retry.call.duration", "s", "From the start of a call to its end, with all attempts and waits.", durationBuckets...)
	i.attemptDuration = made(b, times, "retry.attempt.duration", "s", "Attempts of calls whose first did not succeed at once.", durationBuckets...)
	i.denied = made(b, counter, "retry.budget.denied", "{attempt}", "Retries and hedges that the retry budget did not pay for.")
	i.tokens = made(b, level, "retry.budget.tokens", "{token}", "Retries that the budget would pay for now.")
	i.stock = made(b, level, "retry.budget.stock", "{token}", "Tokens of a full stock; the budget may have more, which expire.")
	i.cooldown = made(b, level, "retry.cooldown", "s", "For how long the circuit breaker or the throttle still holds attempts back, or the server has asked to.")
	i.state = made(b, gauge, "retry.breaker.state", "{state}", "1 for the state that the circuit breaker is in, 0 for the others.")
	i.transitions = made(b, counter, "retry.breaker.transitions", "{transition}", "Changes of the circuit breaker.")
	i.hedges = made(b, counter, "retry.hedges", "{attempt}", "Further attempts of hedged calls that were begun, or refused.")
	i.hedgesInFlight = made(b, gauge, "retry.hedges.in_flight", "{attempt}", "Hedges in flight.")
	i.hints = made(b, counter, "retry.server_hints", "{hint}", "What servers said about retries, and what came of it.")
	i.refusal = made(b, level, "retry.throttle.refusal", "{probability}", "The probability that the client's throttle holds the next attempt back.")
	i.rate = made(b, level, "retry.throttle.rate", "{attempt}/s", "The rate that the client's throttle holds attempts to; absent while it does not.")
	i.inFlight = made(b, gauge, "retry.limit.in_flight", "{attempt}", "Attempts in flight under the concurrency limit.")
	i.waiting = made(b, gauge, "retry.limit.waiting", "{attempt}", "Attempts that wait for room under the concurrency limit.")

	i.admitted = made(b, counter, "admission.admitted", "{request}", "Requests that were admitted.")
	i.shed = made(b, counter, "admission.shed", "{request}", "Requests that were refused.")
	i.admissionWait = made(b, times, "admission.queue.wait", "s", "How long requests waited that did, by what became of them.", delayBuckets...)
	i.admissionLimit = made(b, gauge, "admission.limit", "{request}", "Requests that may be in flight.")
	i.admissionInFlight = made(b, gauge, "admission.in_flight", "{request}", "Requests in flight.")
	i.admissionWaiting = made(b, gauge, "admission.waiting", "{request}", "Requests that wait.")
	i.admissionPressed = made(b, gauge, "admission.pressed", "{state}", "1 while requests have waited or were refused for longer than a burst lasts.")

	i.deliveries = made(b, counter, "consumer.deliveries", "{message}", "Deliveries that ended, by what became of the message.")
	i.deadLetters = made(b, counter, "consumer.dlq", "{message}", "Messages that became dead letters, by reason.")
	i.consumerEvents = made(b, counter, "consumer.events", "{event}", "What happened to consumers besides deliveries.")
	i.consumerInFlight = made(b, gauge, "consumer.in_flight", "{message}", "Messages in the hands of the consumer.")
	i.consumerAttempt = made(b, counts, "consumer.attempt", "{attempt}", "Which attempt at its message a delivery was that ended.", attemptBuckets...)
	i.processDuration = made(b, times, "messaging.process.duration", "s", "How long the handler ran, over all tries of a delivery.", durationBuckets...)

	i.grpcRetries = made(b, counts, "grpc.client.call.retries", "{retry}", "Number of retries during the client call. If there were no retries, 0 is not reported.", a96Buckets...)
	i.grpcHedges = made(b, counts, "grpc.client.call.hedges", "{hedge}", "Number of hedges during the client call. If there were no hedges, 0 is not reported.", a96Buckets...)
	i.grpcDelay = made(b, times, "grpc.client.call.retry_delay", "s", "Total time of delay while there is no active attempt during the client call.", a66Buckets...)
	return i
}

func (t *Telemetry) collect(_ context.Context, out metric.Observer) error {
	i := &t.instruments
	t.calls.dependencies.all(func(d *dependency) {
		d.operations.all(func(o *operation) { o.collect(i, out) })
		d.collect(i, out)
		if until := d.hintUntil.Load(); until > 0 {
			i.observeCooldown(out, d.label, "hint", time.Duration(until)-time.Since(t.began))
		}
	})
	t.gates.all(func(g *gate) { g.collect(i, out) })
	t.queues.all(func(q *queueTally) { q.collect(i, out) })
	t.collectSources(out)
	return nil
}

// collect reports every outcome from the first call on, as 0 if there is none: Prometheus ignores
// the first value of a new series as an increase.
func (o *operation) collect(i *instruments, out metric.Observer) {
	var first int64 // attempts, as a sum: the difference of two counters could fall
	for outcome := range o.ended {
		n := o.ended[outcome].Load()
		first += n
		n += o.refused[outcome].Load()
		out.ObserveInt64(i.calls, n, metric.WithAttributeSet(o.with(attribute.String(keyOutcome, Outcome(outcome).String()))))
	}
	for in := range o.held {
		out.ObserveFloat64(i.held, time.Duration(o.held[in].Load()).Seconds(), metric.WithAttributeSet(o.with(keyIn.String(heldNames[in]))))
	}
	out.ObserveInt64(i.attempts, first, metric.WithAttributeSet(o.with(attribute.Bool(keyResend, false))))
	out.ObserveInt64(i.attempts, o.resends.Load(), metric.WithAttributeSet(o.with(attribute.Bool(keyResend, true))))
}

func (d *dependency) collect(i *instruments, out metric.Observer) {
	with := func(more ...attribute.KeyValue) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(append(more, attribute.String(keyDependency, d.label))...))
	}
	d.failures.all(func(f *tally) { out.ObserveInt64(i.failures, f.Load(), with(keyErrorType.String(f.label))) })
	d.changes.all(func(c *change) {
		out.ObserveInt64(i.transitions, c.Load(), with(c.attributes[:len(c.attributes):len(c.attributes)]...))
	})
	for r := range d.reasons {
		if n := d.reasons[r].Load(); n > 0 {
			out.ObserveInt64(i.callFailures, n, with(keyReason.String(lull.Reason(r).String())))
		}
	}
	out.ObserveInt64(i.denied, d.denied.Load(), d.observe...)
	for h := range d.hints {
		out.ObserveInt64(i.hints, d.hints[h].Load(), with(keyResult.String(hintNames[h])))
	}
	if n := d.hedges.Load(); n > 0 {
		out.ObserveInt64(i.hedges, n, with(keyResult.String("started")))
	}
	for r := range d.hedgesRefused {
		if n := d.hedgesRefused[r].Load(); n > 0 {
			out.ObserveInt64(i.hedges, n, with(keyResult.String("refused"), keyReason.String(lull.Reason(r).String())))
		}
	}
}
